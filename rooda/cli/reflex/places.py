"""Which loop a command means."""

from rooda.errors import RoodaError, Undecided, UsageProblem
from rooda.loops.reflex_state import RUNNING
from rooda.policy.reflex_names import is_alias
from rooda.stores import reflex_files
from rooda.stores.reflex_files import Found, Place

FRESH = "Start a new loop with: rooda reflex new TASK"


def named(workspace: str, alias: str) -> Place:
    """The loop of this name; UsageProblem for what can't be one, since it is part of a path, or isn't there."""
    if not is_alias(alias):
        raise UsageProblem(f"{alias!r} is not the name of a loop.", "See the names with: rooda reflex list")
    if alias not in reflex_files.aliases(workspace):
        raise UsageProblem(f"There is no loop '{alias}' here.", "See the names with: rooda reflex list")
    return Place(workspace, alias)


def meant(workspace: str, alias: str | None) -> Place | None:
    """The named loop, else the active one."""
    if alias is not None:
        return named(workspace, alias)
    found = reflex_files.active(workspace)
    return Place(workspace, found) if found else None


def none_active(workspace: str) -> Undecided:
    marked = reflex_files.running(workspace)
    if marked:
        rows = "\n".join(f"  rooda reflex resume {alias}" for alias in marked)
        return Undecided("No active loop is named, and several are marked running; name one.", rows)
    over = "Those that are over: rooda reflex list. " if reflex_files.aliases(workspace) else ""
    return Undecided("There is no active loop here.", f"{over}Start one with: rooda reflex new TASK")


def without_history(place: Place, found: Found) -> RoodaError:
    """A loop that is marked running stands in the way of a new one until it is stopped."""
    stop = "End this one first: rooda reflex stop\n" if found.state and found.state.status == RUNNING else ""
    return RoodaError(f"{place.history} is missing: the loop '{place.alias}' can't go on.", f"{stop}{FRESH}")


def newest(workspace: str) -> Place | None:
    """The active loop, else the one that was worked on last."""
    if place := meant(workspace, None):
        return place
    states = [(_touched(Place(workspace, alias)), alias) for alias in reflex_files.aliases(workspace)]
    return Place(workspace, max(states)[1]) if states else None


def _touched(place: Place) -> str:
    state = reflex_files.look(place).state
    return state.updated_at if state else ""
