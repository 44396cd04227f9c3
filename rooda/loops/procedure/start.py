"""Starts or resumes a procedure, and runs it to its end."""

import os
from collections.abc import Iterator

from rooda.base import clock, workspace_files
from rooda.base.json import Json
from rooda.base.text import format_seconds
from rooda.errors import ConfigProblem, Interrupted, StateDamaged, Undecided, UsageProblem, code_of_signal
from rooda.loops import launch, options
from rooda.loops.kernel import Turns
from rooda.loops.options import RunOptions
from rooda.loops.procedure import effects, events, gates, loop, progress, settings, status
from rooda.loops.procedure import store as procedure_store
from rooda.loops.procedure.effects import Effects
from rooda.loops.procedure.events import KIND, RunResumed, RunStarted
from rooda.loops.procedure.feedback import Past
from rooda.loops.procedure.model import Procedure
from rooda.loops.procedure.state import (
    RESUMABLE,
    RUNNING,
    OodaState,
    can_resume,
    fresh,
    mode_of_answer,
    resumed_state,
    start_mode,
    total_seconds,
)
from rooda.loops.procedure.store import Place
from rooda.loops.procedure.view import LINES
from rooda.loops.registry import OODA
from rooda.loops.remembered import has_remembered, with_remembered
from rooda.processes import lock
from rooda.processes.signals import Signals
from rooda.run import asked as asked_before
from rooda.run import event_records, history, questions
from rooda.run.event_records import limits_of, required_fields
from rooda.run.records import Owner
from rooda.run.session import Session
from rooda.settings import agents, layers
from rooda.settings.agents import with_prices
from rooda.settings.where import Where
from rooda.views.lines import Line
from rooda.views.screen import Screen
from rooda.views.summary import relative_place

DEMO, DEMO_MARK = "demo", "demo project of rooda"  # the agent's name; in the first line of a file of its projects
DEMO_FILES = ("textkit.py", "greetings.py")


def start(found: "layers.Settings", procedure: Procedure, where: Where, typed: Json) -> int:
    """Run `rooda P`: start fresh or resume, depending on the earlier run and the user's answer."""
    asked, place = options.run_options(typed), Place(where.workspace, procedure.name)
    if asked.worktree:
        return _in_worktree(*prepare(found, procedure, where, asked), where, asked)
    own_options = not asked.opening and _has_own_options(place)
    made = None if own_options else prepare(found, procedure, where, asked)
    screen = made[1] if made else Screen(launch.screen_options(procedure.setup, asked), LINES)
    held = take_lock(place, screen)
    state = load_earlier(place, screen)
    surely_dead = held is not None and questions.at_terminal()
    mode = start_mode(state and state.status, asked.opening, procedure.on_interrupted, surely_dead)
    if mode == "refuse":
        raise _marked_running(place)
    if mode == "ask":
        assert state is not None
        with lock.asking(held):
            mode = _ask(state)
    if mode == "resume" and not made:
        where, typed = with_remembered(where, typed, OODA, procedure.name)
        asked = options.run_options(typed)
        if asked.remembered:
            found, procedure = settings.prepared(procedure.name, where, asked, resumed=True)
    procedure, screen = made or prepare(found, procedure, where, asked)
    _warn_of_crash(state if mode == "resume" else None, screen)
    return run_session(procedure, where, screen, held, state if mode == "resume" else None, asked)


def _has_own_options(place: Place) -> bool:
    """True if there is an interrupted run that was started with options which a resume reuses."""
    if not os.path.exists(place.state):
        return False
    try:
        state = procedure_store.load_state(place)
    except StateDamaged:  # `load_earlier` reports it once this process has the lock
        return False
    open_ones = (*RESUMABLE, RUNNING) if questions.at_terminal() else RESUMABLE
    resumable = state is not None and state.status in open_ones
    return resumable and has_remembered(place.workspace, OODA, place.procedure)


def _in_worktree(procedure: Procedure, screen: Screen, where: Where, asked: RunOptions) -> int:
    setup = procedure.setup

    def work(there: Where) -> int:
        gates.require_in_worktree(procedure, there.workspace)
        agent = setup.agent and agents.with_programs(setup.agent, there.workspace, where.workspace)
        moved = procedure._replace(setup=setup._replace(agent=agent))
        held = take_lock(Place(there.workspace, procedure.name), screen)
        return run_session(moved, there, screen, held, None, asked)

    return launch.in_worktree(where, procedure.name, screen, work, setup.worktree)


def resume(name: str, where: Where, typed: Json) -> int:
    """Run `rooda resume P`: continue the saved run with the options that it was started with."""
    place = Place(where.workspace, name)
    require_saved(place)
    asked_before.require_answer(where.workspace, name, OODA)
    where, typed = with_remembered(where, typed, OODA, name)
    asked = options.run_options(typed)
    found, procedure = settings.prepared(name, where, asked, resumed=True)
    procedure, screen = prepare(found, procedure, where, asked)
    held = take_lock(place, screen)
    state = require_saved(place)
    _warn_of_crash(state, screen)
    return run_session(procedure, where, screen, held, state, asked)


def _warn_of_crash(state: OodaState | None, screen: Screen) -> None:
    if state and state.status == RUNNING:
        launch.warn(screen, f"The last run of '{state.procedure_name}' did not end cleanly; resuming it.")


def prepare(
    found: "layers.Settings", procedure: Procedure, where: Where, asked: RunOptions
) -> tuple[Procedure, Screen]:
    """Check agent, prompt and gates before anything is written or paid for; return the procedure and its screen."""
    setup = procedure.setup
    agent = setup.agent
    if agent is None:
        raise ConfigProblem(agents.no_agent_text(found))
    procedure = gates.with_gates(found, procedure._replace(setup=setup._replace(agent=with_prices(agent, found))))
    prompt = effects.prompt_text(where.workspace, procedure, 1, gates.first_status(procedure))
    program = launch.check_agent(agent, where.workspace, prompt)
    for refusal in gates.problems(procedure, where.workspace, asked.worktree):
        raise refusal
    settings.require_git(procedure, where.workspace)
    screen = Screen(launch.screen_options(procedure.setup, asked), LINES)
    launch.announce_agent(agent, program, screen, asked.remembered)
    return procedure, screen


def take_lock(place: Place, screen: Screen) -> lock.Lock | None:
    """Take the procedure's lock and remove temporary files of earlier runs."""
    held = launch.take_lock(place.lock, f"procedure '{place.procedure}'", place.procedure, screen)
    if held:
        procedure_store.tidy(place)
    return held


def load_earlier(place: Place, screen: Screen) -> OodaState | None:
    """Return the state of the last run; None if there is none. A damaged file is renamed and treated as missing."""
    try:
        return procedure_store.load_state(place)
    except StateDamaged as problem:
        path = procedure_store.keep_damaged(place)
        kept = f"kept as {path}" if path else "it could not be kept"
        launch.warn(screen, f"{problem.what}; starting fresh ({kept})")
        return None


def require_saved(place: Place) -> OodaState:
    """Return the state to resume; raise UsageProblem if there is none. A damaged file is renamed and reported."""
    try:
        state = procedure_store.load_state(place)
    except StateDamaged as problem:
        kept = procedure_store.keep_damaged(place)
        problem.hint = f"Kept as {kept}. " if kept else ""
        problem.hint += f"Start over with: rooda {place.procedure}"
        raise
    if state is None or not can_resume(state.status):
        from rooda.settings.where import parent_hint

        name = place.procedure
        raise UsageProblem(
            f"No saved state for procedure '{name}'.", parent_hint(place.workspace) or f"Start it with: rooda {name}"
        )
    return state


def _marked_running(place: Place) -> Undecided:
    name = place.procedure
    return Undecided(
        f"{place.state} says that '{name}' is already running, so nothing was started (possible concurrent execution).",
        f"If that run is gone (crash, reboot), resume with: rooda resume {name}\n"
        f"or start over with: rooda {name} --fresh",
    )


def _ask(state: OodaState) -> str:
    """Ask the user whether to resume or to start fresh; raise Undecided without an answer."""
    name, bound = state.procedure_name, f" of {state.max_iterations}" if state.max_iterations else ""
    took = format_seconds(total_seconds(state))
    found = f"Found an interrupted run of '{name}': iteration {state.iteration}{bound} completed ({took})."
    if questions.at_terminal():
        question = f"{found}\nn starts over: this run can't be resumed then. Ctrl+C leaves it as it is.\nResume? [Y/n] "
        while (answer := questions.typed_answer(question)) is not None:
            if mode := mode_of_answer(answer):
                return mode
            question = "Please answer y (resume) or n (start over). Resume? [Y/n] "
    elif (answer := questions.waiting_answer()) is not None and (mode := mode_of_answer(answer)):
        return mode
    raise Undecided(
        f"{found} Nothing was started.", f"Resume with: rooda resume {name}\nor start over with: rooda {name} --fresh"
    )


def run_session(
    procedure: Procedure,
    where: Where,
    screen: Screen,
    held: lock.Lock | None,
    state: OodaState | None,
    asked: RunOptions,
) -> int:
    """Run the loop to its end and return the exit code."""
    screen.place = screen.place or relative_place(where.workspace)
    if state is not None:
        setup = launch.with_earlier_limits(procedure.setup, where.workspace, OODA, procedure.name, asked.flags)
        procedure = procedure._replace(setup=setup)
    with Signals() as signals:
        kept = (*asked.remembered, *([f"--context={asked.task}"] if asked.task else []))
        owner = Owner(KIND, procedure.name, procedure.setup, state is not None, kept)
        session = Session(where.workspace, owner, signals, screen.show, screen.tick(), held)
        store = procedure_store.ProcedureStore(
            Place(where.workspace, procedure.name), session.emit, session.inbox.new_limits
        )
        began = initial_state(procedure, state, asked, where.workspace)
        _say_if_unlimited(procedure, began, screen)
        session.emit(_opening(procedure, began, state is None))
        _hint_if_no_demo(procedure, where.workspace, screen)
        try:
            past, earlier = Past(), _earlier(where.workspace, procedure.name) if state is not None else iter(())
            known = progress.recalled(past.adding(earlier))
            world = Effects(session, status.Status(session, past), procedure.name, resumed=state is not None)
            ending = loop.ooda(Turns(store), began, procedure, world, known)
        except Interrupted as abandoned:
            return code_of_signal(abandoned.number)
        finally:
            screen.close()
            session.close()
    if state is not None and 0 < began.max_iterations <= state.iteration:
        hint = "The iteration limit had already been reached, so the run is over. To run with a higher limit: "
        hint += f"rooda {procedure.name} --max-iterations N"
        screen.line(Line("warn", hint, to_stderr=True))
    return ending.code


def _earlier(workspace: str, name: str) -> Iterator[Json]:
    """Yield the events of the run's earlier sessions that a resume and the STATUS section need.

    Omit events that lack required fields because another version of rooda wrote them.
    """
    found = history.events_of_run(workspace, name, KIND.name, {*Past.EVENTS, *progress.EVENTS})
    required = {**required_fields(event_records), **required_fields(events)}
    return (record for record in found if required[record["event"]] <= {*record})


def _hint_if_no_demo(procedure: Procedure, workspace: str, screen: Screen) -> None:
    """Print a hint if the demo agent, which can repair only its own project, is used in another project."""
    agent = procedure.setup.agent
    if agent and agent.name == DEMO and not any(_is_demo(workspace, path) for path in DEMO_FILES):
        screen.hint("The agent demo is a script for demo projects only; make one with: rooda init --demo DIR")


def _is_demo(workspace: str, path: str) -> bool:
    try:
        return DEMO_MARK in workspace_files.text(workspace, os.path.join(workspace, path)).partition("\n")[0]
    except (OSError, ValueError):
        return False


def _say_if_unlimited(procedure: Procedure, began: OodaState, screen: Screen) -> None:
    if not began.max_iterations and not any(procedure.setup.budget):
        what = f"'{procedure.name}' has no limit of iterations, cost or time"
        screen.line(Line("info", f"{what}; set one: rooda {procedure.name} --max-iterations N", to_stderr=True))


def _opening(procedure: Procedure, began: OodaState, is_new: bool) -> RunStarted:
    return (RunStarted if is_new else RunResumed)(
        iterations=began.iteration,
        max_iterations=began.max_iterations,
        elapsed=total_seconds(began),
        gates=[{"name": gate.name, "command": gate.command, "origin": gate.origin} for gate in procedure.gates or ()],
        limits=limits_of(procedure.setup.budget),
    )


def initial_state(procedure: Procedure, state: OodaState | None, asked: RunOptions, workspace: str) -> OodaState:
    """Return the state that a start or a resume begins with."""
    if state is None:
        return fresh(procedure, clock.rfc3339(clock.now()))
    most = asked.flags.get("default_iterations")
    if most is None and (found := launch.limits_set(workspace, OODA, procedure.name).get("iterations")) is not None:
        most = int(found)
    limits = (most, asked.flags.get("failure_threshold"))
    return resumed_state(state._replace(procedure_name=procedure.name), *limits)
