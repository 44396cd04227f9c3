"""Compares paths of a work tree with a git tree, and restores them."""

import os

from rooda.base import files
from rooda.git.repository import Repo, nul_terminated
from rooda.git.work_tree import add_command


def differing(repo: Repo, before: str, now: str) -> list[str]:
    """Return the paths that differ between two git trees, relative to the repository's top."""
    if before == now:
        return []
    return _names(repo.run_checked("diff-tree", "-r", "-z", "--no-renames", "--name-only", before, now))


def git_rules(paths: list[str]) -> list[str]:
    """Return the .gitignore and .gitattributes files among the paths, which must be restored first."""
    return [path for path in paths if os.path.basename(path) in (".gitignore", ".gitattributes")]


def restore(repo: Repo, tree: str, paths: list[str]) -> None:
    """Restore paths from a git tree; delete paths that are not in it, and folders that become empty."""
    if not paths:
        return
    in_tree = set(_names(repo.run_checked("ls-tree", "-r", "-z", "--name-only", "--full-tree", tree)))
    for path in paths:
        if path not in in_tree:
            _remove(repo, path)
    if names := nul_terminated(path for path in paths if path in in_tree):
        listed = ("--pathspec-from-file=-", "--pathspec-file-nul")
        repo.run_checked("restore", f"--source={tree}", "--worktree", "--ignore-unmerged", *listed, stdin=names)
        # refresh the index: line-ending conversion changes the file size, so git would report the file as changed
        repo.run(*add_command(repo), "-f", *listed, stdin=names)


def _remove(repo: Repo, path: str) -> None:
    """Delete a file or link, or an entire nested repository."""
    place = os.path.join(repo.top, path)
    if os.path.islink(place) or not os.path.isdir(place):
        files.remove(place)
    else:
        repo.run("clean", "-ffdxq", "--", path)
    files.remove_empty(os.path.dirname(place), repo.top)


def _names(out: bytes) -> list[str]:
    return [files.to_text(path) for path in out.split(b"\0") if path]
