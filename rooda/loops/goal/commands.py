"""`rooda goal cancel`: end the goal for good."""

import shlex

import click

from rooda.base import files
from rooda.base.json import Json
from rooda.base.text import visible
from rooda.errors import OK, StateDamaged, Undecided
from rooda.loops.goal import files as goal_files
from rooda.loops.goal.files import Place
from rooda.loops.goal.goal_box import box
from rooda.loops.goal.prompts import closing
from rooda.loops.goal.start import summarized
from rooda.loops.goal.state import CANCELLED, GoalState
from rooda.loops.goal.store import GoalStore, unfinished
from rooda.loops.goal.table import cancelled
from rooda.processes import lock
from rooda.run.records import Ending
from rooda.settings.where import Where

LONGEST = 200  # characters of a specification that one would type
FOREVER = 1e9  # seconds; Ctrl+C ends the wait, not the goal


def act(where: Where, typed: Json) -> int:
    place = Place(where.workspace)
    running = lock.is_held(place.lock)
    if running:
        _await_pause(place)
    try:
        state = unfinished(place)
    except StateDamaged as problem:
        click.echo(f"{problem.what}; its files are removed.")
        goal_files.forget(place)
        return OK
    if state is None:
        ended = "It ended before that; nothing is left to cancel."
        click.echo(ended if running else "There is no goal to cancel here.")
        return OK
    held = lock.take(place.lock)
    if held is None:
        raise Undecided("The goal goes on in another terminal; not cancelled.", "Try again, or: rooda stop goal")
    try:
        _cancel(place, state, bool(typed["keep_state"]))
    finally:
        held.let_go()
    return OK


def _await_pause(place: Place) -> None:
    click.echo("Cancel requested: the running iteration finishes first.")
    request(place, "cancel")
    lock.await_free(place.lock, FOREVER)


def request(place: Place, word: str) -> None:
    """Taken by the loop after its iteration."""
    files.write(place.request, word.encode())


def _typed(spec: str) -> str:
    """As it would be typed; a long text as a file."""
    short = len(spec) <= LONGEST and spec.isprintable()
    return shlex.quote(spec) if short else "--file FILE"


def _cancel(place: Place, state: GoalState, keep: bool) -> None:
    """The report, the status, and then the files, unless the person chose to keep them."""
    state = state._replace(status=CANCELLED, exit_signal=False, pause="", reason="", gate="")
    store = GoalStore(place, lambda event: None)
    store.load(())
    store.carry((), state)
    ended_by = closing(state, Ending(CANCELLED, OK))
    report = [*cancelled(state), f"To restart: rooda goal run {_typed(state.brief.spec)}", *box(ended_by.facts)]
    click.echo("\n".join(map(visible, report)))
    summarized(place, state)
    if not keep and state.keep != "keep":
        goal_files.forget(place)
