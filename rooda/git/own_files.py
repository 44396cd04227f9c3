"""Records git's own files before an agent or a gate runs, and restores them afterwards."""

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from rooda.base import files
from rooda.git.repository import Repo

Facts = tuple[int, ...]
HEAD = re.compile(rb"ref: refs/\S|[0-9a-f]{40}")  # the beginning of a valid HEAD


class FileState(NamedTuple):
    """The state of a path: a file's content, a link's target, or a folder."""

    data: bytes = b""
    mode: int = 0
    target: str = ""  # target of a link
    folder: bool = False


OTHER = FileState(mode=-1)  # a special or unreadable file


def file_state(path: str) -> FileState | None:
    """Return the state of a path; None if it doesn't exist."""
    try:
        if os.path.islink(path):
            return FileState(target=os.readlink(path))
        if os.path.isdir(path):
            return FileState(folder=True)
        return FileState(files.read_ours(path), os.stat(path).st_mode & 0o777)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return OTHER


def restore_path(path: str, old: FileState | None) -> None:
    """Restore a path to its old state; delete anything that replaced it or one of its parent folders."""
    if old == OTHER:
        return
    files.remove_tree(path)
    if old is None:
        return
    above = os.path.dirname(path)
    while not os.path.isdir(above):
        files.remove(above)
        above = os.path.dirname(above)
    files.make_folder(path if old.folder else os.path.dirname(path))
    if old.target:
        files.link(path, old.target)
    elif not old.folder:
        files.write(path, old.data, old.mode)


class GitFiles(NamedTuple):
    """The state of git's own files before a program runs."""

    own: dict[str, FileState]  # config, hooks, info and alternates
    head: FileState | None
    listed: bytes | None  # the index
    staged: os.stat_result | None


def files_before(repo: Repo) -> GitFiles:
    index, own, head = _index(repo), _own(repo), file_state(_head(repo))
    try:
        return GitFiles(own, head, files.read(index, files.LARGEST_OF_GIT), os.stat(index))
    except OSError:
        return GitFiles(own, head, None, None)


def restore_files(repo: Repo, before: GitFiles, with_head: bool = True) -> str:
    """Restore git's own files before any git command runs; return a message about what had changed, "" if nothing had.

    `with_head`: also restore a HEAD that git can't read.
    """
    now = _own(repo)
    changed = sorted(path for path in {*now, *before.own} if now.get(path) != before.own.get(path))
    for path in changed:
        restore_path(path, before.own.get(path))
    if with_head and not _is_head(file_state(_head(repo))):
        restore_path(_head(repo), before.head)
        changed.append(_head(repo))
    listed = ", ".join(os.path.relpath(path, repo.top) for path in changed[:5])
    return f"changed git's own files; put back: {listed}" if changed else ""


def restore_index(repo: Repo, before: GitFiles) -> None:
    """Restore the index with its timestamps, which git relies on; discard what the program staged or hid."""
    if before.listed is None or before.staged is None or _facts(_index(repo)) == _facts_of(before.staged):
        return
    if os.path.isdir(_index(repo)):
        files.remove_tree(_index(repo))
    files.replace(_index(repo), before.listed, before.staged.st_mode & 0o777)
    files.copy_times(_index(repo), before.staged)


def _head(repo: Repo) -> str:
    return os.path.join(repo.folder, "HEAD")


def _index(repo: Repo) -> str:
    return os.path.join(repo.folder, "index")


def _facts(path: str) -> Facts:
    try:
        return _facts_of(os.stat(path))
    except OSError:
        return ()


def _facts_of(facts: os.stat_result) -> Facts:
    return (facts.st_ino, facts.st_size, facts.st_mtime_ns)


def _own(repo: Repo) -> dict[str, FileState]:
    return {path: found for path in _names(repo) if (found := file_state(path))}


def _is_head(found: FileState | None) -> bool:
    """True if the file is a valid HEAD."""
    return found is not None and (found.target.startswith("refs/") or HEAD.match(found.data) is not None)


def _names(repo: Repo) -> Iterator[str]:
    yield os.path.join(repo.common, "config")
    yield os.path.join(repo.folder, "config.worktree")
    yield os.path.join(repo.common, "objects", "info", "alternates")
    yield os.path.join(repo.folder, "rooda")  # the folder itself, without its content
    for folder in (os.path.join(repo.common, "info"), os.path.join(repo.common, "hooks")):
        if os.path.islink(folder):  # restored before its content, so that nothing is written through a wrong link
            yield folder
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        yield from (os.path.join(folder, name) for name in names if not name.endswith(".sample"))
