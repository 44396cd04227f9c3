"""From a command to a running loop: settings, preflight, the earlier run, the session."""

import os

from rooda.base import clock
from rooda.base.json import Json
from rooda.base.text import format_seconds
from rooda.errors import ConfigProblem, Interrupted, StateDamaged, Undecided, UsageProblem, code_of_signal
from rooda.loops import configuration, launch, options
from rooda.loops.kernel import Turns
from rooda.loops.options import RunOptions
from rooda.loops.procedure import effects, loop, rules, settings
from rooda.loops.procedure import store as procedure_store
from rooda.loops.procedure.effects import Effects
from rooda.loops.procedure.events import KIND, RunResumed, RunStarted
from rooda.loops.procedure.loop import OodaState
from rooda.loops.procedure.model import Procedure
from rooda.loops.procedure.store import Place
from rooda.loops.procedure.view import LINES
from rooda.loops.registry import OODA
from rooda.loops.remembered import has_own, taken_over
from rooda.processes import lock
from rooda.processes.signals import Signals
from rooda.run import gates_md, questions
from rooda.run.event_records import limits_of
from rooda.run.owner import Owner
from rooda.run.records import Gate
from rooda.run.session import Session
from rooda.settings import agents, layers
from rooda.settings.agents import priced
from rooda.settings.where import Where
from rooda.views.lines import Line
from rooda.views.say import warned
from rooda.views.screen import Screen


def start(found: "layers.Settings", procedure: Procedure, where: Where, typed: Json) -> int:
    """`rooda P`: fresh, or as the earlier run and the person say."""
    asked, place = options.run_options(typed), Place(where.workspace, procedure.name)
    if asked.worktree:
        return _apart(*ready(found, procedure, where, asked), where, asked)
    open_ = not asked.opening and _waits(place)
    made = None if open_ else ready(found, procedure, where, asked)  # an interrupted run has options of its own
    screen = made[1] if made else Screen(launch.look(procedure.setup, asked), LINES)
    held = locked(place, screen)
    state = earlier(place, screen)
    way = rules.start(state and state.status, asked.opening, procedure.on_interrupted)
    if way == "refuse":
        raise Undecided(*_marked_running(place))
    if way == "ask":
        assert state is not None
        way = _ask(state)
    if way == "resume" and not made:
        where, typed = taken_over(where, typed, OODA, procedure.name)
        asked = options.run_options(typed)
        found, procedure = prepared(procedure.name, where, asked) if asked.kept else (found, procedure)
    procedure, screen = made or ready(found, procedure, where, asked)
    _warned(state if way == "resume" else None, screen)
    return go(procedure, where, screen, held, state if way == "resume" else None, asked)


def _waits(place: Place) -> bool:
    """Is there an interrupted run that may be gone on with, and with other options than are typed now?"""
    if not os.path.exists(place.state):
        return False
    try:
        state = procedure_store.look(place)
    except StateDamaged:  # said once the lock is ours
        return False
    waits = state is not None and state.status in rules.RESUMABLE
    return waits and has_own(place.workspace, OODA, place.procedure)


def _apart(procedure: Procedure, screen: Screen, where: Where, asked: RunOptions) -> int:
    from rooda.loops import launch

    def work(there: Where) -> int:
        return go(procedure, there, screen, locked(Place(there.workspace, procedure.name), screen), None, asked)

    return launch.inside(where, "ooda", procedure.name, screen, work)


def resume(name: str, where: Where, typed: Json) -> int:
    """`rooda resume P`: the saved run goes on as it was started, or it is said why not."""
    place = Place(where.workspace, name)
    require_saved(place)
    where, typed = taken_over(where, typed, OODA, name)
    asked = options.run_options(typed)
    found, procedure = prepared(name, where, asked)
    procedure, screen = ready(found, procedure, where, asked)
    held = locked(place, screen)
    state = require_saved(place)
    _warned(state, screen)
    return go(procedure, where, screen, held, state, asked)


def _warned(state: OodaState | None, screen: Screen) -> None:
    """Before a crash is resumed."""
    if state and state.status == loop.RUNNING:
        launch.warn(screen, f"The last run of '{state.procedure_name}' did not end cleanly; resuming it.")


def ready(found: "layers.Settings", procedure: Procedure, where: Where, asked: RunOptions) -> tuple[Procedure, Screen]:
    """Everything that can be found wrong before anything is written or paid for."""
    setup = procedure.setup
    agent = setup.agent
    if agent is None:
        raise ConfigProblem(agents.no_agent_text(found))
    program = launch.checked(agent, where.workspace, effects.prompt_text(procedure, 1))
    procedure = procedure._replace(setup=setup._replace(agent=priced(agent, found)))
    if procedure.gates is None:
        procedure = procedure._replace(gates=_project_gates(where.workspace, procedure.gates_from_commands))
    screen = Screen(launch.look(procedure.setup, asked), LINES)
    launch.announced(agent, program, screen, asked.kept)
    return procedure, screen


def _project_gates(workspace: str, commands: bool) -> tuple[Gate, ...]:
    try:
        text = effects.ordinary(f"{workspace}/AGENTS.md")
    except (OSError, ValueError):
        return ()
    return gates_md.gates(text) or (gates_md.commands(text) if commands else ())


def locked(place: Place, screen: Screen) -> lock.Lock | None:
    """The procedure's lock; what an earlier holder left behind is gone with it."""
    held = launch.locked(place.lock, f"procedure '{place.procedure}'", place.procedure, screen)
    if held:
        procedure_store.tidy(place)
    return held


def earlier(place: Place, screen: Screen) -> OodaState | None:
    """What the last run left; a damaged file is kept aside and counts as nothing."""
    try:
        return procedure_store.look(place)
    except StateDamaged as problem:
        kept = f"kept as {place.corrupt}" if procedure_store.set_aside(place) else "it could not be kept"
        launch.warn(screen, f"{problem.what}; starting fresh ({kept})")
        return None


def require_saved(place: Place) -> OodaState:
    """The state to resume. UsageProblem when there is none; the bytes of a damaged one are kept."""
    try:
        state = procedure_store.look(place)
    except StateDamaged as problem:
        kept = procedure_store.set_aside(place)
        problem.hint = f"Kept as {place.corrupt}. " if kept else ""
        problem.hint += f"Start over with: rooda {place.procedure}"
        raise
    if state is None or rules.resume(state.status) == "nothing":
        from rooda.settings.where import above

        name = place.procedure
        raise UsageProblem(
            f"No saved state for procedure '{name}'.", above(place.workspace) or f"Start it with: rooda {name}"
        )
    return state


def _marked_running(place: Place) -> tuple[str, str]:
    name = place.procedure
    return (
        f"{place.state} says that '{name}' is running: possible concurrent execution. Not started.",
        f"If that run is gone (crash, reboot), go on with: rooda resume {name}\n"
        f"or start over with: rooda {name} --fresh",
    )


def _ask(state: OodaState) -> str:
    """resume or fresh, as the person says; Undecided if nobody does."""
    name, bound = state.procedure_name, f" of {state.max_iterations}" if state.max_iterations else ""
    took = format_seconds(loop.total_seconds(state))
    found = f"Found an interrupted run of '{name}': iteration {state.iteration}{bound} completed ({took})."
    if questions.at_terminal():
        question = f"{found}\nResume? [Y/n] "
        while (answer := questions.typed_answer(question)) is not None:
            if way := rules.reads_as(answer):
                return way
            question = "Please answer y (go on with it) or n (start over). Resume? [Y/n] "
    elif (answer := questions.waiting_answer()) is not None and (way := rules.reads_as(answer)):
        return way
    raise Undecided(
        f"{found} Nothing was started.", f"Go on with: rooda resume {name}\nor start over with: rooda {name} --fresh"
    )


def go(
    procedure: Procedure,
    where: Where,
    screen: Screen,
    held: lock.Lock | None,
    state: OodaState | None,
    asked: RunOptions,
) -> int:
    """Run the loop to its end and give the exit code."""
    if state is not None:
        setup = launch.kept(procedure.setup, where.workspace, OODA, procedure.name, asked.flags)
        procedure = procedure._replace(setup=setup)
    with Signals() as signals:
        owner = Owner(KIND, procedure.name, procedure.setup, state is not None, asked.kept)
        session = Session(where.workspace, owner, signals, screen.show, screen.tick(), held)
        store = procedure_store.ProcedureStore(Place(where.workspace, procedure.name), session.emit)
        began = opened(procedure, state, asked)
        session.emit(
            (RunStarted if state is None else RunResumed)(
                iterations=began.iteration,
                max_iterations=began.max_iterations,
                elapsed=loop.total_seconds(began),
                gates=[gate.name for gate in procedure.gates or ()],
                limits=limits_of(procedure.setup.budget),
            )
        )
        try:
            ending = loop.ooda(Turns(store), began, procedure, Effects(session))
        except Interrupted as abandoned:
            return code_of_signal(abandoned.number)
        finally:
            screen.close()
            session.close()
    if state is not None and 0 < began.max_iterations <= state.iteration:
        hint = f"The limit was reached already, so the run is over. With a higher one: rooda {procedure.name}"
        hint += " --max-iterations N"
        screen.line(Line("warn", hint, aside=True))
    _hint_at_resume(procedure.name, ending.kind, screen)
    return ending.code


def _hint_at_resume(name: str, ending: str, screen: Screen) -> None:
    if ending == "limit":
        screen.hint(f"No further agent was started; the state is kept. Go on with: rooda resume {name}")
    if ending == "failures":
        screen.hint(f"What happened: rooda logs {name}. Go on with: rooda resume {name}")


def opened(procedure: Procedure, state: OodaState | None, asked: RunOptions) -> OodaState:
    """The state a run begins with."""
    if state is None:
        return loop.fresh(procedure, clock.rfc3339(clock.now()))
    limits = (asked.flags.get("default_iterations"), asked.flags.get("failure_threshold"))
    return loop.reopened(state._replace(procedure_name=procedure.name), *limits)


# What every run and dry-run begins with: the settings in force, and the procedure that they make.


def prepared(
    name: str, where: Where, asked: RunOptions, found: "layers.Settings | None" = None
) -> tuple["layers.Settings", Procedure]:
    """`found`: the settings of `where`, if they are loaded already."""
    found = warned(found or configuration.load(where.workspace, where.config))
    return found, settings.procedure(found, name, asked.flags)
