"""From an open loop to its end."""

from rooda.cli.options import Asked
from rooda.cli.reflex.commands import Commands, way_of
from rooda.cli.reflex.effects import Effects, show_artifact
from rooda.cli.reflex.ready import Ready
from rooda.cli.reflex.summary import summary
from rooda.errors import Interrupted, code_of_signal
from rooda.kernel.run import Run
from rooda.loops.reflex import EXIT_CODES, reflex
from rooda.loops.reflex_state import State
from rooda.loops.reflex_world import How
from rooda.report.lines import Line
from rooda.stores.reflex_files import Place
from rooda.stores.reflex_run import ReflexStore
from rooda.world import lock
from rooda.world.checks import Limits
from rooda.world.reflex_effects import CAP
from rooda.world.session import Session, Tenant
from rooda.world.signals import Signals


def go(
    place: Place, store: ReflexStore, start: State, ready: Ready, held: lock.Lock | None, asked: Asked, fresh: bool
) -> int:
    """Run the loop to its end, show what it came to, and give the exit code."""
    made, screen = ready.setup, ready.screen
    limits = Limits(made.kill_grace, min(made.max_output_buffer, CAP), ready.agent.keep_background)
    look = ready.look
    how = How(place.shown_artifact, bool(look.value("sequential", False)), str(look.value("extraction", "strict")))
    with Signals() as signals:
        tenant = Tenant("reflex", place.alias)
        session = Session(place.workspace, tenant, limits, signals, screen.show, screen.tick(), held)
        effects = Effects(session, place, store, ready, Commands(way_of(look), signals), not asked.json)
        say = session.tell
        facts = {"number": start.iteration, "level": start.phase, "step": start.current_step}
        say("run.started" if fresh else "run.resumed", max_iterations=start.max_iterations, **facts)
        try:
            state = reflex(Run(store), start, how, effects.world())
            say("run.ended", **summary(place, state), exit_code=EXIT_CODES[state.status])
        except Interrupted as cut:
            again = f"Interrupted. State saved. Resume with: rooda reflex resume {place.alias}"
            screen.line(Line("warn", again, aside=asked.json))
            return code_of_signal(cut.number)
        finally:
            screen.close()
            session.close()
    show_artifact(ready, place, not asked.json)
    return EXIT_CODES[state.status]
