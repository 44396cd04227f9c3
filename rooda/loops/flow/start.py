"""Everything that can be found wrong with a flow before anything is asked, written or paid for."""

import os
from typing import Any, NamedTuple

import click

from rooda.agents.records import Agent
from rooda.base import files
from rooda.base.json import Json
from rooda.base.text import escape_line
from rooda.errors import (
    FAILED,
    OK,
    UNFINISHED,
    Cause,
    ConfigProblem,
    Interrupted,
    LimitReached,
    RoodaError,
    Undecided,
    UsageProblem,
    code_of_signal,
)
from rooda.git.repository import Repo, nul_terminated
from rooda.loops import configuration, launch
from rooda.loops.flow import commits, effects
from rooda.loops.flow import repository as flow_repository
from rooda.loops.flow import topology as flow_topology
from rooda.loops.flow.agents import FlowAgents
from rooda.loops.flow.artifacts import STEP, RunFiles
from rooda.loops.flow.boundaries import Boundary
from rooda.loops.flow.commits import Boundaries
from rooda.loops.flow.effects import Effects, Means
from rooda.loops.flow.events import KIND, RunEnded, RunResumed, RunStarted
from rooda.loops.flow.guard import Guard
from rooda.loops.flow.loop import executed, run_node
from rooda.loops.flow.model import (
    COMPLETE,
    ERROR,
    FLOW_FILE,
    LIMIT,
    REASON_OF,
    RUNNING,
    NodeEntry,
    NodeFailed,
    NodeState,
    agent_files,
    chain,
    listed,
    run_folder,
)
from rooda.loops.flow.store import FlowStore, Place
from rooda.loops.flow.topology import Topology
from rooda.loops.flow.view import FlowScreen
from rooda.loops.kernel import Run
from rooda.loops.options import RunOptions
from rooda.processes import lock
from rooda.processes.signals import Signals
from rooda.run.event_records import Problem, limits_of
from rooda.run.owner import Owner
from rooda.run.session import Session
from rooda.run.setup import Setup
from rooda.run.spending import cause_facts
from rooda.settings import agents, layers
from rooda.settings.lookup import Lookup
from rooda.settings.setup import setup
from rooda.settings.where import Where
from rooda.views.say import warned


class Ready(NamedTuple):
    """What a flow is run with."""

    setup: Setup
    look: Lookup
    agent: Agent
    topology: Topology
    repo: Repo
    screen: FlowScreen
    as_json: bool = False
    kept: tuple[str, ...] = ()

    @property
    def native(self) -> bool:
        return bool(self.look.value("sensors") == "native")

    @property
    def means(self) -> Means:
        agents = FlowAgents(self.look, self.agent)
        return Means(self.setup, agents, self.native, float(self.look.value("sensor_timeout")))


class Ground(NamedTuple):
    """What stands before the flow itself is looked at."""

    where: Where
    asked: RunOptions
    found: layers.Settings
    setup: Setup
    look: Lookup
    repo: Repo
    screen: FlowScreen


def ground(where: Where, asked: RunOptions) -> Ground:
    """Settings and repository."""
    found = warned(configuration.load(where.workspace, where.config))
    made, look = setup(found, "flow", asked.flags)
    return Ground(where, asked, found, made, look, repository(where.workspace), FlowScreen(launch.look(made, asked)))


def repository(workspace: str) -> Repo:
    """Where there is no flow either, that is the first thing to say."""
    try:
        return flow_repository.found(workspace)
    except UsageProblem:
        flow_topology.load(workspace)
        raise


def ready(under: Ground) -> Ready:
    """The flow, its agent and its repository, each checked as a whole."""
    topology = flow_topology.load(under.where.workspace)
    agent, screen = under.setup.agent, under.screen
    for warning in topology.warnings:
        launch.warn(screen, warning)
    if agent is None:
        raise ConfigProblem(agents.no_agent_text(under.found, "[flow]"))
    program = launch.checked(agent, under.where.workspace, "")
    launch.announced(agent, program, screen, under.asked.kept)
    flow_repository.require_ready(under.repo)
    how = (under.asked.json, under.asked.kept)
    here = Ready(under.setup, under.look, agent, topology, under.repo, screen, *how)
    if here.native:
        require_commands(here)
    return here


def require_commands(here: Ready) -> None:
    """rooda can measure only what names a command."""
    mute = [
        f"{node.path}: {sensor.path} names no command for rooda to run"
        for node in chain(here.topology.root)
        for sensor in node.sensors
        if not effects.command_of(files.text(os.path.join(here.repo.workspace, sensor.path)))
    ]
    if mute:
        hint = 'Add `command: …` to their front matter, or set [flow] sensors = "agent".'
        raise ConfigProblem("\n".join(mute), hint)


def locked(repo: Repo, screen: FlowScreen) -> lock.Lock | None:
    """The work tree's lock. What git was doing when an earlier run was killed is undone."""
    path = lock_path(repo)
    held = launch.locked(path, "a flow", flow_repository.running_name(path) or "NAME", screen)
    if held and held.before.get("run"):
        for name in flow_repository.unlock(repo):
            launch.warn(screen, f"The earlier run was killed while git worked; its {name} is removed.")
    return held


def lock_path(repo: Repo) -> str:
    return flow_repository.lock_path(repo.folder)


def require_clean(here: Ready, allowed: bool) -> None:
    """What is not committed would become part of the first commit. The flow's own files may."""
    own = {here.repo.inside(path) for path in agent_files(here.topology.root)}
    inner = here.repo.inside(".ai-loop/")
    found = [
        (word, path)
        for word, path in flow_repository.dirty(here.repo)
        if path not in own and not path.startswith(inner)
    ]
    rows = [f"  {word} {escape_line(path)}" for word, path in found[:20]]
    rows += [f"  and {len(found) - 20} more"] if len(found) > 20 else []
    if not found:
        return
    listed = "\n".join(rows)
    if allowed:
        launch.warn(here.screen, f"Not committed yet, and part of the first commit from now on:\n{listed}")
    elif not _confirmed(listed):
        raise Undecided(
            f"The work tree has changes that are not committed; nothing was started.\n{listed}",
            "Commit or stash them, or take them into the first commit: rooda flow run --allow-dirty …",
        )


def warn_of_ignored(here: Ready) -> None:
    """Committed on the run's branch, such a file would leave the work tree with it; so it stays out, and is named."""
    own = [here.repo.inside(path) for path in (FLOW_FILE, *agent_files(here.topology.root))]
    words = ("--no-literal-pathspecs", "check-ignore", "-z", "--stdin")
    ignored = files.to_text(here.repo.ask(*words, stdin=nul_terminated(own)).out).split("\0")[:-1]
    if ignored:
        launch.warn(here.screen, f"git ignores {listed(ignored)}: a clone of the run's branch can't go on without.")


def _confirmed(listed: str) -> bool:
    """At a terminal a person may say so at once."""
    from rooda.run import questions

    if not questions.at_terminal():
        return False
    click.echo(f"The work tree has changes that are not committed:\n{listed}")
    answer = questions.typed_answer("Take them into the first commit? [y/N] ")
    return (answer or "").strip().lower() in ("y", "yes")


# From a run's state to its end.
CODES = {COMPLETE: OK, LIMIT: UNFINISHED, ERROR: FAILED}


def go(here: Ready, state: Json, done: list[Boundary], held: lock.Lock | None, task: str, resumed: bool = False) -> int:
    """Run the loop to its end and give the exit code. `state` has the task without keys."""
    root, screen, made, name = here.topology.root, here.screen, here.setup, str(state["run-id"])
    with Signals() as signals:
        owner = Owner(KIND, name, made, resumed, here.kept, task)
        session = Session(here.repo.workspace, owner, signals, screen.show, screen.tick(), held)
        session.hide(here.agent.env)
        try:
            repo, run_files = here.repo._replace(env=session.context.env), RunFiles(here.repo.workspace, name)
            guard = Guard(repo, root, name)
            verify = not here.look.value("no_verify")
            boundaries = Boundaries(repo, str(state["branch"]), run_folder(name), verify)
            store = FlowStore(Place(repo, run_files, root, boundaries), state, done, guard)
            session.emit(_opening(RunResumed if resumed else RunStarted, here, state, done))
            if guard.inner.paths:
                session.emit(Problem(text=_of_inner(guard.inner.paths)))
            world = Effects(session, run_files, guard, here.means)
            ended = run_node(Run(store), NodeEntry(root, task), world)
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
