"""Who of a swarm is alive: told by an unusual word in the command line and by an open file, which everybody inherits.

Also a program, without our own modules: `python census.py FOLDER` appends the living to FOLDER/census, one line a call.
"""

import os
import sys


def living(folder: str) -> list[int]:
    """Live processes of the swarm in this folder, zombies and ourselves excepted."""
    word, marker, own = os.path.basename(folder).encode(), os.path.join(folder, "marker"), os.getpid()
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != own and (_is_named(entry, word) or _holds(entry, marker)):
            found.append(int(entry))
    return found + [pid for pid in noted(folder) if pid not in found and pid != own and _works_in(pid, folder)]


def noted(folder: str) -> list[int]:
    """The pids that the members of the swarm have written down themselves."""
    try:
        with open(os.path.join(folder, "pids"), encoding="ascii") as file:
            return [int(line) for line in file.read().split("\n")[:-1] if line.isdigit()]
    except OSError:
        return []


def _is_named(entry: str, word: bytes) -> bool:
    try:
        with open(f"/proc/{entry}/cmdline", "rb") as file:  # empty for a zombie
            return word in file.read().split(b"\0")
    except OSError:
        return False


def _holds(entry: str, marker: str) -> bool:
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
