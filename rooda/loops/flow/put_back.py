"""Paths of a work tree as a tree of git's has them: what differs, and putting it back."""

import os

from rooda.base import files
from rooda.git.repository import Repo, listing
from rooda.git.work_tree import adding


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
    if names := listing(path for path in paths if path in there):
        listed = ("--pathspec-from-file=-", "--pathspec-file-nul")
        repo.must("restore", f"--source={tree}", "--worktree", "--ignore-unmerged", *listed, stdin=names)
        # git takes a file for changed whose length is another than in the index, as translated line ends make it
        repo.ask(*adding(repo), "-f", *listed, stdin=names)


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
