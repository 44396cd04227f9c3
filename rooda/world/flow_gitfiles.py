"""git's own files, which no agent of a flow may change: kept before each call, and put back after it."""

import os
from collections.abc import Iterator
from typing import NamedTuple

from rooda.world import files
from rooda.world.repo import Repo

Facts = tuple[int, ...]


class Own(NamedTuple):
    """A file of git's, or a link in its place: people link hooks, and git follows."""

    data: bytes = b""
    mode: int = 0
    target: str = ""  # of a link


class Kept(NamedTuple):
    """What was there before a call."""

    own: dict[str, Own]  # settings and hooks
    listed: bytes | None  # the index
    staged: os.stat_result | None


def keep(repo: Repo) -> Kept:
    index = _index(repo)
    try:
        return Kept(_own(repo), files.read(index), os.stat(index))
    except OSError:
        return Kept(_own(repo), None, None)


def put_back(repo: Repo, before: Kept) -> str:
    """Settings and hooks as they were, before git is asked for anything; says what was changed."""
    now = _own(repo)
    changed = sorted(path for path in {*now, *before.own} if now.get(path) != before.own.get(path))
    for path in changed:
        if path in before.own:
            _put(path, before.own[path])
        else:
            files.remove(path)
    listed = ", ".join(os.path.relpath(path, repo.top) for path in changed[:5])
    return f"has changed git's own files; put back: {listed}" if changed else ""


def _put(path: str, own: Own) -> None:
    files.folder(os.path.dirname(path))
    if own.target:
        files.link(path, own.target)
    else:
        files.write(path, own.data, own.mode)


def put_index_back(repo: Repo, before: Kept) -> None:
    """What an agent stages or flags counts for nothing. With its time: git trusts an index by it."""
    if before.listed is None or before.staged is None or _facts(_index(repo)) == _of(before.staged):
        return
    files.replace(_index(repo), before.listed, before.staged.st_mode & 0o777)
    files.date(_index(repo), before.staged)


def _index(repo: Repo) -> str:
    return os.path.join(repo.folder, "index")


def _facts(path: str) -> Facts:
    try:
        return _of(os.stat(path))
    except OSError:
        return ()


def _of(facts: os.stat_result) -> Facts:
    return (facts.st_ino, facts.st_size, facts.st_mtime_ns)


def _own(repo: Repo) -> dict[str, Own]:
    found = {}
    for path in _names(repo):
        try:
            if os.path.islink(path):
                found[path] = Own(target=os.readlink(path))
            else:
                found[path] = Own(files.read_ours(path), os.stat(path).st_mode & 0o777)
        except OSError:
            continue
    return found


def _names(repo: Repo) -> Iterator[str]:
    yield os.path.join(repo.common, "config")
    yield os.path.join(repo.folder, "config.worktree")
    for folder in (os.path.join(repo.common, "info"), os.path.join(repo.common, "hooks")):
        if os.path.islink(folder):  # sorts before what is in it, so that nothing is put back through a wrong one
            yield folder
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        yield from (os.path.join(folder, name) for name in names if not name.endswith(".sample"))
