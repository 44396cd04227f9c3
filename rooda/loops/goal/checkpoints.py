"""Runs the git operations of goals: checkpoints (snapshots with their own refs), rollback, diff since the start."""

import os
from functools import cache

from rooda.base import files
from rooda.base.dirs import make_home
from rooda.errors import UsageProblem
from rooda.git import command, restore, work_tree
from rooda.git.private import PrivateFiles
from rooda.git.repository import GitProblem, Repo, find, nul_terminated, read_head
from rooda.git.restore import Plan
from rooda.git.retention import BEFORE, Snapshot, belongs_to_another_loop
from rooda.git.snapshots import CHECKPOINTS, commit_snapshot, index_of, place_of, prepare_index, set_refs, tips

NO_REPOSITORY = "no git repository here"
GOAL = "goal"


def within(workspace: str) -> bool:
    """True if the workspace is in a git work tree."""
    return _users_repository(workspace) is not None


def _users_repository(workspace: str) -> Repo | None:
    try:
        return find(workspace)
    except GitProblem:
        return None


def _private_repository(workspace: str) -> Repo:
    """Return a private repository, created if missing; it gives judges a diff if the user has no repository."""
    folder = os.path.join(workspace, ".rooda", "goal.git")
    repo = Repo(workspace, workspace, "", folder, folder, separate=True)
    if repo.run("rev-parse", "--git-dir").code:
        make_home(os.path.dirname(folder))
        command.run(["init", "-q", "--bare", folder], workspace)
    return repo


@cache
def _private_files(repo: Repo, everything: bool = False) -> PrivateFiles | None:
    """Return the private files that snapshots omit, listed once per session; None if `everything` is set."""
    return None if everything else PrivateFiles(repo, kept=True)


def tree(workspace: str, everything: bool) -> str:
    """Write the work tree to git and return the tree's hash; `everything` includes private files. "" if git fails."""
    repo = _users_repository(workspace) or _private_repository(workspace)
    try:
        return work_tree.read(repo, prepare_index(repo, GOAL), private=_private_files(repo, everything)).tree
    except (GitProblem, OSError):
        return ""


def checkpoint(workspace: str, run: str, number: int, everything: bool) -> str:
    """Save the work tree as the run's checkpoint `number`; return the error, or "" on success."""
    repo = _users_repository(workspace)
    if repo is None:
        return NO_REPOSITORY
    try:
        _save(repo, run, number, str(number), everything)
    except GitProblem as problem:
        return problem.what
    except OSError as problem:
        return f"{problem.filename or 'the work tree'}: {problem.strerror or problem}"
    return ""


def _save(repo: Repo, run: str, iteration: int, name: str, everything: bool = False) -> Snapshot:
    seen = work_tree.read(repo, prepare_index(repo, GOAL), private=_private_files(repo, everything))
    facts = (iteration, BEFORE, iteration, place_of(repo), *read_head(repo), seen.trouble)
    made = Snapshot(run, GOAL, GOAL, GOAL, *facts, tree=seen.tree, private=seen.left_out)
    made = made._replace(commit=commit_snapshot(repo, made))
    set_refs(repo, made.commit, f"{CHECKPOINTS}{run}/{name}")
    return made


def checkpoints(workspace: str, run: str) -> dict[str, str]:
    """Return the run's checkpoints, oldest first, as a map from name to commit."""
    repo, wanted = _users_repository(workspace), f"{CHECKPOINTS}{run}/"
    rows = repo.lines("for-each-ref", "--format=%(refname) %(objectname)", wanted) if repo else []
    found = {name.removeprefix(wanted): commit for name, _, commit in (row.partition(" ") for row in rows)}
    return dict(sorted(found.items(), key=lambda pair: (not pair[0].isdecimal(), len(pair[0]), pair[0])))


def rolled_back(workspace: str, run: str, name: str) -> tuple[Plan, str]:
    """Save the work tree as a new checkpoint and restore `name`; return the changes and the new checkpoint's name."""
    known = checkpoints(workspace, run)
    if name not in known:
        there = ", ".join(known) or "none"
        raise UsageProblem(f"This goal has no checkpoint {name!r}. Available: {there}.")
    repo = find(workspace)
    present_name = base = f"before-rollback-to-{name}"
    count = 1
    while present_name in known:  # don't overwrite the checkpoint of an earlier rollback
        count += 1
        present_name = f"{base}-{count}"
    kept = _save(repo, run, 0, present_name)
    (target,) = tips(repo, everywhere=True, pattern=f"{CHECKPOINTS}{run}/{name}")
    left_out = {*kept.private, *target.private}
    plan = restore.plan(repo, kept.tree, target.tree, lambda path: belongs_to_another_loop(path, kept), left_out)
    restore.apply(repo, index_of(repo, GOAL), plan)
    return plan, present_name


def diff(workspace: str, base: str, everything: bool, *options: str) -> str:
    """Return the diff from the tree `base` to the work tree; `options` are passed to git. "" if git fails."""
    if not base:
        return ""
    repo = _users_repository(workspace) or _private_repository(workspace)
    try:
        now = work_tree.read_with_copy(repo, index_of(repo, GOAL), _private_files(repo, everything)).tree
    except (GitProblem, OSError):
        return ""
    done = repo.run("diff", "--no-color", "--no-ext-diff", "--no-textconv", *options, base, now)
    return done.out.decode("utf-8", "replace") if done.code == 0 else ""


def ignored(workspace: str, paths: list[str]) -> set[str]:
    """Return those of the given paths that git ignores."""
    words = ["--no-literal-pathspecs", "check-ignore", "-z", "--stdin"]
    done = command.run(words, workspace, stdin=nul_terminated(paths)) if paths else None
    return {path for path in files.to_text(done.out).split("\0") if path} if done else set()
