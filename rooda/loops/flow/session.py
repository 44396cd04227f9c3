"""Checks and runs one session of a flow."""

from functools import partial
from typing import Any, NamedTuple

from rooda.agents.records import Agent
from rooda.base import files, workspace_files
from rooda.base.facts import Fact
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
from rooda.git import command
from rooda.git.repository import Repo, nul_terminated, read_head
from rooda.loops import configuration, launch, trusting
from rooda.loops.flow import commits, effects, repository
from rooda.loops.flow import topology as flow_topology
from rooda.loops.flow.agents import FlowAgents
from rooda.loops.flow.artifacts import STEP, RunFiles
from rooda.loops.flow.boundaries import Boundary
from rooda.loops.flow.commits import Committer
from rooda.loops.flow.effects import CallSettings, Effects
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
    CallFailed,
    NodeEntry,
    NodeFailed,
    NodeState,
    agent_files,
    chain,
    limited,
    listed,
    run_folder,
)
from rooda.loops.flow.store import FlowStore, StorePlace
from rooda.loops.flow.topology import Topology
from rooda.loops.flow.view import FlowScreen
from rooda.loops.kernel import Run
from rooda.loops.options import RunOptions
from rooda.processes import lock
from rooda.processes.signals import Signals
from rooda.run import questions
from rooda.run.event_records import Problem, limits_of
from rooda.run.records import Owner
from rooda.run.session import Session
from rooda.run.setup import Setup
from rooda.run.spending import cause_facts
from rooda.settings import agents, layers
from rooda.settings.lookup import Lookup
from rooda.settings.setup import setup
from rooda.settings.trust_search import Source
from rooda.settings.where import Where
from rooda.views.say import say
from rooda.views.summary import relative_place


class Prepared(NamedTuple):
    """A checked flow with its settings, agent and repository, ready to run."""

    setup: Setup
    look: Lookup
    agent: Agent
    topology: Topology
    repo: Repo
    screen: FlowScreen
    as_json: bool = False
    remembered: tuple[str, ...] = ()
    limit: int = 0  # of the top node, in place of its max_iterations; 0: not given

    @property
    def native(self) -> bool:
        return bool(self.look.value("sensors") == "native")

    @property
    def call_settings(self) -> CallSettings:
        agents = FlowAgents(self.look, self.agent)
        timeout, stuck = float(self.look.value("sensor_timeout")), int(self.look.value("stuck_after"))
        return CallSettings(self.setup, agents, self.native, timeout, stuck)


class Invocation(NamedTuple):
    """A command's options, settings and repository, before the flow is read."""

    where: Where
    asked: RunOptions
    found: layers.Settings
    setup: Setup
    look: Lookup
    repo: Repo
    screen: FlowScreen
    limit: int = 0  # of the top node; 0: not given


def invocation(where: Where, asked: RunOptions, limit: int, resumed: bool = False) -> Invocation:
    found = configuration.load_for_start(where, asked.warn_unknown)
    found = trusting.checked(found, asked, where.config, resumed)
    made, look = setup(found, "flow", asked.flags)
    repo = require_repository(where.workspace)
    return Invocation(where, asked, found, made, look, repo, FlowScreen(launch.screen_options(made, asked)), limit)


def require_repository(workspace: str) -> Repo:
    """Return the project's repository; report an invalid flow.yaml (ConfigProblem) before a missing repository."""
    try:
        return repository.find(workspace)
    except UsageProblem:
        flow_topology.load(workspace)
        raise


def prepare(call: Invocation) -> Prepared:
    """Read and check the flow, its agent and its repository."""
    topology = flow_topology.load(call.where.workspace)
    topology = topology._replace(root=limited(topology.root, call.limit))
    agent, screen = call.setup.agent, call.screen
    for warning in topology.warnings:
        launch.warn(screen, warning)
    if agent is None:
        raise ConfigProblem(agents.no_agent_text(call.found, "[flow]"))
    program = launch.check_agent(agent, call.where.workspace, "")
    launch.announce_agent(agent, program, screen, call.asked.remembered)
    repository.require_ready(call.repo)
    how = (call.asked.json, call.asked.remembered, call.limit)
    prepared = Prepared(call.setup, call.look, agent, topology, call.repo, screen, *how)
    flow_topology.require_outputs(call.where.workspace, topology.root, prepared.native)
    if prepared.native:
        require_commands(prepared)
        trusting.require_files(call.found, _sensors(call.where.workspace, topology))
    return prepared


def _sensors(workspace: str, topology: Topology) -> list[Source]:
    """Return the agent files of native sensors, whose commands the user must trust."""

    def facts(path: str, data: bytes) -> list[Fact]:
        command = effects.command_of(files.to_text(data))
        return [Fact(path, "command", command.strip(), "sensor", restrains=True)] if command else []

    paths = (f"{workspace}/{sensor.path}" for node in chain(topology.root) for sensor in node.sensors)
    return [Source(path, partial(facts, path)) for path in paths]


def require_commands(prepared: Prepared) -> None:
    """Raise ConfigProblem if a native sensor defines no command."""
    missing = [
        f"{node.path}: {sensor.path} defines no command for rooda to run"
        for node in chain(prepared.topology.root)
        for sensor in node.sensors
        if not effects.command_of(workspace_files.text(prepared.repo.workspace, sensor.path))
    ]
    if missing:
        hint = 'Add `command: …` to their front matter, or set [flow] sensors = "agent".'
        raise ConfigProblem("\n".join(missing), hint)


def take_lock(repo: Repo, screen: FlowScreen) -> lock.Lock | None:
    """Take the work tree's lock; if an earlier run was killed, remove the lock files that its git commands left."""
    path = repository.lock_path(repo.folder)
    held = launch.take_lock(path, "a flow", repository.running_name(path) or "NAME", screen)
    if held and held.before.get("run"):
        for name in repository.unlock(repo):
            launch.warn(screen, f"The earlier run was killed while git was running; removed its {name}.")
    return held


def require_clean(prepared: Prepared, allowed: bool) -> None:
    """Raise Undecided for uncommitted changes outside the flow's files, unless the user agrees to include them."""
    own = {prepared.repo.inside(path) for path in agent_files(prepared.topology.root)}
    inner = prepared.repo.inside(".ai-loop/")
    found = [
        (word, path) for word, path in repository.dirty(prepared.repo) if path not in own and not path.startswith(inner)
    ]
    rows = [f"  {word} {escape_line(path)}" for word, path in found[:20]]
    rows += [f"  and {len(found) - 20} more"] if len(found) > 20 else []
    if not found:
        return
    listed = "\n".join(rows)
    if allowed:
        launch.warn(prepared.screen, f"These uncommitted changes become part of the first commit:\n{listed}")
    elif not _agreed(f"The work tree has uncommitted changes:\n{listed}", "Include them in the first commit? [y/N] "):
        raise Undecided(
            f"The work tree has uncommitted changes; nothing was started.\n{listed}",
            "Commit or stash them, or include them in the first commit: rooda flow run --allow-dirty …",
        )


def commit_setup(prepared: Prepared, wanted: bool) -> None:
    """Commit uncommitted files of the flow on the current branch if the user agrees; raise Undecided otherwise.

    If only the run's branch had these files, discarding that branch would delete them.
    """
    repo = prepared.repo
    own = {repo.inside(path) for path in (FLOW_FILE, *agent_files(prepared.topology.root))}
    paths = [path for _, path in repository.dirty(repo) if path in own]
    if not paths:
        return
    what = f"These files of the flow are not committed: {', '.join(map(escape_line, paths))}"
    if not wanted and not _agreed(what, f"Commit them on {read_head(repo).branch or 'HEAD'} first? [y/N] "):
        hint = "Commit them, or let rooda do it: rooda flow run --commit-setup …"
        raise Undecided(f"{what}\nNothing was started.", hint)
    commits.commit_paths(repo, paths, "Add the files of the flow", not prepared.look.value("no_verify"))
    launch.warn(prepared.screen, f"Committed the files of the flow on this branch: {listed(paths)}")


def warn_of_git(prepared: Prepared) -> None:
    """Warn about git filters that are not run, and flow files that git ignores.

    Ignored files are not committed, because a checkout would then delete them.
    """
    own = [prepared.repo.inside(path) for path in (FLOW_FILE, *agent_files(prepared.topology.root))]
    if text := command.warning(prepared.repo.top):
        launch.warn(prepared.screen, text)
    words = ("--no-literal-pathspecs", "check-ignore", "-z", "--stdin")
    ignored = files.to_text(prepared.repo.run(*words, stdin=nul_terminated(own)).out).split("\0")[:-1]
    if ignored:
        launch.warn(
            prepared.screen,
            f"git ignores {listed(ignored)}: a clone of the run's branch can't be resumed without ignored files.",
        )


def _agreed(about: str, question: str) -> bool:
    """Ask the user a question: True for yes, False for no or if stdin is not a terminal."""
    if not questions.at_terminal():
        return False
    say(about)
    answer = questions.typed_answer(question)
    return (answer or "").strip().lower() in ("y", "yes")


CODES = {COMPLETE: OK, LIMIT: UNFINISHED, ERROR: FAILED}


def run_session(
    prepared: Prepared, state: Json, done: list[Boundary], held: lock.Lock | None, task: str, resumed: bool = False
) -> int:
    """Run the loop to its end and return the exit code. Secrets are redacted in `state`, but not in `task`."""
    root, screen, made, name = prepared.topology.root, prepared.screen, prepared.setup, str(state["run-id"])
    screen.place = screen.place or relative_place(prepared.repo.workspace)
    with Signals() as signals:
        owner = Owner(KIND, name, made, resumed, prepared.remembered, task)
        session = Session(prepared.repo.workspace, owner, signals, screen.show, screen.tick(), held)
        session.hide(prepared.agent.env)
        try:
            repo, run_files = prepared.repo._replace(env=session.context.env), RunFiles(prepared.repo.workspace, name)
            guard = Guard(repo, root, name)
            verify = not prepared.look.value("no_verify")
            committer = Committer(repo, str(state["branch"]), run_folder(name), verify)
            place = StorePlace(repo, run_files, root, committer)
            store = FlowStore(place, state, done, guard, session.inbox.new_limits)
            session.emit(_opening(RunResumed if resumed else RunStarted, prepared, state, done))
            if guard.nested.paths:
                session.emit(Problem(text=_about_nested(guard.nested.paths)))
            world = Effects(session, run_files, guard, prepared.call_settings)
            ended = run_node(Run(store), NodeEntry(root, task), world)
            session.emit(_ending(prepared, state, ended, session.elapsed()))
        except Interrupted as cut:
            return _end_open(session, state, "signal", code_of_signal(cut.number), "Interrupted", signals.abandoned)
        except LimitReached as limit:
            return _end_open(session, state, "limit", limit.code, limit.what, hint=limit.hint, cause=limit.cause)
        except CallFailed as failed:
            return _end_open(session, state, "error", FAILED, str(failed))
        except (NodeFailed, RoodaError, OSError) as problem:  # this error could not be recorded in a commit
            return _end_open(session, state, "error", FAILED, _sentence(problem))
        finally:
            screen.close()
            repository.show_parked(prepared.repo)
            session.close()
    return CODES[ended.status]


def _end_open(
    session: Session,
    state: Json,
    reason: str,
    code: int,
    note: str,
    silent: bool = False,
    hint: str = "",
    cause: Cause | None = None,
) -> int:
    """Report the end of a session whose run can be resumed; return the exit code."""
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


def _about_nested(paths: list[str]) -> str:
    return (
        f"This repository contains others ({listed(paths)}). The run's commits can't hold changes to files there, so"
        " rooda undoes such changes after each call. To change such a repository, run a flow in it."
    )


def _sentence(problem: Exception) -> str:
    if isinstance(problem, NodeFailed):
        return f"{problem.why}{problem.detail and ': ' + problem.detail}"
    return problem.what if isinstance(problem, RoodaError) else str(problem)


def _opening(event: type[RunStarted], prepared: Prepared, state: dict[str, Any], done: list[Boundary]) -> RunStarted:
    root = prepared.topology.root
    nodes = chain(root)
    return event(
        nodes=[node.id for node in nodes],
        limits=limits_of(prepared.setup.budget),
        nodes_paths=[node.path for node in nodes],
        task=state["task"],
        branch=state["branch"],
        base_branch=state["base-branch"],
        active=state.get("active-node-path", root.path),
        step=state.get(STEP, ""),
        number=max((each.state.iteration for each in done if each.path == root.path), default=-1) + 1,
        max_iterations=root.max_iterations,
    )


def _ending(prepared: Prepared, state: dict[str, Any], ended: NodeState, elapsed: float) -> RunEnded:
    logged = commits.history(prepared.repo, prepared.topology.root.path, str(state["run-id"]))
    first = logged[0].commit if logged else ""
    own = commits.has_work(prepared.repo, first, run_folder(str(state["run-id"]))) if first else False
    return RunEnded(
        status=ended.status,
        reason=REASON_OF[ended.status],
        exit_code=CODES[ended.status],
        branch=state["branch"],
        base_branch=state["base-branch"],
        commits=len(logged),
        own_changes=first if own else "",
        executed=executed(ended),
        max_iterations=ended.iteration if ended.status == LIMIT else prepared.topology.root.max_iterations,
        sensors={reading.sensor: reading.status for reading in ended.readings},
        action=ended.action,
        error=ended.error,
        elapsed=round(elapsed, 3),
    )
