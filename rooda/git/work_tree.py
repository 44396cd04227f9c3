"""The work tree as it is now, as a tree of git's, by an index of our own. The person's index stays as it is.

Whoever keeps that index has what did not change not read again.
"""

import os
from typing import NamedTuple

from rooda.base import files
from rooda.git import command
from rooda.git.repository import GitProblem, Repo, nul_terminated


class Reading(NamedTuple):
    """What a look at the work tree gave."""

    tree: str
    trouble: str = ""  # what could not be read


def read(repo: Repo, index: str, wary: bool = True) -> Reading:
    """`wary`: other files may be ignored than when the index was used last, also if no .gitignore has changed."""
    found, trouble, changed = _add_all(repo, index)
    if (wary or b".gitignore'\n" in changed) and drop_ignored(repo, index):
        found = repo.text("write-tree", index=index)
    return Reading(found, trouble)


def _add_all(repo: Repo, index: str) -> tuple[str, str, bytes]:
    """The tree, what could not be read, and a list of what has changed since the index was used last.

    One that is damaged, or knows of what is gone, is made again: of the person's, then of nothing.
    """
    for attempt in range(3):
        if attempt == 2:
            files.remove(index)
        elif attempt or not os.path.exists(index):
            copy_index(os.path.join(repo.folder, "index"), index)  # then nothing that is committed must be read
        added = repo.ask(*add_command(repo), "-v", "--ignore-errors", index=index)
        partly = added.code == 1
        made = repo.ask("write-tree", index=index) if partly or not added.code else added
        if made.code == 0:
            return files.to_text(made.out).strip(), command.error_text(added) if partly else "", added.out
    raise GitProblem(f"the work tree can't be read: {command.error_text(made)}")


def add_command(repo: Repo) -> list[str]:
    """In a sparse checkout what is there is looked at, inside its patterns or not, also when it was switched off."""
    if not os.path.exists(os.path.join(repo.folder, "info", "sparse-checkout")):
        return ["add", "-A"]
    return ["-c", "core.sparseCheckout=true", "add", "-A", "--sparse"]


def drop_ignored(repo: Repo, index: str) -> bool:
    """What our index has from before it was ignored goes. What the person's own index has is tracked."""
    question = ("ls-files", "-z", "-i", "-c", "--exclude-standard")
    if not (ignored := repo.text(*question, index=index)):
        return False
    extra = set(ignored.split("\0")) - set(repo.text(*question).split("\0"))
    repo.must("update-index", "-z", "--force-remove", "--stdin", index=index, stdin=nul_terminated(extra))
    return bool(extra)


def read_with_copy(repo: Repo, index: str) -> Reading:
    """Without a word to the index, which somebody may use."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="rooda-") as folder:
        own = os.path.join(folder, "index")
        copy_index(index, own)
        return read(repo, own)


def copy_index(old: str, new: str) -> None:
    """With its time: git looks again at files that are not older than the index, as their times may tell too little."""
    try:
        facts = os.stat(old)
        files.write(new, files.read(old))
        files.copy_times(new, facts)
    except OSError:
        files.remove(new)  # git makes an empty one
