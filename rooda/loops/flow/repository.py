"""Prepares a git repository for a flow: checks it, manages branches and locks, and parks the files of other runs."""

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from rooda.base import clock, files
from rooda.errors import Undecided, UsageProblem
from rooda.git import command
from rooda.git.repository import GitProblem, Repo, read_head
from rooda.git.repository import find as find_repository
from rooda.loops.flow.model import PREFIX, RUN_ID, run_folder
from rooda.processes import lock
from rooda.run import folder

UNFINISHED = {
    "MERGE_HEAD": "a merge",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "BISECT_LOG": "a bisection",
}


def find(workspace: str) -> Repo:
    """Return the project's repository; raise UsageProblem if there is none."""
    try:
        return find_repository(workspace)
    except GitProblem as problem:
        raise UsageProblem(f"A flow needs git to keep its history, but {problem.what}.", problem.hint) from None


def require_ready(repo: Repo) -> None:
    """Raise UsageProblem if a run would fail later because of the repository's state."""
    if repo.run("rev-parse", "--verify", "-q", "HEAD^{commit}").code:
        raise UsageProblem("This repository has no commits yet; a flow needs one.", "Make a first commit.")
    for name, what in UNFINISHED.items():
        if os.path.lexists(os.path.join(repo.folder, name)):
            raise UsageProblem(f"In this work tree, {what} is unfinished.", "Finish or abort it, then start the flow.")
    if repo.run("var", "GIT_COMMITTER_IDENT").code or repo.run("var", "GIT_AUTHOR_IDENT").code:
        hint = 'Set it: git config user.name "…" and git config user.email "…"'
        raise UsageProblem("git has no name and email address for commits.", hint)
    if repo.run("rev-parse", "--verify", "-q", f"refs/heads/{PREFIX[:-1]}").code == 0:
        hint = f"Rename it: git branch -m {PREFIX[:-1]} another-name"
        raise UsageProblem(f"A branch is called `{PREFIX[:-1]}`, so git can't create branches named `{PREFIX}…`.", hint)


def end_unfinished(repo: Repo) -> str:
    """End an operation, such as a merge, that an agent left unfinished; return a message, or "" if there was none."""
    begun = [name for name in UNFINISHED if os.path.lexists(os.path.join(repo.folder, name))]
    for name in begun:
        what = name.partition("-")[0] if "-" in name else ""
        repo.run(
            *(("rebase", "--quit") if what else ("bisect", "reset", "HEAD") if "BISECT" in name else ("reset", "-q"))
        )
        files.remove_tree(os.path.join(repo.folder, name))  # git doesn't remove damaged state files
    return f"left {UNFINISHED[begun[0]]} half done; it was ended, its changes stay" if begun else ""


def head_fingerprint(repo: Repo, branch: str) -> tuple[tuple[int, ...], ...]:
    """Return a fingerprint that changes when HEAD or the branch moves; () if refs aren't files. Does not run git."""
    paths = (os.path.join(repo.folder, "HEAD"), os.path.join(repo.common, "refs", "heads", branch))
    try:
        found = [os.lstat(path) for path in paths]
    except OSError:
        return ()
    return tuple((each.st_ino, each.st_size, each.st_mtime_ns, each.st_ctime_ns) for each in found)


def dirty(repo: Repo) -> list[tuple[str, str]]:
    """Return the status code and path of each uncommitted change; paths are relative to the repository's top."""
    entries = repo.run_checked("status", "--porcelain", "-z", "--untracked-files=all", "--no-renames").split(b"\0")
    return [(files.to_text(entry[:2]), files.to_text(entry[3:])) for entry in entries if entry]


def head_of(branch: str) -> str:
    """Return the full ref name of a branch, which can't be confused with a tag."""
    return f"refs/heads/{branch}"


def branches(repo: Repo) -> list[str]:
    """Return the local branches of flows, sorted by their last commit, newest first."""
    how = ("--sort=-committerdate", "--format=%(refname:lstrip=2)")
    return repo.lines("for-each-ref", *how, f"refs/heads/{PREFIX[:-1]}/")


def new_branch(repo: Repo, names: Sequence[str], known: Sequence[str]) -> str:
    """Create and check out a branch with the first free name; return the name.

    A name also counts as taken if a branch NAME/… exists. Until `forget_new_branch` is called, a note names the branch
    and its origin, so that a killed start can be undone.
    """
    taken = {*known, *("/".join(name.split("/")[:2]) for name in known)}
    free = next((name for name in names if name not in taken), "")
    if not free:
        hint = "Delete some, or change the wording of the task."
        raise Undecided(f"All branches from {names[0]} to {names[-1]} are taken.", hint)
    here = read_head(repo)
    files.make_folder(os.path.dirname(_note_path(repo)))
    files.replace(_note_path(repo), files.to_bytes("\n".join((free, here.commit, here.branch or here.commit))))
    repo.run_checked("checkout", "-q", "--no-track", "-b", free)
    return free


def forget_new_branch(repo: Repo) -> None:
    """Delete the note about the new branch. Call this once a run exists on the branch."""
    files.remove(_note_path(repo))


def _note_path(repo: Repo) -> str:
    return os.path.join(repo.folder, "rooda", "flow-branch")


def delete_new_branch(repo: Repo, before: str, branch: str) -> None:
    """Undo `new_branch` if the earlier branch can be checked out."""
    if not repo.run("checkout", "-q", before).code:
        repo.run("branch", "-q", "-D", branch)


def undo_killed_start(repo: Repo, runs: Collection[str]) -> None:
    """Undo a start that was killed after it created its branch but before its first file.

    `runs`: the branches that have runs. A branch with commits of its own, or without a note, is kept.
    """
    note = files.to_text(files.read_ours_if_exists(_note_path(repo)) or b"").split("\n")
    forget_new_branch(repo)
    here = read_head(repo)
    if note[:2] == [here.branch, here.commit] and here.branch not in runs:
        delete_new_branch(repo, note[2], here.branch)


def check_out(repo: Repo, branch: str) -> None:
    done = repo.run("checkout", "-q", branch)
    if done.code:
        hint = f"Commit, stash or remove the conflicting files, or run: git checkout {branch}"
        raise Undecided(f"The run's branch {branch} can't be checked out: {command.error_text(done)}", hint)


def unstage(repo: Repo) -> None:
    """Unstage everything; files are not changed."""
    repo.run("reset", "-q")


def has_hooks(repo: Repo) -> bool:
    """True if the repository has executable hooks, which may change files during a commit."""
    said = command.run(["rev-parse", "--git-path", "hooks"], repo.top, env=repo.env, hooks=True).out
    folder = os.path.join(repo.top, said.decode("utf-8", "surrogateescape").rstrip("\n"))
    try:
        names = [name for name in os.listdir(folder) if not name.endswith(".sample")]
    except OSError:
        return False
    return any(os.access(os.path.join(folder, name), os.X_OK) for name in names)


def unlock(repo: Repo, patience: float = 1.0) -> list[str]:
    """Delete a killed git's lock files, after giving a running git `patience` seconds to finish; return their paths."""
    names = [os.path.join(repo.folder, name) for name in ("index.lock", "HEAD.lock", "ORIG_HEAD.lock")]
    names.append(os.path.join(repo.common, "packed-refs.lock"))
    for below, _, inside in os.walk(os.path.join(repo.common, "refs", "heads", PREFIX)):
        names += [os.path.join(below, name) for name in inside if name.endswith(".lock")]
    deadline = clock.monotonic() + patience
    left = names
    while (left := [name for name in left if os.path.lexists(name)]) and clock.monotonic() < deadline:
        clock.sleep(0.02)
    for name in left:
        files.remove(name)
    return left


# Parked files: files of an open run, moved into git's folder while another run uses the work tree.


class ParkedFiles(NamedTuple):
    """The files of one run, moved out of the project's folder to `root` while other runs use the work tree."""

    run: str
    tip: str
    root: str

    @property
    def files(self) -> str:
        return os.path.join(self.root, run_folder(self.run))

    @property
    def note(self) -> str:
        """The file that names the work tree which shows these files while no flow runs in it."""
        return os.path.join(self.root, "work-tree")


def all_parked(repo: Repo) -> Iterator[ParkedFiles]:
    top = _parking_folder(repo)
    for name in sorted(os.listdir(top)) if os.path.isdir(top) else ():
        run, _, tip = name.partition("-")
        found = ParkedFiles(run, tip, os.path.join(top, name))
        if RUN_ID.fullmatch(run) and os.path.isdir(found.files):
            yield found


def park(repo: Repo, run: str, branch: str, shown: bool = False) -> None:
    """Move the run's folder out of the project; the work tree keeps the version committed on the current branch.

    `shown`: the work tree shows the parked files whenever no flow runs in it.
    """
    tip = tip_of(repo, branch)
    parked = ParkedFiles(run, tip, os.path.join(_parking_folder(repo), f"{run}-{tip}"))
    files.remove_tree(parked.files)
    files.make_folder(os.path.dirname(parked.files))
    if shown:
        files.write(parked.note, files.to_bytes(repo.workspace))
    _park(repo, parked)


def _park(repo: Repo, parked: ParkedFiles) -> None:
    files.rename(_folder_of(repo, parked), parked.files)
    _restore(repo, parked)


def _restore(repo: Repo, parked: ParkedFiles) -> None:
    repo.run("restore", "--staged", "--worktree", "--source=HEAD", "--", repo.inside(run_folder(parked.run)))


def _folder_of(repo: Repo, parked: ParkedFiles) -> str:
    return os.path.join(repo.workspace, run_folder(parked.run))


def hide_parked(repo: Repo) -> None:
    """Remove the files that `show_parked` put into the work tree; keep the user's changes in the parked files."""
    for parked in _shown_in(repo):
        if not os.path.lexists(_folder_of(repo, parked)):
            _restore(repo, parked)
        elif repo.run("status", "--porcelain", "-z", "--", repo.inside(run_folder(parked.run))).out:
            files.remove_tree(parked.files)
            _park(repo, parked)


def show_parked(repo: Repo) -> None:
    """Put copies of open runs' parked files back into the work tree; ignore errors."""
    for parked in _shown_in(repo):
        place, copy = _folder_of(repo, parked), os.path.join(parked.root, "shown")
        with suppress(OSError):
            files.remove_tree(copy)
            _copy_tree(parked.files, copy)
            files.remove_tree(place)
            files.make_folder(os.path.dirname(place))
            files.rename(copy, place)


@contextmanager
def parked_hidden(repo: Repo) -> Iterator[None]:
    """Hide parked files while a session starts; if the start fails, show them again, as a session does at its end."""
    hide_parked(repo)
    try:
        yield
    except BaseException:
        show_parked(repo)
        raise


def _shown_in(repo: Repo) -> list[ParkedFiles]:
    here = files.to_bytes(repo.workspace)
    return [parked for parked in all_parked(repo) if files.read_ours_if_exists(parked.note) == here]


def _copy_tree(source: str, target: str) -> None:
    for place, inner, names in os.walk(source):
        there = os.path.normpath(os.path.join(target, os.path.relpath(place, source)))
        files.make_folder(there)
        for name in (*names, *inner):
            path = os.path.join(place, name)
            if os.path.islink(path):
                files.link(os.path.join(there, name), os.readlink(path))
            elif os.path.isfile(path):
                files.copy(path, os.path.join(there, name))


def unpark(repo: Repo, parked: ParkedFiles) -> None:
    """Move the run's parked folder back into the work tree; safe to repeat after an interruption."""
    place = os.path.join(repo.workspace, run_folder(parked.run))
    files.remove_tree(place)
    files.make_folder(os.path.dirname(place))
    files.rename(parked.files, place)
    files.remove_tree(parked.root)


def tip_of(repo: Repo, branch: str) -> str:
    return files.to_text(repo.run("rev-parse", "-q", "--verify", f"refs/heads/{branch}").out).strip()


def _parking_folder(repo: Repo) -> str:
    return os.path.join(repo.common, "rooda", "aside")


# The work tree's lock, held by the running flow.


def lock_path(git_folder: str) -> str:
    """Return the path of the work tree's lock file, which lets only one flow run at a time."""
    return os.path.join(git_folder, "rooda", "locks", "flow.lock")


def running_name(path: str) -> str:
    """Return the id of the run that holds the lock; "" if unknown."""
    run = lock.owner(path).get("run")
    return folder.loop_of(run) if isinstance(run, str) else ""
