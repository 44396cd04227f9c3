"""Which loop a command means."""

from rooda.errors import RoodaError, Undecided, UsageProblem
from rooda.loops.reflex import files
from rooda.loops.reflex.files import Found, Place
from rooda.loops.reflex.reflex_names import is_alias
from rooda.loops.reflex.state import RUNNING

FRESH = "Start a new loop with: rooda reflex new TASK"


def named(workspace: str, alias: str) -> Place:
    """The loop of this name; UsageProblem for what can't be one, since it is part of a path, or isn't there."""
    if not is_alias(alias):
        raise UsageProblem(f"{alias!r} is not the name of a loop.", "See the names with: rooda reflex list")
    if alias not in files.aliases(workspace):
        raise UsageProblem(f"There is no loop '{alias}' here.", "See the names with: rooda reflex list")
    return Place(workspace, alias)


def meant(workspace: str, alias: str | None) -> Place | None:
    """The named loop, else the active one."""
    if alias is not None:
        return named(workspace, alias)
    found = files.active(workspace)
    return Place(workspace, found) if found else None


def none_active(workspace: str) -> Undecided:
    marked = files.running(workspace)
    if marked:
        rows = "\n".join(f"  rooda reflex resume {alias}" for alias in marked)
        return Undecided("No active loop is named, and several are marked running; name one.", rows)
    over = "Those that are over: rooda reflex list. " if files.aliases(workspace) else ""
    return Undecided("There is no active loop here.", f"{over}Start one with: rooda reflex new TASK")


def without_history(place: Place, found: Found) -> RoodaError:
    """A loop that is marked running stands in the way of a new one until it is stopped."""
    stop = "End this one first: rooda reflex stop\n" if found.state and found.state.status == RUNNING else ""
    return RoodaError(f"{place.history} is missing: the loop '{place.alias}' can't go on.", f"{stop}{FRESH}")


def newest(workspace: str) -> Place | None:
    """The active loop, else the one that was worked on last."""
    if place := meant(workspace, None):
        return place
    states = [(_touched(Place(workspace, alias)), alias) for alias in files.aliases(workspace)]
    return Place(workspace, max(states)[1]) if states else None


def _touched(place: Place) -> str:
    state = files.look(place).state
    return state.updated_at if state else ""
