"""From an open loop to its end."""

import os

from rooda.agents.records import Bounds
from rooda.errors import FAILED as EXIT_FAILED
from rooda.errors import Interrupted, LimitReached, code_of_signal
from rooda.loops.kernel import Run
from rooda.loops.options import RunOptions
from rooda.loops.reflex import files
from rooda.loops.reflex.effects import CAP, Effects, Permission, exec_checks, show_artifact
from rooda.loops.reflex.events import KIND, RunResumed, RunStarted
from rooda.loops.reflex.files import Place
from rooda.loops.reflex.loop import reflex
from rooda.loops.reflex.setup import Prepared
from rooda.loops.reflex.state import State
from rooda.loops.reflex.status import EXIT_CODES, Left, ended
from rooda.loops.reflex.store import ReflexStore
from rooda.loops.reflex.world import LoopOptions
from rooda.processes import lock
from rooda.processes.signals import Signals
from rooda.run.event_records import limits_of
from rooda.run.owner import Owner
from rooda.run.session import Session
from rooda.run.setup import Setup
from rooda.settings.lookup import Lookup


def go(
    place: Place, store: ReflexStore, start: State, prepared: Prepared, held: lock.Lock | None, asked: RunOptions
) -> int:
    """Run the loop to its end, show the result, and return the exit code."""
    setup, screen, look = prepared.setup, prepared.screen, prepared.look
    fresh = store.state is None
    with Signals() as signals:
        owner = Owner(KIND, place.alias, setup._replace(bounds=_bounds(setup)), not fresh, asked.kept)
        session = Session(place.workspace, owner, signals, screen.show, screen.tick(), held)
        permission = Permission(exec_checks(look), signals)
        effects = Effects(session, place, store, prepared, permission, not asked.json)
        session.emit(_opening(start, setup, fresh))
        try:
            state = reflex(Run(store), start, _loop_options(place, look), effects)
            session.emit(ended(place, state))
        except (Interrupted, LimitReached, OSError) as problem:
            if (latest := store.latest()) is None:
                raise
            left = _left(problem, place)
            if not signals.abandoned:
                session.emit(ended(place, latest, left))
            return left.exit_code
        finally:
            screen.close()
            session.close()
    show_artifact(prepared, place, not asked.json)
    return EXIT_CODES[state.status]


def _bounds(setup: Setup) -> Bounds:
    """The bounds of check commands, which need less output than agents."""
    return setup.bounds._replace(max_output_buffer=min(setup.bounds.max_output_buffer, CAP))


def _loop_options(place: Place, look: Lookup) -> LoopOptions:
    sequential, extraction = bool(look.value("sequential")), str(look.value("extraction"))
    return LoopOptions(place.shown_artifact, sequential, extraction, _names_of(place.workspace))


def _names_of(folder: str) -> list[str]:
    """The folder's path as given, without links, and as the parent shell names it."""
    real, shell = os.path.realpath(folder), os.environ.get("PWD", "")
    known = [folder, real, *([shell] if os.path.isabs(shell) and os.path.realpath(shell) == real else [])]
    return list(dict.fromkeys(known))


def _opening(start: State, made: Setup, fresh: bool) -> RunStarted:
    return (RunStarted if fresh else RunResumed)(
        number=start.iteration,
        level=start.phase,
        step=start.current_step,
        iterations=start.iteration - 1,
        max_iterations=start.max_iterations,
        limits=limits_of(made.budget),
    )


def _left(problem: Exception, place: Place) -> Left:
    if isinstance(problem, Interrupted):
        return Left("signal", "Interrupted", code_of_signal(problem.number))
    if isinstance(problem, LimitReached):
        return Left("limit", f"{problem.what}. {problem.hint}".rstrip(". "), problem.code, problem.cause)
    assert isinstance(problem, OSError)
    if not files.is_begun(place):
        return Left("gone", f"{place.folder} and the loop in it are gone", EXIT_FAILED)
    return Left("files", f"{problem.filename or place.folder}: {problem.strerror or problem}", EXIT_FAILED)
