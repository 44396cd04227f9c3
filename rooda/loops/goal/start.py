"""One session of a goal: opened, run to its end, and what an end or a pause leaves behind."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from rooda.agents.reader import reader
from rooda.base import files
from rooda.errors import FAILED, Interrupted, LimitReached, code_of_signal
from rooda.loops.goal import files as goal_files
from rooda.loops.goal.edit_counts import Watch, ticking
from rooda.loops.goal.effects import Effects, Ways
from rooda.loops.goal.events import RunEnded
from rooda.loops.goal.files import NAME, Place
from rooda.loops.goal.goal_box import box
from rooda.loops.goal.loop import goal
from rooda.loops.goal.prompts import closing
from rooda.loops.goal.questions import Asker
from rooda.loops.goal.ready import Ready
from rooda.loops.goal.state import COMPLETED, GoalState
from rooda.loops.goal.store import GoalStore, ended, tidied
from rooda.loops.goal.table import summary
from rooda.loops.goal.world import GoalWorld
from rooda.loops.kernel import Run
from rooda.processes import lock
from rooda.processes.signals import Signals
from rooda.run.records import Ending
from rooda.run.session import Session, Tenant
from rooda.settings.where import Where

LOOKS = "polling (at least)"


class Opened(NamedTuple):
    """What is open while a goal runs."""

    session: Session
    world: GoalWorld
    store: GoalStore
    edits: str  # how edits of files are counted


@contextmanager
def opened(
    ready: Ready, where: Where, held: lock.Lock | None, yes: str, resumed: bool = False, spec: str = ""
) -> Iterator[Opened]:
    """Signals, session and the watch over the files; closed in any case."""
    place, screen, setup = Place(where.workspace), ready.screen, ready.setup
    if held or not lock.is_held(place.lock):  # else it is for a goal that runs while this only asks
        files.remove(place.request)
    seen = Watch(where.workspace)
    with Signals() as signals:
        tenant = Tenant("goal", NAME, setup, resumed, ready.asked.kept, spec)
        tick = ticking(seen, screen.tick())
        session = Session(where.workspace, tenant, signals, screen.show, tick, held)
        session.hide(ready.agent.env)
        ways = Ways(
            workspace=where.workspace,
            folder=place.folder,
            shape=place.shape,
            request=place.request,
            agent=ready.agent,
            setup=setup,
            verify_timeout=ready.number("verify_timeout"),
            cost_per_call=ready.number("cost_per_call"),
            yes=yes,
        )
        world = Effects(session, ways, Asker(signals, ready.headless), seen).world()
        stream = "the agent's event stream, else " if reader(ready.agent.output).tells_edits else ""
        try:
            yield Opened(session, world, GoalStore(place, session.emit, session.clean), f"{stream}{LOOKS}")
        finally:
            screen.close()
            session.close()


def carried_out(
    ready: Ready,
    where: Where,
    held: lock.Lock | None,
    yes: str,
    begin: Callable[[Opened, Run], GoalState],
    spec: str,
    resumed: bool = False,
) -> int:
    """The loop from `begin` to its end; gives the exit code."""
    place = Place(where.workspace)
    with opened(ready, where, held, yes, resumed, spec) as open_:
        try:
            run = Run(open_.store)
            ending = goal(run, begin(open_, run), open_.world)
        except Interrupted as cut:
            return code_of_signal(cut.number)
        except OSError as problem:
            note = f"{problem.filename or place.folder}: {problem.strerror or problem}"
            open_.session.emit(RunEnded(reason="files", note=note, status="in_progress", exit_code=FAILED))
            raise
        except LimitReached as limit:  # met while it was planned; the loop itself pauses
            hint = "Nothing was started. Run it again with a higher limit, or later."
            raise LimitReached(limit.what, hint, limit.cause) from None
    if state := open_.store.last:
        summarized(place, state)
        _forgotten(place, state)
    return ending.code


def finished(place: Place) -> GoalState | None:
    """The goal whose end was cut off before all of it was written; it is written now."""
    state = None if lock.is_held(place.lock) else ended(place)
    if state is None or (tidied(place, state) and os.path.exists(place.summary)):
        return None
    summarized(place, state)
    _forgotten(place, state)
    return state


def _forgotten(place: Place, state: GoalState) -> None:
    if state.status == COMPLETED and state.keep == "delete":
        goal_files.forget(place)


def summarized(place: Place, state: GoalState) -> None:
    """`summary.md`, at every end and pause."""
    ended_by = closing(state, Ending(state.pause, 0, note=state.reason, cause=state.cause))
    try:
        goal_files.ready(place)
        files.swap(place.summary, summary(state, box(ended_by.facts)).encode("utf-8", "replace"))
    except OSError:
        pass
