"""A loop that ends its agent when it is told to: `guard.py AGENT PROMPT GRACE`.

On SIGTERM: TERM to the agent's group, KILL after the grace, state saved with fsync, exit. Nothing else.
"""

import os
import select
import signal
import subprocess
import sys
import time

agent, prompt, grace = sys.argv[1], sys.argv[2], float(sys.argv[3])
reader, writer = os.pipe()
os.set_blocking(writer, False)
signal.set_wakeup_fd(writer)
for number in (signal.SIGTERM, signal.SIGCHLD):
    signal.signal(number, lambda number, frame: None)
with open(prompt, "rb") as stdin, open("log", "wb") as log:
    child = subprocess.Popen([agent], stdin=stdin, stdout=log, stderr=log, start_new_session=True)
while signal.SIGTERM not in os.read(reader, 64):
    pass
os.killpg(child.pid, signal.SIGTERM)
deadline = time.monotonic() + grace
while child.poll() is None:
    left = deadline - time.monotonic()
    if left <= 0 or not select.select([reader], [], [], left)[0]:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    else:
        os.read(reader, 64)
file = os.open("state.json.tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
os.write(file, b'{"status": "interrupted"}\n')
os.fsync(file)
os.rename("state.json.tmp", "state.json")
os._exit(143)
