"""The least loop that leaves nothing behind: `guard.py AGENT PROMPT GRACE`.

On SIGTERM it finds the whole tree of its agent, and whatever carries the mark of this run in its environment; TERM to
all, KILL after the grace, state saved with fsync, exit. It has no journal, no screen and no settings.
"""

import os
import select
import signal
import subprocess
import sys
import time

MARK = b"GUARD_RUN=%d" % os.getpid()


def tree(pid: int) -> set[int]:
    """The process with its descendants, by what the kernel says of each task."""
    found, open_ends = {pid}, [pid]
    while open_ends:
        parent = open_ends.pop()
        try:
            for task in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{task}/children", "rb") as file:
                    children = {int(child) for child in file.read().split()} - found
                found |= children
                open_ends += children
        except OSError:
            continue
    return found


def marked() -> set[int]:
    found = set()
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                with open(f"/proc/{entry}/environ", "rb") as file:
                    if MARK in file.read().split(b"\0"):
                        found.add(int(entry))
            except OSError:
                continue
    return found


def send(pids: set[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


agent, prompt, grace = sys.argv[1], sys.argv[2], float(sys.argv[3])
reader, writer = os.pipe()
os.set_blocking(writer, False)
signal.set_wakeup_fd(writer)
for number in (signal.SIGTERM, signal.SIGCHLD):
    signal.signal(number, lambda number, frame: None)
environment = {**os.environb, MARK.partition(b"=")[0]: MARK.partition(b"=")[2]}
with open(prompt, "rb") as stdin, open("log", "wb") as log:
    child = subprocess.Popen([agent], stdin=stdin, stdout=log, stderr=log, start_new_session=True, env=environment)
while signal.SIGTERM not in os.read(reader, 64):
    pass
pids = tree(child.pid) | marked()
send(pids, signal.SIGTERM)
deadline = time.monotonic() + grace
while child.poll() is None:
    left = deadline - time.monotonic()
    if left <= 0 or not select.select([reader], [], [], left)[0]:
        send(pids | marked(), signal.SIGKILL)
        child.wait()
    else:
        os.read(reader, 64)
while left_over := marked():
    send(left_over, signal.SIGKILL)
file = os.open("state.json.tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
os.write(file, b'{"status": "interrupted"}\n')
os.fsync(file)
os.rename("state.json.tmp", "state.json")
os._exit(143)
