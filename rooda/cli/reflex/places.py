"""Which loop a command means."""

from rooda.errors import UsageProblem
from rooda.policy.reflex_names import is_alias
from rooda.stores import reflex_files
from rooda.stores.reflex_files import Place


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


def newest(workspace: str) -> Place | None:
    """The active loop, else the one that was worked on last."""
    if place := meant(workspace, None):
        return place
    states = [(_touched(Place(workspace, alias)), alias) for alias in reflex_files.aliases(workspace)]
    return Place(workspace, max(states)[1]) if states else None


def _touched(place: Place) -> str:
    state = reflex_files.look(place).state
    return state.updated_at if state else ""
