"""Moves a branch that a work tree of the user has checked out, without touching anything else in that work tree."""

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from rooda.base import files
from rooda.git import command, worktrees
from rooda.git.repository import GitProblem, Repo, find, nul_terminated, read_head
from rooda.processes import table

HEADS = "refs/heads/"
NESTED = "160000"  # the mode of a submodule, whose files rooda leaves alone
LINK = "120000"
NONE = "000000"
INDEX_LOCK = "index.lock"
BEGUN = {"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "sequencer", "rebase-apply", "rebase-merge"}  # by the user
OLD, NEW, GONE, TORN, OTHER = "old", "new", "gone", "torn", "other"


class Change(NamedTuple):
    """A path that differs between two commits."""

    path: str
    old_mode: str
    new_mode: str
    old: str
    new: str


def folders_of(repo: Repo, branch: str) -> list[str]:
    """Return the work trees that have this branch (a full name) checked out, or are rebasing or bisecting it."""
    if (head := _only_head(repo)) is not None:
        is_there = head == f"ref: {branch}" or (head[:4] != "ref:" and _is_rebasing(repo.top, branch))
        return [repo.top] if is_there else []
    found, folder = [], ""
    for row in worktrees.rows(repo):
        if row.startswith("worktree "):
            folder = row.removeprefix("worktree ")
        elif row == f"branch {branch}" or (row == "detached" and _is_rebasing(folder, branch)):
            found.append(folder)
    return found


def _only_head(repo: Repo) -> str | None:
    """Return the content of HEAD if the repository has a single work tree; None if only git can determine it."""
    others = [os.path.join(repo.common, name) for name in ("worktrees", "reftable")]
    if repo.folder != os.path.normpath(repo.common) or any(map(os.path.lexists, others)):
        return None
    try:
        return files.text(os.path.join(repo.folder, "HEAD")).strip() or None
    except (OSError, ValueError):
        return None


def _is_rebasing(folder: str, branch: str) -> bool:
    own = os.path.join(folder, ".git")
    try:
        own = own if os.path.isdir(own) else files.text(own).strip().removeprefix("gitdir: ")
    except OSError:
        return False
    for name in ("rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"):
        try:
            noted = files.text(os.path.join(folder, own, name)).strip()
        except (OSError, ValueError):
            continue
        if branch in (noted, f"{HEADS}{noted}"):
            return True
    return False


@lru_cache(maxsize=16)
def _found(folder: str) -> Repo:
    """Find the repository of a checkout. Its `git status` takes no locks, so that a kill leaves no lock file."""
    repo = find(folder)
    return repo._replace(env={**(os.environ if repo.env is None else repo.env), "GIT_OPTIONAL_LOCKS": "0"})


def obstacle(folder: str, branch: str, tip: str, wanted: Sequence[Change]) -> str:
    """Return why a checkout can't be moved from the commit `tip` by these changes now; "" if it can."""
    try:
        repo = _found(folder)
    except GitProblem as problem:
        return f"{folder} can't be read: {problem.what}"
    if f"{HEADS}{read_head(repo).branch}" != branch:
        return f"{folder} is in the middle of a rebase or bisect"
    if os.path.lexists(os.path.join(repo.folder, INDEX_LOCK)):
        return f"another git command works in {folder}"
    if repo.lines("status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all"):
        return f"{folder} has changes that are not committed"
    if not BEGUN.isdisjoint(files.list_folder(repo.folder)):
        return f"{folder} is in the middle of a merge, cherry-pick, revert or am"
    if path := _in_the_way(repo, tip, wanted):
        return f"{os.path.join(folder, path)} is in the way"
    if warning := command.warning(repo.top):
        return warning
    return ""


def _in_the_way(repo: Repo, tip: str, wanted: Sequence[Change]) -> str:
    """Return the first untracked or ignored path that the changes would overwrite; "" if there is none."""
    found = []
    for change in wanted:
        if change.old_mode == NONE:
            parents = [change.path[:at] for at, sign in enumerate(change.path) if sign == "/"]
            found += [path for path in parents if not _is_folder(os.path.join(repo.top, path))] + [change.path]
    found = [path for path in found if os.path.lexists(os.path.join(repo.top, path))]
    tracked = {*repo.text("ls-tree", "-r", "-z", "--name-only", "--full-tree", tip).split("\0")} if found else ()
    return next((path for path in found if path not in tracked), "")


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def changes(repo: Repo, old: str, new: str) -> list[Change]:
    """Return the paths that differ between two commits."""
    words = ("diff", "--raw", "-z", "--no-abbrev", "--no-renames", "--ignore-submodules=none", old, new)
    rows = repo.text(*words).split("\0")
    found = []
    for facts, path in zip(rows[::2], rows[1::2], strict=False):
        old_mode, new_mode, before, after, _ = facts.removeprefix(":").split(" ")
        found.append(Change(path, old_mode, new_mode, before, after))
    return found


def fast_forward(folder: str, commit: str) -> str:
    """Move branch, index and files of a checkout to a later commit; return git's error, "" if it succeeded."""
    done = _found(folder).run("merge", "-q", "--ff-only", "--no-verify-signatures", "--no-autostash", commit)
    return command.error_text(done) if done.code else ""


# After a kill


def busy(folder: str) -> bool:
    """True if a git command is running in or below this folder; False if there is no /proc to find it."""
    top = os.path.realpath(folder)
    for process in table.all_processes():
        try:
            name = files.read_proc(f"/proc/{process.pid}/comm").strip()
            place = os.readlink(f"/proc/{process.pid}/cwd")
        except OSError:
            continue
        if name.startswith(b"git") and (place == top or place.startswith(f"{top}{os.sep}")):
            return True
    return False


def complete(folder: str, branch: str, old: str, new: str, since: int) -> str:
    """Complete a fast-forward that a kill cut off after it began; return what prevents that, "" if nothing does.

    `since`: change time of the journal, in nanoseconds. A lock file that is older belongs to another git command. A
    checkout that still has all of the old commit is left as it is.
    """
    repo = find(folder)
    locks = _locks(repo, branch, since)
    if locks is None:
        return f"another git command works in {folder}"
    wanted = changes(repo, old, new)
    was_cut_off = os.path.lexists(os.path.join(repo.folder, INDEX_LOCK))
    states = [_content(repo, change, was_cut_off) for change in wanted]
    entries = _entries(repo, [change.path for change in wanted])
    for change, state in zip(wanted, states, strict=True):
        known = ((change.old_mode, change.old), (change.new_mode, change.new))
        if state == OTHER or entries.get(change.path, (NONE, "0" * len(change.old))) not in known:
            return f"{os.path.join(repo.top, change.path)} has changed since a landing was cut off"
    remove_locks(repo, branch, since)
    if not all(_is_untouched(change, state, entries) for change, state in zip(wanted, states, strict=True)):
        _bring(repo, wanted)
        repo.run_checked("update-ref", "-m", "rooda tasks land", branch, new, old)
    return ""


def _is_untouched(change: Change, state: str, entries: dict[str, tuple[str, str]]) -> bool:
    if change.old_mode == NONE:
        return state == GONE and change.path not in entries
    return state == OLD and entries.get(change.path) == (change.old_mode, change.old)


def remove_own_locks(repo: Repo, refs: Iterable[str]) -> None:
    """Remove the lock files that killed git commands left for refs that only rooda sets.

    Call this only after rooda's own git commands have ended. While another git command runs in the repository, no lock
    file is removed.
    """
    left = [path for ref in refs if os.path.lexists(path := os.path.join(repo.common, f"{ref}.lock"))]
    if left and not busy(repo.top):
        for path in left:
            files.remove(path)


def remove_locks(repo: Repo, branch: str, since: int, checked_out: bool = True) -> None:
    """Remove the lock files that a killed git command left for a branch and, if `checked_out`, for its checkout."""
    for name in _locks(repo, branch, since, checked_out) or ():
        files.remove(name)


def _locks(repo: Repo, branch: str, since: int, checked_out: bool = True) -> list[str] | None:
    """Return the lock files that a killed git command left; None if one is older than `since`, or git is running."""
    names = [f"{repo.folder}/{name}" for name in (INDEX_LOCK, "HEAD.lock", "ORIG_HEAD.lock") if checked_out]
    left = [name for name in (*names, f"{repo.common}/{branch}.lock") if os.path.lexists(name)]
    if left and (busy(repo.top) or any(os.lstat(name).st_mtime_ns < since for name in left)):
        return None
    return left


def _content(repo: Repo, change: Change, was_cut_off: bool) -> str:
    """Return OLD or NEW if a path in the work tree has the old or new content, else GONE, TORN or OTHER."""
    path = os.path.join(repo.top, change.path)
    if not os.path.lexists(path):
        return GONE
    if NESTED in (change.old_mode, change.new_mode):
        return OLD
    if os.path.islink(path):
        found = repo.text("hash-object", "--stdin", stdin=files.to_bytes(os.readlink(path)))
    elif os.path.isfile(path):
        found = repo.text("hash-object", "--", change.path)
    else:  # a folder where one of the commits has a file
        return GONE if not files.list_folder(path) or repo.lines("ls-files", "--", f"{change.path}/") else OTHER
    if found in (change.old, change.new):
        return NEW if found == change.new else OLD
    return TORN if was_cut_off and _is_beginning(repo, path, change) else OTHER


def _is_beginning(repo: Repo, path: str, change: Change) -> bool:
    """True if the file has only the beginning of its new content, because git was killed while it wrote the file."""
    if change.new_mode == NONE or os.path.islink(path):
        return False
    whole = repo.run("cat-file", "--filters", f"--path={change.path}", change.new)
    return whole.code == 0 and whole.out.startswith(files.read(path))


def _entries(repo: Repo, paths: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return the mode and the blob of each of these paths that is in the index."""
    wanted, found = {*paths}, {}
    for row in repo.text("ls-files", "-s", "-z").split("\0"):
        facts, _, path = row.partition("\t")
        if path in wanted:
            mode, blob, _ = facts.split(" ")
            found[path] = (mode, blob)
    return found


def _bring(repo: Repo, found: Sequence[Change]) -> None:
    """Set these paths to the new commit, both in the index and in the work tree."""
    repo.run_checked("update-index", "-z", "--index-info", stdin=b"".join(_index_rows(found)))
    for change in found:
        if change.new_mode == NONE and change.old_mode != NESTED:
            path = os.path.join(repo.top, change.path)
            if not os.path.isdir(path):
                files.remove(path)
            files.remove_empty(os.path.dirname(path), repo.top)
    there = [change.path for change in found if change.new_mode not in (NONE, NESTED)]
    repo.run_checked("checkout-index", "-q", "-f", "-u", "-z", "--stdin", stdin=nul_terminated(there))


def _index_rows(found: Sequence[Change]) -> Iterator[bytes]:
    gone = [change for change in found if change.new_mode == NONE]
    for change in (*gone, *(each for each in found if each.new_mode != NONE)):
        yield files.to_bytes(f"{change.new_mode.removeprefix('0') or 0} {change.new}\t{change.path}\0")
