"""`rooda reflex resume [ALIAS]`: the active loop, or the named one, goes on."""

import click

from rooda.base.json import Json
from rooda.errors import RoodaError, Undecided
from rooda.loops import launch, options
from rooda.loops.options import Asked
from rooda.loops.reflex import files
from rooda.loops.reflex import store as reflex_store
from rooda.loops.reflex.cli import own_flags, ways
from rooda.loops.reflex.files import Found, Place
from rooda.loops.reflex.places import FRESH, meant, none_active, without_history
from rooda.loops.reflex.prepare import Ready, ready
from rooda.loops.reflex.start import go
from rooda.loops.reflex.state import PLAN, PRODUCE_PREPARE, RUNNING, State
from rooda.loops.reflex.status import tab_aliases
from rooda.loops.remembered import taken_over
from rooda.settings.where import Where, relocated, where


@click.pass_context
def _resume(ctx: click.Context, /, alias: str | None, **typed: object) -> int:
    here = relocated(where(ctx), typed)
    reflex_store.tidy_all(here.workspace)  # an end that was cut off, too
    place = meant(here.workspace, alias)
    if place is None:
        raise none_active(here.workspace)
    return go_on(place, here, typed)


def go_on(place: Place, here: Where, typed: Json) -> int:
    """The saved loop to its end, as it was started, or why not."""
    require_open(place, files.look(place))
    _refuse_beside_another(place)
    here, typed = taken_over(here, typed, "reflex", place.alias)
    asked = options.asked(typed)
    made = _limited(ready(here, asked, own_flags(typed)), place, asked)
    held = launch.locked(place.lock, f"the loop '{place.alias}'", place.alias, made.screen)
    reflex_store.tidy_all(here.workspace)
    found = files.look(place)
    state = require_open(place, found)
    if found.rebuilt:
        launch.warn(made.screen, f"{place.run} could not be read; it was rebuilt from history.jsonl.")
    elif not found.history:
        launch.warn(made.screen, f"{place.history} holds no event of this loop; it goes on by run.json alone.")
    store = reflex_store.opened(place, found)
    return go(place, store, with_artifact(place, state), made, held, asked, fresh=False)


def _limited(made: Ready, place: Place, asked: Asked) -> Ready:
    """What is not typed goes on as it was started."""
    return made._replace(setup=launch.kept(made.setup, place.workspace, "reflex", place.alias, asked.flags))


def require_open(place: Place, found: Found) -> State:
    """The state of a loop that can go on."""
    if found.no_history:
        raise without_history(place, found)
    if found.state is None:
        raise RoodaError(f"The files of the loop '{place.alias}' can't be understood.", FRESH)
    if found.state.status != RUNNING:
        raise Undecided(f"{_ended(place, found.state)}{last_error(found)}", FRESH)
    return found.state


def _ended(place: Place, state: State) -> str:
    why = f"{state.status} ({state.stop['reason']})"
    return f"The loop '{place.alias}' has ended: {why}; there is nothing to go on with."


def last_error(found: Found) -> str:
    """The latest phase_error of a loop that failed."""
    errors = [event for event in found.history if event["event"] == "phase_error"]
    if not errors or found.state is None or found.state.status != "failed":
        return ""
    return f"\nLast phase_error: {errors[-1].get('step')}: {errors[-1].get('payload', {}).get('error')}"


def _refuse_beside_another(place: Place) -> None:
    others = [alias for alias in files.running(place.workspace) if alias != place.alias]
    active = files.active(place.workspace)
    if active in others:
        raise Undecided(
            f"The loop '{active}' is active; '{place.alias}' does not go on beside it.",
            f"Go on with it: rooda reflex resume {active}\nor end it: rooda reflex stop",
        )


def with_artifact(place: Place, state: State) -> State:
    """Without its artifact the iteration goes back to where it is written."""
    written = state.current_step not in (PLAN, PRODUCE_PREPARE)
    if written and files.the_artifact(place) is None:
        return state._replace(current_step=PRODUCE_PREPARE, prepared_checks=None, critique=None)
    return state


resume = click.Command(
    "resume",
    callback=_resume,
    params=[click.Argument(["alias"], required=False, shell_complete=tab_aliases), *ways(), *options.for_kind()],
    help="Go on with the active loop, or with ALIAS. A phase that was interrupted is repeated, finished ones are not.",
    short_help="Go on with the active loop, or a named one.",
)
