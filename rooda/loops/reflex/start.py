"""From an open loop to its end."""

import os

from rooda.errors import FAILED as EXIT_FAILED
from rooda.errors import Interrupted, LimitReached, code_of_signal
from rooda.loops.kernel import Run
from rooda.loops.options import RunOptions
from rooda.loops.reflex import files
from rooda.loops.reflex.effects import CAP, Commands, Effects, show_artifact, way_of
from rooda.loops.reflex.events import KIND, RunResumed, RunStarted
from rooda.loops.reflex.files import Place
from rooda.loops.reflex.loop import EXIT_CODES, reflex
from rooda.loops.reflex.prepare import Ready
from rooda.loops.reflex.state import State
from rooda.loops.reflex.status import Left, ended
from rooda.loops.reflex.store import ReflexStore
from rooda.loops.reflex.world import How
from rooda.processes import lock
from rooda.processes.signals import Signals
from rooda.run.event_records import limits_of
from rooda.run.owner import Owner
from rooda.run.session import Session
from rooda.run.setup import Setup


def go(
    place: Place, store: ReflexStore, start: State, ready: Ready, held: lock.Lock | None, asked: RunOptions, fresh: bool
) -> int:
    """Run the loop to its end, show what it came to, and give the exit code."""
    made, screen = ready.setup, ready.screen
    bounds = made.bounds._replace(max_output_buffer=min(made.bounds.max_output_buffer, CAP))  # of the check commands
    look = ready.look
    sequential, extraction = bool(look.value("sequential")), str(look.value("extraction"))
    how = How(place.shown_artifact, sequential, extraction, _names_of(place.workspace))
    with Signals() as signals:
        owner = Owner(KIND, place.alias, made._replace(bounds=bounds), not fresh, asked.kept)
        session = Session(place.workspace, owner, signals, screen.show, screen.tick(), held)
        effects = Effects(session, place, store, ready, Commands(way_of(look), signals), not asked.json)
        session.emit(_opening(start, made, fresh))
        try:
            state = reflex(Run(store), start, how, effects.world())
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
    show_artifact(ready, place, not asked.json)
    return EXIT_CODES[state.status]


def _names_of(folder: str) -> list[str]:
    """Its path as it was named, as it is without links, and as the shell we were started in calls it."""
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
