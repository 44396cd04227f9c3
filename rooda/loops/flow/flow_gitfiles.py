"""git's own files, which no agent of a flow may change: kept before each call, and put back after it."""

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from rooda.base import files
from rooda.git.repository import Repo
from rooda.loops.flow.flow_entry import Entry, entry, put

Facts = tuple[int, ...]
HEAD = re.compile(rb"ref: refs/\S|[0-9a-f]{40}")  # how one begins that git takes for one


class Kept(NamedTuple):
    """What was there before a call."""

    own: dict[str, Entry]  # settings and hooks
    head: Entry | None
    listed: bytes | None  # the index
    staged: os.stat_result | None


def keep(repo: Repo) -> Kept:
    index, own, head = _index(repo), _own(repo), entry(_head(repo))
    try:
        return Kept(own, head, files.read(index), os.stat(index))
    except OSError:
        return Kept(own, head, None, None)


def put_back(repo: Repo, before: Kept) -> str:
    """Settings and hooks as they were, before git is asked for anything; says what was changed."""
    now = _own(repo)
    changed = sorted(path for path in {*now, *before.own} if now.get(path) != before.own.get(path))
    for path in changed:
        put(path, before.own.get(path))
    if not _is_head(entry(_head(repo))):
        put(_head(repo), before.head)
        changed.append(_head(repo))
    listed = ", ".join(os.path.relpath(path, repo.top) for path in changed[:5])
    return f"has changed git's own files; put back: {listed}" if changed else ""


def put_index_back(repo: Repo, before: Kept) -> None:
    """What an agent stages or flags counts for nothing. With its time: git trusts an index by it."""
    if before.listed is None or before.staged is None or _facts(_index(repo)) == _of(before.staged):
        return
    if os.path.isdir(_index(repo)):
        files.remove_tree(_index(repo))
    files.replace(_index(repo), before.listed, before.staged.st_mode & 0o777)
    files.date(_index(repo), before.staged)


def _head(repo: Repo) -> str:
    return os.path.join(repo.folder, "HEAD")


def _index(repo: Repo) -> str:
    return os.path.join(repo.folder, "index")


def _facts(path: str) -> Facts:
    try:
        return _of(os.stat(path))
    except OSError:
        return ()


def _of(facts: os.stat_result) -> Facts:
    return (facts.st_ino, facts.st_size, facts.st_mtime_ns)


def _own(repo: Repo) -> dict[str, Entry]:
    return {path: found for path in _names(repo) if (found := entry(path))}


def _is_head(found: Entry | None) -> bool:
    """Would git take it for one?"""
    return found is not None and (found.target.startswith("refs/") or HEAD.match(found.data) is not None)


def _names(repo: Repo) -> Iterator[str]:
    yield os.path.join(repo.common, "config")
    yield os.path.join(repo.folder, "config.worktree")
    yield os.path.join(repo.folder, "rooda")  # the folder: what a flow itself keeps there
    for folder in (os.path.join(repo.common, "info"), os.path.join(repo.common, "hooks")):
        if os.path.islink(folder):  # sorts before what is in it, so that nothing is put back through a wrong one
            yield folder
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        yield from (os.path.join(folder, name) for name in names if not name.endswith(".sample"))
