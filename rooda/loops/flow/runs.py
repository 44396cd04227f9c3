"""Finds the runs of a project in the work tree and on branches; begins and reopens runs."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rooda.base import clock, files
from rooda.errors import UsageProblem
from rooda.git.repository import Repo, read_head
from rooda.loops.flow import artifacts, commits, repository
from rooda.loops.flow.artifacts import STATE, STEP, RunFiles
from rooda.loops.flow.boundaries import Boundary
from rooda.loops.flow.commits import LoggedCommit
from rooda.loops.flow.model import (
    CANCELLED,
    ERROR,
    LIMIT,
    RUN_ID,
    RUNNING,
    RUNS,
    STATUSES,
    Node,
    chain,
    next_run_id,
    node_folder,
    run_folder,
)
from rooda.loops.flow.repository import ParkedFiles

KEYS = ("run-id", "status", "active-node-path", "execution-stack", "branch", "base-branch", "task")


class FlowRun(NamedTuple):
    """A run of a flow and the contents of its run-state.md."""

    id: str
    state: dict[str, Any]
    in_work_tree: bool
    parked: ParkedFiles | None = None  # the run's parked files, if another run uses the work tree

    @property
    def status(self) -> str:
        return str(self.state.get("status", ""))

    @property
    def root(self) -> str:
        """The top node's path."""
        return str(self.state["execution-stack"][0])

    @property
    def branch(self) -> str:
        return str(self.state.get("branch", ""))

    @property
    def tip(self) -> str:
        """The revision of the run's last commit."""
        return "HEAD" if self.in_work_tree else repository.head_of(self.branch)


def find_all(repo: Repo) -> list[FlowRun]:
    """Return every run of this project, newest first; files on a run's own branch override other copies."""
    current = read_head(repo).branch
    branches = repository.branches(repo)
    in_tree = {
        name: FlowRun(name, state, True) for name in _ids(_folders(repo)) if (state := _of_work_tree(repo, name))
    }
    found = {name: run for name, run in in_tree.items() if run.branch == current or run.branch not in branches}
    for branch in branches:
        tip = repository.head_of(branch)
        for name in _ids(commits.runs_at(repo, tip)):
            if name not in found and (state := _of_commit(repo, tip, name)).get("branch") == branch:
                found[name] = FlowRun(name, state, branch == current)
    found = {**in_tree, **found}  # a run interrupted before its first commit is only in the work tree
    for parked in repository.all_parked(repo):
        state = _checked(artifacts.text(RunFiles(parked.root, parked.run).state))
        if state and repository.tip_of(repo, str(state["branch"])) == parked.tip:
            found[parked.run] = FlowRun(parked.run, state, False, parked)
    return sorted(found.values(), key=lambda run: run.id, reverse=True)


def _folders(repo: Repo) -> list[str]:
    return files.list_folder(os.path.join(repo.workspace, RUNS))


def _ids(names: Sequence[str]) -> list[str]:
    return [name for name in names if RUN_ID.fullmatch(name)]


def _of_work_tree(repo: Repo, name: str) -> dict[str, Any]:
    """Return a run's state from the work tree; a run whose end is not committed yet counts as running."""
    state = _checked(artifacts.text(RunFiles(repo.workspace, name).state))
    if state and state["status"] != RUNNING and _of_commit(repo, "HEAD", name).get("status") == RUNNING:
        state["status"] = RUNNING
    return state


def _of_commit(repo: Repo, commit: str, name: str) -> dict[str, Any]:
    data = commits.committed(repo, commit, f"{run_folder(name)}/{STATE}")
    return _checked(None if data is None else files.to_text(data))


def _checked(text: str | None) -> dict[str, Any]:
    """Return the keys of run-state.md; {} if it is incomplete or invalid."""
    state = artifacts.read_state(text)
    whole = (
        all(key in state for key in KEYS)
        and isinstance(state.get("execution-stack"), list)
        and state["execution-stack"]
    )
    return state if whole and state["status"] in (*STATUSES, CANCELLED) else {}


def find(runs: Sequence[FlowRun], name: str) -> FlowRun:
    found = next((run for run in runs if run.id == name), None)
    if found is None:
        rows = ", ".join(run.id for run in runs[:5]) or "none"
        raise UsageProblem(f"There is no run {name} here. Runs: {rows}", "Is its branch here? See: git branch")
    return found


def other_open_runs_here(runs: Sequence[FlowRun], branches: Sequence[str], own: str = "") -> list[FlowRun]:
    """Return other open runs whose files are in the work tree; this run's commits would include those files."""
    return [run for run in open_runs(runs) if run.in_work_tree and run.id != own and run.branch in branches]


def open_runs(runs: Sequence[FlowRun]) -> list[FlowRun]:
    return [run for run in runs if run.status == RUNNING]


def begin(repo: Repo, root: Node, task: str, slugs: Sequence[str], more: Mapping[str, Any]) -> dict[str, Any]:
    """Create a run with its branch and folders; return its run-state, which ends with the keys in `more`."""
    runs, branches = find_all(repo), repository.branches(repo)
    for other in other_open_runs_here(runs, branches):
        repository.park(repo, other.id, other.branch, shown=True)
    repository.undo_killed_start(repo, {run.branch for run in runs})
    base = read_head(repo)
    branches = repository.branches(repo)
    tips = [repository.head_of(branch) for branch in branches]
    names = {*_folders(repo), *(name for tip in tips for name in commits.runs_at(repo, tip))}
    names |= {parked.run for parked in repository.all_parked(repo)}
    run = next_run_id(_today(), sorted(names))
    for name in _ids(_folders(repo)):
        artifacts.sweep(RunFiles(repo.workspace, name))  # files left by a killed start would be committed
    files.make_real_folder(repo.workspace, RUNS)  # before the branch, so that a failure leaves no branch
    branch = repository.new_branch(repo, slugs, branches)
    base_branch = base.branch or base.commit
    state: dict[str, Any] = {
        "run-id": run,
        "status": RUNNING,
        "active-node-path": root.path,
        "execution-stack": [root.path],
        "branch": branch,
        "base-branch": base_branch,
        "task": task,
        **more,
    }
    try:
        for node in chain(root):
            files.make_folder(os.path.join(repo.workspace, node_folder(run, node.path)))
        artifacts.write_state(RunFiles(repo.workspace, run), state)
    except OSError:
        files.remove(RunFiles(repo.workspace, run).state)  # it exists if only syncing its folder failed
        repository.delete_new_branch(repo, base_branch, branch)
        raise
    repository.forget_new_branch(repo)
    return state


def reopen(repo: Repo, run: FlowRun, root: Node) -> tuple[dict[str, Any], list[Boundary]]:
    """Reopen a run and its nodes that ended with an error or at the limit; return its run-state and boundaries."""
    artifacts.sweep(RunFiles(repo.workspace, run.id))
    if artifacts.text(RunFiles(repo.workspace, run.id).state) is None:  # deleted, but the branch still has it
        repo.run("restore", "--worktree", "--source=HEAD", "--", repo.inside(run_folder(run.id)))
    logged = commits.history(repo, root.path, run.id)
    if closed := _failed_end(logged, root):
        commits.uncommit(repo, closed[0].commit)
        logged = logged[: -len(closed)]
    repository.unstage(repo)
    boundaries = [each.boundary for each in logged if each.boundary and not _at_limit(each, root)]
    if any(each.state.status == ERROR for each in boundaries):
        hint = "Remove those commits from the branch, or start a new run."
        raise UsageProblem(f"{run.id} ended with an error, and {run.branch} has other commits since then.", hint)
    return _reopen_nodes(RunFiles(repo.workspace, run.id), root, {**run.state, "status": RUNNING}), boundaries


def undone(repo: Repo, run: FlowRun, root: Node) -> list[LoggedCommit]:
    """Return the commits that `rooda undo` undid by restoring the run's files; [] without an undo."""
    logged = commits.history(repo, root.path, run.id)
    iteration, _ = artifacts.progress(RunFiles(repo.workspace, run.id), root)
    found = logged if iteration < 0 and STEP not in run.state else []  # the undo went back to before the first step
    for place, each in enumerate(logged):
        at_top = each.boundary and (each.boundary.path, each.boundary.state.iteration) == (root.path, iteration)
        if at_top and repo.run("diff", "--quiet", each.commit, "--", repo.inside(run_folder(run.id))).code == 0:
            found = logged[place + 1 :]
    if not any(each.boundary for each in found):
        return []
    if not all(each.boundary for each in found):
        hint = "Remove those commits from the branch, or revert the undo: rooda undo --redo"
        raise UsageProblem(f"{run.id} can't go on: it was undone, and {run.branch} has other commits since then.", hint)
    return found


def _at_limit(logged: LoggedCommit, root: Node) -> bool:
    """True if this commit ended the run at its iteration limit."""
    found = logged.boundary
    return found is not None and (found.path, found.state.status) == (root.path, LIMIT)


def _failed_end(logged: Sequence[LoggedCommit], root: Node) -> list[LoggedCommit]:
    """Return the last commits of a run that ended at its limit or with an error; [] otherwise."""
    if logged and _at_limit(logged[-1], root):
        return [logged[-1]]
    found: list[LoggedCommit] = []
    for each in reversed(logged):
        if each.boundary is None or each.boundary.state.status != ERROR:
            break
        found.insert(0, each)
    return found


def _reopen_nodes(place: RunFiles, root: Node, state: dict[str, Any]) -> dict[str, Any]:
    """Set nodes that ended at the limit or with an error back to running; return the run-state."""
    nodes = chain(root)
    ended = [artifacts.progress(place, node)[1] for node in nodes]
    failed = [0] if ended[0] == LIMIT else [depth for depth, status in enumerate(ended) if status == ERROR]
    if not failed:
        return state
    stack = [node.path for node in nodes[: failed[-1] + 1]]
    fresh = {key: value for key, value in state.items() if key != STEP}
    fresh |= {"active-node-path": stack[-1], "execution-stack": stack}
    artifacts.write_state(place, fresh)
    for depth in failed:
        iteration, _ = artifacts.progress(place, nodes[depth])
        artifacts.update(place, nodes[depth], iteration, RUNNING, "")
    return fresh


def _today() -> str:
    day = clock.local_time(clock.now())
    return f"{day.tm_year:04d}{day.tm_mon:02d}{day.tm_mday:02d}"
