"""`rooda flow resume [RUN]`: go on with an interrupted run, on its branch."""

from collections.abc import Sequence

import click

from rooda.base.json import Json
from rooda.errors import ConfigProblem, Undecided, UsageProblem
from rooda.git.repository import Repo, position
from rooda.loops import launch, options
from rooda.loops.flow import artifacts, commits, flow_aside
from rooda.loops.flow import repository as flow_repository
from rooda.loops.flow import runs as flow_runs
from rooda.loops.flow.artifacts import Files
from rooda.loops.flow.flow_labels import in_chain, run_folder
from rooda.loops.flow.go import go
from rooda.loops.flow.inspect import tab_runs
from rooda.loops.flow.model import ERROR, LIMIT, RUNNING
from rooda.loops.flow.runs import Known
from rooda.loops.flow.start import Ground, Ready, ground, locked, ready, repository
from rooda.loops.remembered import taken_over, whole
from rooda.processes import lock
from rooda.settings.where import Where, relocated, where


@click.pass_context
def _resume(ctx: click.Context, /, name: str | None, **typed: object) -> int:
    return resumed(name, relocated(where(ctx), typed), typed)


def resumed(name: str | None, there: Where, typed: Json) -> int:
    """Go on with the run of this name, or with the only one that is open, as it was started."""
    name = chosen(flow_runs.known(repository(there.workspace)), name).id
    under = _ground(there, typed, name)
    held = locked(under.repo, under.screen)
    return _begun(under, named(flow_runs.known(under.repo), name), held)


def taken_up(run: Known, there: Where, typed: Json, held: lock.Lock | None) -> int:
    """The same with the lock in hand."""
    return _begun(_ground(there, typed, run.id), run, held)


def _ground(there: Where, typed: Json, name: str) -> Ground:
    there, typed = taken_over(there, typed, "flow", name)
    return ground(there, options.asked(typed))


def _begun(under: Ground, run: Known, held: lock.Lock | None) -> int:
    run = to_branch(under.repo, run)  # the flow may lie there only
    setup = launch.kept(under.setup, under.where.workspace, "flow", run.id, under.asked.flags)
    return go_on(ready(under._replace(setup=setup)), run, held)


def chosen(runs: Sequence[Known], name: str | None) -> Known:
    """The run of this name, or the only one that is open."""
    if name:
        return named(runs, name)
    open_ = flow_runs.running(runs)
    if not open_:
        ended = next((run for run in runs if run.status in (ERROR, LIMIT)), None)
        more = f"\nGo on with the one that ended, {ended.status}: rooda flow resume {ended.id}" if ended else ""
        raise UsageProblem("Nothing to resume here.", f'Start with: rooda flow run "TASK"{more}')
    if len(open_) > 1:
        rows = "\n".join(f"  rooda flow resume {run.id}  ({run.branch})" for run in open_)
        raise Undecided("Several runs can be resumed; name one.", rows)
    return open_[0]


def named(runs: Sequence[Known], name: str) -> Known:
    """A run that can go on; UsageProblem says why one can't."""
    found = flow_runs.named(runs, name)
    if found.status not in (RUNNING, ERROR, LIMIT):
        raise UsageProblem(f"{name} has ended: {found.status}.", 'Start a new run: rooda flow run "TASK"')
    return found


def go_on(here: Ready, run: Known, held: lock.Lock | None) -> int:
    """From where the run's files and commits say. We are on its branch."""
    root = here.topology.root
    if run.status == LIMIT:
        _require_room(here, run)
    gone = [path for path in run.state["execution-stack"] if in_chain(root, str(path)) is None]
    if gone:
        what = f"{run.id} stands in {gone[-1]}, which .ai-loop/flow.yaml no longer has; nothing was started."
        raise ConfigProblem(what, "Put the node back, or start a new run.")
    if run.state.get("flow-sha256", here.topology.sha256) != here.topology.sha256:
        text = f".ai-loop/flow.yaml is not as it was when {run.id} began; it goes on with the new one."
        launch.warn(here.screen, text)
    if undone := flow_runs.undone(here.repo, run, root):
        commits.take_back(here.repo, undone[0].commit)
        what = f"{len(undone)} commits are taken off {run.branch}, the last was {undone[-1].commit}"
        launch.warn(here.screen, f"{run.id} was undone: {what}")
    task, doubt = whole(here.repo.workspace, "flow", run.id, str(run.state["task"]))
    if doubt:
        launch.warn(here.screen, doubt)
    state, boundaries = flow_runs.reopen(here.repo, run, root)
    return go(here, state, boundaries, held, task, resumed=True)


def _require_room(here: Ready, run: Known) -> None:
    """A run that ended at its limit goes on under a higher one."""
    root = here.topology.root
    reached, _ = artifacts.standing(Files(here.repo.workspace, run.id), root)
    if root.max_iterations <= reached:
        hint = f"To go on, raise max_iterations of {root.id} in .ai-loop/flow.yaml on the branch {run.branch}."
        what = f"{run.id} has ended: {LIMIT}, and the limit is still {root.max_iterations}."
        raise UsageProblem(what, f'{hint}\nOr start a new run: rooda flow run "TASK"')


def to_branch(repo: Repo, run: Known) -> Known:
    """To the run's branch, with its files as they were left; never with changes of somebody else's."""
    away = position(repo).branch != run.branch
    others = flow_runs.in_the_way(flow_runs.known(repo), flow_repository.branches(repo), run.id)
    if away:
        _require_no_changes(repo, run, [run.id, *(other.id for other in others)])
    for other in others:
        flow_aside.put(repo, other.id, other.branch)
    if away:
        flow_repository.check_out(repo, run.branch)
    if run.aside:
        flow_aside.bring_back(repo, run.aside)
    return named(flow_runs.known(repo), run.id) if away or run.aside else run


def _require_no_changes(repo: Repo, run: Known, runs: Sequence[str]) -> None:
    """But in the folders of these runs."""
    own = tuple(repo.inside(run_folder(each)) + "/" for each in runs)
    foreign = [path for _, path in flow_repository.dirty(repo) if not path.startswith(own)]
    if foreign:
        raise Undecided(
            f"{run.id} works on {run.branch}, and the work tree has changes that are not committed: {foreign[0]!r}"
            + (f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""),
            "Commit or stash them first.",
        )


resume = click.Command(
    "resume",
    callback=_resume,
    params=[click.Argument(["name"], required=False, metavar="[RUN]", shell_complete=tab_runs), *options.for_kind()],
    help="Go on with an interrupted run, on its branch. RUN is its id; without it the only one that is open is taken. "
    "A run that ended with an error goes on at the step that failed, one that ended at its limit under a higher one, "
    "if it is named.",
    short_help="Go on with an interrupted run.",
)
