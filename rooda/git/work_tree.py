"""Reads the work tree as a git tree through rooda's own index; the user's index stays untouched.

If the index is kept, git reads only files that have changed since it was last used.
"""

import os
from typing import NamedTuple

from rooda.base import files
from rooda.git import command
from rooda.git.private import PrivateFiles
from rooda.git.repository import GitProblem, Repo, nul_terminated
from rooda.processes.capture import Captured


class Reading(NamedTuple):
    """A work tree read as a git tree, and the files that are missing from it."""

    tree: str
    trouble: str = ""  # files that could not be read
    left_out: tuple[str, ...] = ()  # private files
    changed: bytes = b""  # git's list of the changes since the index was last used


def read(repo: Repo, index: str, wary: bool = True, private: PrivateFiles | None = None) -> Reading:
    """Read the work tree as a git tree, without the files that `private` finds.

    `wary`: true if ignore rules outside of .gitignore files may have changed since the index was last used.
    """
    left_out = private.find(index) if private else []
    found, trouble, changed = _add_all(repo, index, left_out)
    if (wary or b".gitignore'\n" in changed) and drop_ignored(repo, index):
        found = repo.text("write-tree", index=index)
    return Reading(found, trouble, tuple(left_out), changed)


def _add_all(repo: Repo, index: str, left_out: list[str]) -> tuple[str, str, bytes]:
    """Return the tree, an error about unreadable files, and git's list of changes since the index was last used.

    A damaged index is replaced by a copy of the user's index, and if that fails too, by an empty one.
    """
    for attempt in range(3):
        if attempt == 2:
            files.remove(index)
        elif attempt or not os.path.exists(index):
            copy_index(os.path.join(repo.folder, "index"), index)  # so that git need not read committed files
            _show_hidden(repo, index)
        added = _add(repo, index, left_out)
        partly = added.code == 1
        made = repo.run("write-tree", index=index) if partly or not added.code else added
        if made.code == 0:
            return files.to_text(made.out).strip(), command.error_text(added) if partly else "", added.out
    raise GitProblem(f"the work tree can't be read: {command.error_text(made)}")


def _show_hidden(repo: Repo, index: str) -> None:
    """Clear skip-worktree and assume-unchanged in rooda's index for existing files, since git would skip them."""
    try:
        with_bits = files.read(index, files.LARGEST_OF_GIT)[4:8] > b"\0\0\0\2"  # the first version with skip-worktree
    except OSError:
        return
    if not with_bits:
        return
    rows = repo.text("ls-files", "-z", "-v", index=index).split("\0")
    for option, letters in (("--no-skip-worktree", "Ss"), ("--no-assume-unchanged", "hsmrck")):
        hidden = (row[2:] for row in rows if row[:1] and row[0] in letters)
        if there := [path for path in hidden if os.path.lexists(os.path.join(repo.top, path))]:
            repo.run_checked("update-index", "-z", option, "--stdin", index=index, stdin=nul_terminated(there))


def _add(repo: Repo, index: str, left_out: list[str]) -> Captured:
    """Add everything but the files to leave out, which are removed from the index if an earlier snapshot added them."""
    words = [*add_command(repo), "-v", "--ignore-errors"]
    if not left_out:
        return repo.run(*words, index=index)
    places = nul_terminated([":/", *(f":(top,exclude,literal){path}" for path in left_out)])
    words = ["--no-literal-pathspecs", *words, "--pathspec-from-file=-", "--pathspec-file-nul"]
    added = repo.run(*words, index=index, stdin=places)
    drop = ("update-index", "-z", "--force-remove", "--stdin")
    dropped = repo.run(*drop, index=index, stdin=nul_terminated(left_out)) if added.code in (0, 1) else added
    return dropped if dropped.code else added


def add_command(repo: Repo) -> list[str]:
    """Return the git command that adds everything, including files outside the patterns of a sparse checkout."""
    if not os.path.exists(os.path.join(repo.folder, "info", "sparse-checkout")):
        return ["add", "-A"]
    return ["-c", "core.sparseCheckout=true", "add", "-A", "--sparse"]


def drop_ignored(repo: Repo, index: str) -> bool:
    """Remove from rooda's index all ignored files that the user's index lacks; return True if there were any."""
    question = ("ls-files", "-z", "-i", "-c", "--exclude-standard")
    if not (ignored := repo.text(*question, index=index)):
        return False
    extra = set(ignored.split("\0")) - set(repo.text(*question).split("\0"))
    repo.run_checked("update-index", "-z", "--force-remove", "--stdin", index=index, stdin=nul_terminated(extra))
    return bool(extra)


def read_with_copy(repo: Repo, index: str, private: PrivateFiles | None = None) -> Reading:
    """Read the work tree through a copy of the index, since another process may be using the original."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="rooda-") as folder:
        own = os.path.join(folder, "index")
        copy_index(index, own)
        return read(repo, own, private=private)


def copy_index(old: str, new: str) -> None:
    """Copy an index with its timestamps, since git re-reads files that are not older than the index."""
    try:
        facts = os.stat(old)
        files.write(new, files.read(old, files.LARGEST_OF_GIT))
        files.copy_times(new, facts)
    except OSError:
        files.remove(new)  # git creates an empty one
