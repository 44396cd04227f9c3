"""A git worktree for a loop of its own, on a new branch; and whether one holds work that is nowhere else."""

import os
from collections.abc import Iterator
from typing import NamedTuple

from rooda.base import files
from rooda.base.dirs import make_home
from rooda.errors import UsageProblem
from rooda.git import command
from rooda.git.repository import GitProblem, Repo, find
from rooda.git.snapshots import forget, place_of, refs_of_runs, tips

HEADS = "refs/heads/"
TRIES = 1000


class Worktree(NamedTuple):
    """A worktree that rooda made: `.rooda/worktrees/build-1` on the branch `rooda/build-1`."""

    root: str
    branch: str
    workspace: str  # in it; the root, or the folder that the loop was started in


def folder_of(workspace: str) -> str:
    return os.path.join(workspace, ".rooda", "worktrees")


def create(repo: Repo, procedure: str) -> Worktree:
    """A new one, at HEAD. UsageProblem when git refuses."""
    if repo.ask("rev-parse", "--verify", "-q", "HEAD^{commit}").code:
        raise UsageProblem(f"{repo.top} has no commit yet, and a worktree begins at one.", "Commit something first.")
    make_home(os.path.join(repo.workspace, ".rooda"))
    files.make_folder(folder_of(repo.workspace))
    for number in range(1, TRIES):
        own = _worktree(repo, f"{procedure}-{number}")
        if os.path.lexists(own.root) or repo.ask("show-ref", "--verify", "-q", HEADS + own.branch).code == 0:
            continue
        done = repo.ask("worktree", "add", "-q", "-b", own.branch, own.root, "HEAD")
        if done.code and not os.path.lexists(own.root):
            raise UsageProblem(f"The worktree can't be made: {command.error_text(done)}", "Run it without --worktree.")
        if done.code == 0:
            files.make_folder(own.workspace)
            return own
    raise UsageProblem(f"There are {TRIES} worktrees of '{procedure}' already.", "Remove what is merged: rooda prune")


def count_uncommitted(repo: Repo) -> int:
    """How many paths differ from HEAD."""
    return len(repo.lines("status", "--porcelain", "--untracked-files=all"))


def list_worktrees(repo: Repo) -> Iterator[Worktree]:
    """Those that were made from this workspace; a folder that git does not know as a worktree is none."""
    known = {os.path.realpath(path) for path in _registered(repo)}
    place = folder_of(repo.workspace)
    for name in sorted(os.listdir(place)) if os.path.isdir(place) else ():
        own = _worktree(repo, name)
        if os.path.realpath(own.root) in known:
            yield own


def reason_to_keep(repo: Repo, own: Worktree) -> str:
    """Why it must stay: work in it that is nowhere else. "" when there is none."""
    inside = find(own.root)
    if count_uncommitted(inside):
        return "it has changes that are not committed"
    tip = repo.ask("rev-parse", "--verify", "-q", HEADS + own.branch)
    for commit in {inside.text("rev-parse", "HEAD"), *files.to_text(tip.out).split()}:
        question = ("for-each-ref", f"--contains={commit}", "--format=%(refname)")
        holders = repo.lines(*question, HEADS, "refs/remotes", "refs/tags")
        if not set(holders) - {HEADS + own.branch}:
            return f"it has commits that are merged nowhere (git log {own.branch})"
    return ""


def remove(repo: Repo, own: Worktree) -> str:
    """Worktree, branch and snapshots go. git looks once more, and says why if it does not want to."""
    tip = files.to_text(repo.ask("rev-parse", "--verify", "-q", HEADS + own.branch).out).strip()
    place = place_of(find(own.root)).partition(":")[0]
    done = repo.ask("worktree", "remove", own.root)
    if done.code:
        return command.error_text(done)
    if tip:
        repo.ask("update-ref", "-d", HEADS + own.branch, tip)
    forget(
        repo, refs_of_runs(repo, [tip.run for tip in tips(repo, everywhere=True) if tip.place.startswith(f"{place}:")])
    )
    return ""


def _worktree(repo: Repo, name: str) -> Worktree:
    root = os.path.join(folder_of(repo.workspace), name)
    return Worktree(root, f"rooda/{name}", os.path.normpath(os.path.join(root, repo.prefix)))


def _registered(repo: Repo) -> list[str]:
    """Their paths, which may have a line end in them; before 2.36 git could not say that."""
    done = repo.ask("worktree", "list", "--porcelain", "-z")
    rows = repo.lines("worktree", "list", "--porcelain") if done.code else files.to_text(done.out).split("\0")
    return [row.removeprefix("worktree ") for row in rows if row.startswith("worktree ")]


def require_repository(workspace: str) -> Repo:
    """The work tree that a worktree can be made of; UsageProblem when there is none."""
    try:
        return find(workspace)
    except GitProblem as problem:
        raise UsageProblem(f"--worktree: {problem.what}.", problem.hint) from None
