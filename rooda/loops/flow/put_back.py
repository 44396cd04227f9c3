"""Paths of a work tree as a tree of git's has them: what differs, and putting it back."""

import os
from typing import NamedTuple

from rooda.base import files
from rooda.git.repository import Repo, nul_terminated
from rooda.git.work_tree import add_command


def differing(repo: Repo, before: str, now: str) -> list[str]:
    """As the repository names them."""
    if before == now:
        return []
    return _names(repo.must("diff-tree", "-r", "-z", "--no-renames", "--name-only", before, now))


def rules(paths: list[str]) -> list[str]:
    """Those that say which other files are there for git, and what is in them: they are put back first."""
    return [path for path in paths if os.path.basename(path) in (".gitignore", ".gitattributes")]


def put_back(repo: Repo, tree: str, paths: list[str]) -> None:
    """What the tree does not have goes, with the folders that become empty by that, as git does it."""
    if not paths:
        return
    there = set(_names(repo.must("ls-tree", "-r", "-z", "--name-only", "--full-tree", tree)))
    for path in paths:
        if path not in there:
            _remove(repo, path)
    if names := nul_terminated(path for path in paths if path in there):
        listed = ("--pathspec-from-file=-", "--pathspec-file-nul")
        repo.must("restore", f"--source={tree}", "--worktree", "--ignore-unmerged", *listed, stdin=names)
        # git takes a file for changed whose length is another than in the index, as translated line ends make it
        repo.ask(*add_command(repo), "-f", *listed, stdin=names)


def _remove(repo: Repo, path: str) -> None:
    """A path that git knows is a file or a link, or a repository that was made there: that goes as a whole."""
    place = os.path.join(repo.top, path)
    if os.path.islink(place) or not os.path.isdir(place):
        files.remove(place)
    else:
        repo.ask("clean", "-ffdxq", "--", path)
    files.remove_empty(os.path.dirname(place), repo.top)


def _names(out: bytes) -> list[str]:
    return [files.to_text(path) for path in out.split(b"\0") if path]


# What has a name on the disk, of whatever kind, as it was before a call; and putting it back.


class Entry(NamedTuple):
    """A file; or a link in its place, since people link files of git's, or a folder."""

    data: bytes = b""
    mode: int = 0
    target: str = ""  # of a link
    folder: bool = False


OTHER = Entry(mode=-1)  # no ordinary file, or one that can't be read


def entry(path: str) -> Entry | None:
    """None where nothing is."""
    try:
        if os.path.islink(path):
            return Entry(target=os.readlink(path))
        if os.path.isdir(path):
            return Entry(folder=True)
        return Entry(files.read_ours(path), os.stat(path).st_mode & 0o777)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return OTHER


def put(path: str, old: Entry | None) -> None:
    """As it was. Whatever has the name now goes, and so does what stands in the place of a folder above."""
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
