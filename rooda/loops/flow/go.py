"""From a run's state to its end."""

from typing import Any

from rooda.base.json import Json
from rooda.errors import FAILED, OK, UNFINISHED, Cause, Interrupted, LimitReached, RoodaError, code_of_signal
from rooda.loops.flow import commits
from rooda.loops.flow.artifacts import STEP, Files
from rooda.loops.flow.boundaries import Boundary
from rooda.loops.flow.commits import Boundaries
from rooda.loops.flow.effects import world_of
from rooda.loops.flow.events import RunEnded, RunResumed, RunStarted
from rooda.loops.flow.flow_labels import chain, run_folder
from rooda.loops.flow.guard import Guard
from rooda.loops.flow.loop import executed, node
from rooda.loops.flow.model import COMPLETE, ERROR, LIMIT, REASON_OF, RUNNING, Job, NodeFailed, NodeState, listed
from rooda.loops.flow.start import Ready
from rooda.loops.flow.store import FlowStore, Place
from rooda.loops.kernel import Run
from rooda.processes import lock
from rooda.processes.signals import Signals
from rooda.run.event_records import Problem, limits_of
from rooda.run.session import Session, Tenant
from rooda.run.spending import cause_facts

CODES = {COMPLETE: OK, LIMIT: UNFINISHED, ERROR: FAILED}


def go(here: Ready, state: Json, done: list[Boundary], held: lock.Lock | None, task: str, resumed: bool = False) -> int:
    """Run the loop to its end and give the exit code. `state` has the task without keys."""
    root, screen, made, name = here.topology.root, here.screen, here.setup, str(state["run-id"])
    with Signals() as signals:
        tenant = Tenant("flow", name, made, resumed, here.kept, task)
        session = Session(here.repo.workspace, tenant, signals, screen.show, screen.tick(), held)
        session.hide(here.agent.env)
        try:
            repo, files = here.repo._replace(env=session.ground.env), Files(here.repo.workspace, name)
            guard = Guard(repo, root, name)
            verify = not here.look.value("no_verify")
            boundaries = Boundaries(repo, str(state["branch"]), run_folder(name), verify)
            store = FlowStore(Place(repo, files, root, boundaries), state, done, guard)
            session.emit(_opening(RunResumed if resumed else RunStarted, here, state, done))
            if guard.inner.paths:
                session.emit(Problem(text=_of_inner(guard.inner.paths)))
            ended = node(Run(store), Job(root, task), world_of(session, files, guard, here.ways()))
            session.emit(_ending(here, state, ended, session.elapsed()))
        except Interrupted as cut:
            return _open(session, state, "signal", code_of_signal(cut.number), "Interrupted", signals.abandoned)
        except LimitReached as limit:
            return _open(session, state, "limit", limit.code, limit.what, hint=limit.hint, cause=limit.cause)
        except (NodeFailed, RoodaError, OSError) as mishap:  # not even the error could be committed
            return _open(session, state, "error", FAILED, _said(mishap))
        finally:
            screen.close()
            session.close()
    return CODES[ended.status]


def _open(
    session: Session,
    state: Json,
    reason: str,
    code: int,
    note: str,
    silent: bool = False,
    hint: str = "",
    cause: Cause | None = None,
) -> int:
    """The run is not over: it can be resumed."""
    if not silent:
        session.emit(
            RunEnded(
                status=RUNNING,
                reason=reason,
                exit_code=code,
                note=note,
                branch=state["branch"],
                **cause_facts(cause),
                hint=hint,
                elapsed=round(session.elapsed(), 3),
            )
        )
    return code


def _of_inner(paths: list[str]) -> str:
    what = f"Repositories lie inside this one ({listed(paths)}). The run's commits can't hold what is changed in them"
    return f"{what}: it is put back after each call. To work at one, run a flow in it."


def _said(mishap: Exception) -> str:
    if isinstance(mishap, NodeFailed):
        return f"{mishap.why}{mishap.detail and ': ' + mishap.detail}"
    return mishap.what if isinstance(mishap, RoodaError) else str(mishap)


def _opening(event: type[RunStarted], here: Ready, state: dict[str, Any], done: list[Boundary]) -> RunStarted:
    root = here.topology.root
    nodes = chain(root)
    return event(
        nodes=[node.id for node in nodes],
        limits=limits_of(here.setup.budget),
        nodes_paths=[node.path for node in nodes],
        task=state["task"],
        branch=state["branch"],
        base_branch=state["base-branch"],
        active=state.get("active-node-path", root.path),
        step=state.get(STEP, ""),
        number=max((each.state.iteration for each in done if each.path == root.path), default=-1) + 1,
        max_iterations=root.max_iterations,
    )


def _ending(here: Ready, state: dict[str, Any], ended: NodeState, elapsed: float) -> RunEnded:
    return RunEnded(
        status=ended.status,
        reason=REASON_OF[ended.status],
        exit_code=CODES[ended.status],
        branch=state["branch"],
        base_branch=state["base-branch"],
        commits=len(commits.history(here.repo, here.topology.root.path, str(state["run-id"]))),
        executed=executed(ended),
        max_iterations=here.topology.root.max_iterations,
        sensors={reading.sensor: reading.status for reading in ended.readings},
        action=ended.action,
        error=ended.error,
        elapsed=round(elapsed, 3),
    )
