"""Live processes of a swarm, found by a word in their command line and by an open file that they inherit.

Also a program, without our own modules: `python census.py FOLDER` appends the living to FOLDER/census, one line a call.
"""

import os
import sys
import time


def living(folder: str) -> list[int]:
    """Live processes of the swarm in this folder, zombies and ourselves excepted.

    A process that forks and exits during a scan can be missed; so scans repeat while any forks, for half a second.
    """
    deadline = time.monotonic() + 0.5
    others = {os.getpid()}
    while True:
        newest = _newest()
        found = _look(folder, others)
        if found or newest == _newest() or time.monotonic() > deadline:
            return found


def _look(folder: str, others: set[int]) -> list[int]:
    word, marker, mine = os.path.basename(folder).encode(), os.path.join(folder, "marker"), set(noted(folder))
    found = []
    for pid in sorted(map(int, filter(str.isdigit, os.listdir("/proc"))), reverse=True):
        if pid in others:
            continue
        if _is_named(pid, word) or _holds(pid, marker) or (pid in mine and _works_in(pid, folder)):
            found.append(pid)
        elif os.path.exists(f"/proc/{pid}"):
            others.add(pid)
    return found


def _newest() -> str:
    with open("/proc/loadavg", encoding="ascii") as file:
        return file.read().split()[-1]


def noted(folder: str) -> list[int]:
    """The pids that the members of the swarm have written down themselves."""
    try:
        with open(os.path.join(folder, "pids"), encoding="ascii") as file:
            return [int(line) for line in file.read().split("\n")[:-1] if line.isdigit()]
    except OSError:
        return []


def _is_named(entry: int, word: bytes) -> bool:
    try:
        with open(f"/proc/{entry}/cmdline", "rb") as file:  # empty for a zombie
            return word in file.read().split(b"\0")
    except OSError:
        return False


def _holds(entry: int, marker: str) -> bool:
    try:
        return os.readlink(f"/proc/{entry}/fd/9") == marker
    except OSError:
        return False


def _works_in(pid: int, folder: str) -> bool:
    """Against recycled numbers: the swarm never leaves the workspace."""
    try:
        return os.readlink(f"/proc/{pid}/cwd") == os.path.join(os.path.dirname(folder), "work")
    except OSError:
        return False


if __name__ == "__main__":
    with open(os.path.join(sys.argv[1], "census"), "a", encoding="ascii") as file:
        file.write(" ".join(map(str, living(sys.argv[1]))) + "\n")
