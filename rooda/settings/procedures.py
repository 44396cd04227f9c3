"""Finds the procedures that the settings define, the built-in ones and the user's."""

from typing import Any

from rooda.errors import UsageProblem
from rooda.settings.layers import Settings
from rooda.settings.types import nearest

SUCCESSORS = {  # of procedures of an older program of the same name; there they also had the prefix `draft-`
    "plan-spec-to-impl": "rooda audit-spec-to-impl (reports the gaps) and rooda draft-plan-impl-feat (plans the work)",
    "plan-impl-to-spec": "rooda audit-impl-to-spec (reports the gaps) and rooda draft-plan-spec-feat (plans the work)",
    "plan-story-to-spec": "rooda draft-plan-spec-feat",
    "plan-bug-to-spec": "rooda draft-plan-spec-fix",
    "plan-spec-refactor": "rooda draft-plan-spec-refactor",
    "plan-impl-refactor": "rooda draft-plan-impl-refactor",
}


def names(settings: Settings) -> list[str]:
    """Return the names of all procedures, sorted."""
    return sorted({name for layer in settings.layers for name in layer.table("procedures")})


def own(settings: Settings, name: str) -> dict[str, Any]:
    """Return the table [procedures.NAME], merged from all files."""
    return settings.table("procedures", name)


def summary(settings: Settings, name: str) -> str:
    """Return one line about the procedure; may be empty."""
    table = own(settings, name)
    text = table.get("summary") or table.get("description") or ""
    return str(text).strip().partition("\n")[0]


def require(settings: Settings, name: str) -> None:
    known = names(settings)
    if name not in known:
        raise unknown(name, nearest(name, known))


def unknown(name: str, near: str) -> UsageProblem:
    """Return the error for an unknown procedure; `near` is a similar name to suggest, or ""."""
    what = f"Unknown procedure '{name}'. Run 'rooda list' to see available procedures."
    if successor := SUCCESSORS.get(name.removeprefix("draft-")):
        return UsageProblem(what, f"Replaced by: {successor}")
    return UsageProblem(what, f"Did you mean '{near}'?" if near else "")


def summaries(settings: Settings) -> list[tuple[str, str]]:
    """Return the name and summary of each procedure."""
    return [(name, summary(settings, name)) for name in names(settings)]
