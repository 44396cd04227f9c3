"""From an open loop to its end."""

import os

from rooda.cli.options import Asked
from rooda.cli.reflex.commands import Commands, way_of
from rooda.cli.reflex.effects import Effects, show_artifact
from rooda.cli.reflex.ready import Ready
from rooda.cli.reflex.summary import summary
from rooda.errors import FAILED as EXIT_FAILED
from rooda.errors import Interrupted, LimitReached, code_of_signal
from rooda.kernel.run import Run
from rooda.loops.reflex import EXIT_CODES, reflex
from rooda.loops.reflex_state import RUNNING, State
from rooda.loops.reflex_world import How
from rooda.policy.spending import cause_facts
from rooda.stores import reflex_files
from rooda.stores.reflex_files import Place
from rooda.stores.reflex_run import ReflexStore
from rooda.world import lock
from rooda.world.reflex_effects import CAP
from rooda.world.session import Session, Tenant
from rooda.world.signals import Signals


def go(
    place: Place, store: ReflexStore, start: State, ready: Ready, held: lock.Lock | None, asked: Asked, fresh: bool
) -> int:
    """Run the loop to its end, show what it came to, and give the exit code."""
    made, screen = ready.setup, ready.screen
    bounds = made.bounds._replace(max_output_buffer=min(made.bounds.max_output_buffer, CAP))  # of the check commands
    look = ready.look
    sequential, extraction = bool(look.value("sequential")), str(look.value("extraction"))
    how = How(place.shown_artifact, sequential, extraction, _names_of(place.workspace))
    with Signals() as signals:
        tenant = Tenant("reflex", place.alias, made._replace(bounds=bounds), not fresh, asked.kept)
        session = Session(place.workspace, tenant, signals, screen.show, screen.tick(), held)
        effects = Effects(session, place, store, ready, Commands(way_of(look), signals), not asked.json)
        facts = {"number": start.iteration, "level": start.phase, "step": start.current_step}
        facts |= {"iterations": start.iteration - 1, "max_iterations": start.max_iterations}
        session.tell("run.started" if fresh else "run.resumed", **facts, limits=made.budget._asdict())
        try:
            state = reflex(Run(store), start, how, effects.world())
            session.tell("run.ended", **summary(place, state), exit_code=EXIT_CODES[state.status])
        except (Interrupted, LimitReached, OSError) as problem:
            if (left := store.latest()) is None:
                raise
            reason, note, code = _why_open(problem, place)
            if not signals.abandoned:
                facts = summary(place, left)
                if left.status == RUNNING:
                    cause = problem.cause if isinstance(problem, LimitReached) else None
                    facts |= {"reason": reason, "note": note, **cause_facts(cause)}
                session.tell("run.ended", **facts, exit_code=code)
            return code
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


def _why_open(problem: Exception, place: Place) -> tuple[str, str, int]:
    """Why a loop is not over, and can be resumed if its files are there: a word, a sentence, the exit code."""
    if isinstance(problem, Interrupted):
        return "signal", "Interrupted", code_of_signal(problem.number)
    if isinstance(problem, LimitReached):
        return "limit", f"{problem.what}. {problem.hint}".rstrip(". "), problem.code
    assert isinstance(problem, OSError)
    if not reflex_files.is_begun(place):
        return "gone", f"{place.folder} and the loop in it are gone", EXIT_FAILED
    return "files", f"{problem.filename or place.folder}: {problem.strerror or problem}", EXIT_FAILED
