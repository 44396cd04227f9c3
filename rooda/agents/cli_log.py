"""Reads the last error in a CLI's own log, for CLIs that retry for hours without printing why."""

import os
from collections.abc import Mapping
from typing import NamedTuple

from rooda.agents.reader import reader
from rooda.agents.records import Agent
from rooda.base import files

LARGEST = 1_048_576  # bytes read, from the log's end
LONGEST = 65_536  # bytes read of a line
_DATA = "~/.local/share/"


class Mark(NamedTuple):
    """The end of a log when a call begins: later lines may come from this call."""

    path: str = ""
    inode: int = 0
    size: int = 0


def path_of(agent: Agent, env: Mapping[str, str]) -> str:
    """Return the path of the agent's log; "" if rooda does not know it."""
    if agent.log.startswith(_DATA) and env.get("XDG_DATA_HOME"):
        return os.path.join(env["XDG_DATA_HOME"], agent.log.removeprefix(_DATA))
    home = env.get("HOME") or os.path.expanduser("~")
    return os.path.join(home, agent.log[2:]) if agent.log.startswith("~/") else agent.log


def mark(agent: Agent, env: Mapping[str, str]) -> Mark:
    """Return the present end of the agent's log; an empty mark if rooda can't read errors in that CLI's log."""
    if not agent.log or reader(agent.output).log_error is None:
        return Mark()
    path = path_of(agent, env)
    inode, size = _identity(path)
    return Mark(path, inode, size)


def last_error(output: str, began: Mark) -> str:
    """Return the last error in the log after `began`, the log's end when the call began; "" if there is none."""
    take = reader(output).log_error
    if not began.path or take is None:
        return ""
    inode, size = _identity(began.path)
    new = size - began.size if inode == began.inode and size >= began.size else size
    found = ""
    try:
        for line in files.lines(began.path, min(new, LARGEST), LONGEST) if new else ():
            found = take(line.decode("utf-8", "replace")) or found
    except OSError:
        return ""
    return found


def _identity(path: str) -> tuple[int, int]:
    """Return the inode and size of a regular file; zeros if there is none."""
    try:
        facts = os.stat(path)
    except OSError:
        return 0, 0
    return (facts.st_ino, facts.st_size) if os.path.isfile(path) else (0, 0)
