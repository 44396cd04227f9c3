"""Reads the usage of a call from the CLI's own session file, if the transcript lacks it.

A killed CLI hasn't printed its usage, some CLIs never do, and codex never prints its model. The format of these files
is undocumented, so usage counts as unknown if anything is unexpected.
"""

import fnmatch
import os
import re
import stat
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from rooda.agents.gathered import Gathered
from rooda.agents.reader import NEWEST, SessionFiles, reader
from rooda.agents.records import Usage
from rooda.base import files
from rooda.base.json import loads

LARGEST = 67_108_864  # bytes; larger session files are not read
LONGEST = 4_194_304  # bytes read of a line
_SESSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{7,99}")

Spent: TypeAlias = dict[str, Usage]  # per model


def usage_of(output: str, session: str, env: Mapping[str, str]) -> Spent:
    """Return the usage of a session per model; {} if unknown."""
    if not _SESSION.fullmatch(session):
        return {}
    for session_files in reader(output).sessions:
        for path in _paths(session_files, session, env):
            try:
                return _read(path, session_files)
            except (OSError, ValueError):
                return {}
    return {}


def total(shares: Spent) -> Usage | None:
    """Return the usage summed over all models; None if there are none."""
    return Usage(*map(sum, zip(*shares.values(), strict=True))) if shares else None


def _paths(session_files: SessionFiles, session: str, env: Mapping[str, str]) -> Iterator[str]:
    moved = env.get(session_files.home[0])
    home = env.get("HOME") or os.path.expanduser("~")
    root = os.path.join(moved, session_files.home[1]) if moved else os.path.join(home, session_files.folder)
    parts = [part.format(session=session, short=session[:8]) for part in session_files.place]
    yield from (path for path in _matching(root, parts) if _is_readable(path))


def _matching(folder: str, parts: list[str]) -> Iterator[str]:
    if not parts:
        yield folder
        return
    first, rest = parts[0], parts[1:]
    names = [first]
    if first == NEWEST or "*" in first:
        names = sorted(files.list_if_readable(folder), reverse=True)
        names = names[:2] if first == NEWEST else fnmatch.filter(names, first)
    for name in names:
        yield from _matching(os.path.join(folder, name), rest)


def _is_readable(path: str) -> bool:
    try:
        facts = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(facts.st_mode) and facts.st_size <= LARGEST


def _read(path: str, session_files: SessionFiles) -> Spent:
    into = Gathered()
    if session_files.whole:
        document = loads(files.head(path, LARGEST))
        if isinstance(document, dict):
            session_files.take(document, into)
        return into.shares
    for line in files.lines(path, LARGEST, LONGEST):
        record = loads(line) if any(word in line for word in session_files.markers) else None
        if isinstance(record, dict):
            session_files.take(record, into)
    return into.shares
