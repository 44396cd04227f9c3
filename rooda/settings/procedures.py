"""The procedures that the settings name: the shipped ones and the user's."""

from typing import Any

from rooda.errors import UsageProblem
from rooda.settings.layers import Settings
from rooda.settings.types import nearest


def names(settings: Settings) -> list[str]:
    """The names of all procedures, sorted."""
    return sorted({name for layer in settings.layers for name in layer.table("procedures")})


def own(settings: Settings, name: str) -> dict[str, Any]:
    """The table [procedures.NAME], merged over all files."""
    return settings.table("procedures", name)


def summary(settings: Settings, name: str) -> str:
    """One line about the procedure; may be empty."""
    table = own(settings, name)
    text = table.get("summary") or table.get("description") or ""
    return str(text).strip().partition("\n")[0]


def require(settings: Settings, name: str) -> None:
    known = names(settings)
    if name not in known:
        raise unknown(name, nearest(name, known))


def unknown(name: str, near: str) -> UsageProblem:
    """The error for an unknown procedure. `near`: a similar name as the user would type it, or ""."""
    what = f"Unknown procedure '{name}'. Run 'rooda list' to see available procedures."
    return UsageProblem(what, f"Did you mean '{near}'?" if near else "")


def summaries(settings: Settings) -> list[tuple[str, str]]:
    """Return each procedure with its summary."""
    return [(name, summary(settings, name)) for name in names(settings)]
