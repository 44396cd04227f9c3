"""The git repository that a flow works on: can it begin there, where does it stand, on which branch."""

import os
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from rooda.base import clock, files
from rooda.errors import Undecided, UsageProblem
from rooda.git import command
from rooda.git.repository import GitProblem, Repo, find, read_head
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


def found(workspace: str) -> Repo:
    """The repository around the project; UsageProblem when a flow can't work there."""
    try:
        return find(workspace)
    except GitProblem as problem:
        raise UsageProblem(f"A flow keeps its history in git: {problem.what}.", problem.hint) from None


def require_ready(repo: Repo) -> None:
    """Whatever would make a run fail in its middle is found before its beginning."""
    if repo.ask("rev-parse", "--verify", "-q", "HEAD^{commit}").code:
        raise UsageProblem(
            "This repository has no commit yet, and a flow begins from one.", "Commit what is there first."
        )
    for name, what in UNFINISHED.items():
        if os.path.lexists(os.path.join(repo.folder, name)):
            raise UsageProblem(f"In this work tree {what} is not finished.", "Finish or abort it, then start the flow.")
    if repo.ask("var", "GIT_COMMITTER_IDENT").code or repo.ask("var", "GIT_AUTHOR_IDENT").code:
        hint = 'Set it: git config user.name "…" and git config user.email "…"'
        raise UsageProblem("git knows no name and address to commit under.", hint)
    if repo.ask("rev-parse", "--verify", "-q", f"refs/heads/{PREFIX[:-1]}").code == 0:
        hint = f"Rename it: git branch -m {PREFIX[:-1]} another-name"
        raise UsageProblem(f"A branch is called `{PREFIX[:-1]}`, so git can't make `{PREFIX}…`.", hint)


def end_unfinished(repo: Repo) -> str:
    """Nothing that an agent began and left half done becomes part of our commits. Says what it was."""
    begun = [name for name in UNFINISHED if os.path.lexists(os.path.join(repo.folder, name))]
    for name in begun:
        what = name.partition("-")[0] if "-" in name else ""
        repo.ask(
            *(("rebase", "--quit") if what else ("bisect", "reset", "HEAD") if "BISECT" in name else ("reset", "-q"))
        )
        files.remove_tree(os.path.join(repo.folder, name))  # what git does not take for one it leaves there
    return f"left {UNFINISHED[begun[0]]} half done; it is ended, its changes stay" if begun else ""


def marks(repo: Repo, branch: str) -> tuple[tuple[int, ...], ...]:
    """Change whenever HEAD or its branch is moved: asking git costs a process. Nothing where refs are no files."""
    paths = (os.path.join(repo.folder, "HEAD"), os.path.join(repo.common, "refs", "heads", branch))
    try:
        found = [os.lstat(path) for path in paths]
    except OSError:
        return ()
    return tuple((each.st_ino, each.st_size, each.st_mtime_ns, each.st_ctime_ns) for each in found)


def dirty(repo: Repo) -> list[tuple[str, str]]:
    """Status word and path of everything that is not committed, paths as the repository names them."""
    entries = repo.must("status", "--porcelain", "-z", "--untracked-files=all", "--no-renames").split(b"\0")
    return [(files.to_text(entry[:2]), files.to_text(entry[3:])) for entry in entries if entry]


def head_of(branch: str) -> str:
    """Its whole name, which no tag has."""
    return f"refs/heads/{branch}"


def branches(repo: Repo) -> list[str]:
    """The local branches of flows, by the time of their last commit, newest first."""
    how = ("--sort=-committerdate", "--format=%(refname:lstrip=2)")
    return repo.lines("for-each-ref", *how, f"refs/heads/{PREFIX[:-1]}/")


def new_branch(repo: Repo, names: Sequence[str], known: Sequence[str]) -> str:
    """Made and checked out: the first of the names that is free. A branch below a name takes it as well.

    It is noted first, with where it comes from, until `settled`.
    """
    taken = {*known, *("/".join(name.split("/")[:2]) for name in known)}
    free = next((name for name in names if name not in taken), "")
    if not free:
        hint = "Delete some, or word the task otherwise."
        raise Undecided(f"All branches from {names[0]} to {names[-1]} are taken.", hint)
    here = read_head(repo)
    files.make_folder(os.path.dirname(_note(repo)))
    files.replace(_note(repo), files.to_bytes("\n".join((free, here.commit, here.branch or here.commit))))
    repo.must("checkout", "-q", "--no-track", "-b", free)
    return free


def settled(repo: Repo) -> None:
    """The new branch has a run."""
    files.remove(_note(repo))


def _note(repo: Repo) -> str:
    return os.path.join(repo.folder, "rooda", "flow-branch")


def take_back_branch(repo: Repo, before: str, branch: str) -> None:
    """As if `new_branch` had not been, where that is still possible."""
    if not repo.ask("checkout", "-q", before).code:
        repo.ask("branch", "-q", "-D", branch)


def back_from(repo: Repo, runs: Collection[str]) -> None:
    """A start that was killed between its branch and its first file: back to where it came from.

    `runs` are the branches that runs have. One that somebody has committed on, or made without us, is no leftover.
    """
    noted = files.to_text(files.read_ours_if_exists(_note(repo)) or b"").split("\n")
    settled(repo)
    here = read_head(repo)
    if noted[:2] == [here.branch, here.commit] and here.branch not in runs:
        take_back_branch(repo, noted[2], here.branch)


def check_out(repo: Repo, branch: str) -> None:
    done = repo.ask("checkout", "-q", branch)
    if done.code:
        hint = f"Commit, stash or remove what is in the way, or type: git checkout {branch}"
        raise Undecided(f"The run's branch {branch} can't be checked out: {command.error_text(done)}", hint)


def unstage(repo: Repo) -> None:
    """Nothing is staged but what a boundary stages itself; the files stay as they are."""
    repo.ask("reset", "-q")


def has_hooks(repo: Repo) -> bool:
    """Could a commit change files?"""
    said = command.run(["rev-parse", "--git-path", "hooks"], repo.top, env=repo.env, hooks=True).out
    folder = os.path.join(repo.top, said.decode("utf-8", "surrogateescape").rstrip("\n"))
    try:
        names = [name for name in os.listdir(folder) if not name.endswith(".sample")]
    except OSError:
        return False
    return any(os.access(os.path.join(folder, name), os.X_OK) for name in names)


def unlock(repo: Repo, patience: float = 1.0) -> list[str]:
    """Lock files of git that a killed run left behind. A living git's own are gone within `patience`."""
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


# What an open run has not committed, kept in git's folder while another run has the work tree.


class Aside(NamedTuple):
    """One run's files, below `root` as they lay below the project."""

    run: str
    tip: str
    root: str

    @property
    def files(self) -> str:
        return os.path.join(self.root, run_folder(self.run))


def all_aside(repo: Repo) -> Iterator[Aside]:
    top = _top(repo)
    for name in sorted(os.listdir(top)) if os.path.isdir(top) else ():
        run, _, tip = name.partition("-")
        found = Aside(run, tip, os.path.join(top, name))
        if RUN_ID.fullmatch(run) and os.path.isdir(found.files):
            yield found


def put_aside(repo: Repo, run: str, branch: str) -> None:
    """In one step; the work tree has the files as they were committed then, or none."""
    tip = tip_of(repo, branch)
    aside = Aside(run, tip, os.path.join(_top(repo), f"{run}-{tip}"))
    files.remove_tree(aside.files)
    files.make_folder(os.path.dirname(aside.files))
    files.rename(os.path.join(repo.workspace, run_folder(run)), aside.files)
    repo.ask("restore", "--staged", "--worktree", "--source=HEAD", "--", repo.inside(run_folder(run)))


def bring_back(repo: Repo, aside: Aside) -> None:
    """On the run's branch. Cut off anywhere, it is done again."""
    place = os.path.join(repo.workspace, run_folder(aside.run))
    files.remove_tree(place)
    files.make_folder(os.path.dirname(place))
    files.rename(aside.files, place)
    files.remove_tree(aside.root)


def tip_of(repo: Repo, branch: str) -> str:
    return files.to_text(repo.ask("rev-parse", "-q", "--verify", f"refs/heads/{branch}").out).strip()


def _top(repo: Repo) -> str:
    return os.path.join(repo.common, "rooda", "aside")


# The lock of the flow that works in a work tree, and whose it is.


def lock_path(git_folder: str) -> str:
    """Inside the work tree's git folder: one flow moves its branch."""
    return os.path.join(git_folder, "rooda", "locks", "flow.lock")


def running_name(path: str) -> str:
    """The run that the holder of the lock works at."""
    run = lock.owner(path).get("run")
    return folder.loop_of(run) if isinstance(run, str) else ""
