"""Creates, lists and removes git worktrees for loops, and checks whether they have work that exists nowhere else."""

import os
from collections.abc import Iterator
from typing import NamedTuple

from rooda.base import files
from rooda.base.dirs import make_home
from rooda.base.text import counted
from rooda.errors import UsageProblem
from rooda.git import command
from rooda.git.repository import GitProblem, Repo, find
from rooda.git.snapshots import forget, place_of, refs_of_runs, tips

HEADS = "refs/heads/"
TRIES = 1000  # numbers to try for the name of a new worktree


class Worktree(NamedTuple):
    """A worktree that rooda created, such as `.rooda/worktrees/build-1` on the branch `rooda/build-1`."""

    root: str
    branch: str
    workspace: str  # the root, or the folder in it that the loop was started in


def folder_of(workspace: str) -> str:
    return os.path.join(workspace, ".rooda", "worktrees")


def create(repo: Repo, procedure: str) -> Worktree:
    """Create a worktree at HEAD on a new branch. Raises UsageProblem if git fails."""
    if repo.run("rev-parse", "--verify", "-q", "HEAD^{commit}").code:
        raise UsageProblem(f"{repo.top} has no commits yet; a worktree needs one.", "Create a first commit.")
    make_home(os.path.join(repo.workspace, ".rooda"), "worktrees")
    for number in range(1, TRIES):
        own = _worktree(repo, f"{procedure}-{number}")
        if os.path.lexists(own.root) or repo.run("show-ref", "--verify", "-q", HEADS + own.branch).code == 0:
            continue
        done = repo.run("worktree", "add", "-q", "-b", own.branch, own.root, "HEAD")
        if done.code and not os.path.lexists(own.root):
            raise UsageProblem(f"Can't create the worktree: {command.error_text(done)}", "Run it without --worktree.")
        if done.code == 0:
            files.make_folder(own.workspace)
            return own
    raise UsageProblem(f"'{procedure}' already has {TRIES} worktrees.", "Remove merged ones: rooda prune")


def lfs_trouble(repo: Repo) -> str:
    """Return a sentence about Git LFS files of which a worktree would contain only pointers; "" if there are none.

    Raises UsageProblem if git can't check out a worktree at all, because it requires the LFS filter but can't run it.
    """
    listed = repo.run("--no-literal-pathspecs", "ls-files", "-z", "--", ":(top,attr:filter=lfs)")
    paths = [path for path in files.to_text(listed.out).split("\0") if path]
    if not paths or repo.run("lfs", "version").code == 0:
        return ""
    what = f"git LFS is not installed, and it stores {paths[0]}"
    what += f" and {counted(len(paths) - 1, 'more file')}" if paths[1:] else ""
    if repo.run("config", "--type=bool", "filter.lfs.required").out.strip() == b"true":
        hint = "Install git-lfs, or run it without --worktree."
        raise UsageProblem(f"{what}; git can't check out a worktree. Nothing was started.", hint)
    return f"{what}; the worktree only has pointers to them. Install git-lfs: git lfs install"


def count_uncommitted(repo: Repo) -> int:
    """Return the number of paths that differ from HEAD."""
    return len(repo.lines("status", "--porcelain", "--untracked-files=all"))


def list_worktrees(repo: Repo) -> Iterator[Worktree]:
    """Yield the worktrees created from this workspace that are still registered in git."""
    known = {os.path.realpath(path) for path in _registered(repo)}
    place = folder_of(repo.workspace)
    for name in sorted(os.listdir(place)) if os.path.isdir(place) else ():
        own = _worktree(repo, name)
        if os.path.realpath(own.root) in known:
            yield own


def reason_to_keep(repo: Repo, own: Worktree) -> str:
    """Return why the worktree must be kept, namely work that exists nowhere else; "" if it may be removed."""
    inside = find(own.root)
    if count_uncommitted(inside):
        return "it has uncommitted changes"
    tip = repo.run("rev-parse", "--verify", "-q", HEADS + own.branch)
    for commit in {inside.text("rev-parse", "HEAD"), *files.to_text(tip.out).split()}:
        question = ("for-each-ref", f"--contains={commit}", "--format=%(refname)")
        holders = repo.lines(*question, HEADS, "refs/remotes", "refs/tags")
        if not set(holders) - {HEADS + own.branch}:
            return f"it has unmerged commits (git log {own.branch})"
    return ""


def remove(repo: Repo, own: Worktree) -> str:
    """Remove the worktree, its branch and its snapshots; return git's error if it refuses, else ""."""
    tip = files.to_text(repo.run("rev-parse", "--verify", "-q", HEADS + own.branch).out).strip()
    place = place_of(find(own.root)).partition(":")[0]
    done = repo.run("worktree", "remove", own.root)
    if done.code:
        return command.error_text(done)
    if tip:
        repo.run("update-ref", "-d", HEADS + own.branch, tip)
    forget(
        repo, refs_of_runs(repo, [tip.run for tip in tips(repo, everywhere=True) if tip.place.startswith(f"{place}:")])
    )
    return ""


def _worktree(repo: Repo, name: str) -> Worktree:
    root = os.path.join(folder_of(repo.workspace), name)
    return Worktree(root, f"rooda/{name}", os.path.normpath(os.path.join(root, repo.prefix)))


def _registered(repo: Repo) -> list[str]:
    return [row.removeprefix("worktree ") for row in rows(repo) if row.startswith("worktree ")]


def rows(repo: Repo) -> list[str]:
    """Return the lines of `git worktree list --porcelain`; git before 2.36 can't list paths with line breaks."""
    done = repo.run("worktree", "list", "--porcelain", "-z")
    return repo.lines("worktree", "list", "--porcelain") if done.code else files.to_text(done.out).split("\0")


def require_repository(workspace: str) -> Repo:
    """Return the work tree around the folder. Raises UsageProblem if there is none."""
    try:
        return find(workspace)
    except GitProblem as problem:
        raise UsageProblem(f"--worktree: {problem.what}.", problem.hint) from None
