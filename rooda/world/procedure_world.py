"""The World of a procedure: what its loop may cause, bound to one session."""

from functools import partial

from rooda.model import Procedure, Prompt, World
from rooda.world import clock, compose
from rooda.world.checks import Limits
from rooda.world.kept import Measure
from rooda.world.session import Session


def limits_of(procedure: Procedure) -> Limits:
    keep = procedure.agent is not None and procedure.agent.keep_background
    return Limits(procedure.kill_grace, procedure.max_output_buffer, keep)


def world_of(session: Session, procedure: Procedure) -> World:
    def composed(procedure: Procedure, iteration: int) -> Prompt:
        measure = Measure(procedure.token_encoding, procedure.token_budget)
        return session.prompt(partial(compose.text, procedure, iteration + 1), f"{iteration + 1:04d}", measure)

    world = World(
        now=lambda: clock.rfc3339(clock.now()),
        elapsed=session.elapsed,
        signalled=session.signalled,
        enough=session.enough,
        tell=session.tell,
        compose=composed,
        ask=session.ask,
        check=session.check,
        rest=session.rest,
    )
    if procedure.safety == "snapshot":
        from rooda.world.snapshots import guarded

        return guarded(world, session, procedure.name)
    return world
