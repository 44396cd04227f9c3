"""How fit the work is to be delegated: five dimensions of 0 to 10. A report only, it decides nothing."""

from collections.abc import Mapping
from typing import Any, NamedTuple

DIMENSIONS = ("spec_clarity", "verification_cost", "reversibility", "hidden_coupling", "shape_confidence")
_OF_CLASS = {"2A": 10, "2B": 7, "1": 2}
TOOL, REVIEWED, COLLEAGUE, BLOCKED = "Tool", "Tool with review", "Colleague", "not to be delegated"


class Fit(NamedTuple):
    """10 is easy; None: nobody said."""

    spec_clarity: int | None = None
    verification_cost: int | None = None
    reversibility: int | None = None
    hidden_coupling: int | None = None
    shape_confidence: int | None = None

    @property
    def total(self) -> int | None:
        """The sum, as soon as all five are known."""
        known = [each for each in self if each is not None]
        return sum(known) if len(known) == len(DIMENSIONS) else None


def read(value: Any) -> Fit:
    """What a plan says of it; anything but 0 to 10 is not said."""
    given: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
    return Fit(*(given[name] if type(given.get(name)) is int and 0 <= given[name] <= 10 else None
                 for name in DIMENSIONS))  # fmt: skip


def filled(fit: Fit, total: int, reversibility: str, checked: int, criteria: int) -> Fit:
    """With what rooda knows by itself: the score, the class, and how many criteria have a command."""
    return fit._replace(
        spec_clarity=total,
        reversibility=_OF_CLASS.get(reversibility, _OF_CLASS["2B"]),
        verification_cost=round(10 * checked / criteria) if criteria else 0,
    )


def verdict(fit: Fit) -> str:
    """By the sum; near the upper border what is costly to verify is a colleague's."""
    total = fit.total
    if total is None:
        return ""
    if 35 <= total <= 45 and (fit.verification_cost or 0) < 5:
        return COLLEAGUE
    if total >= 40:
        return TOOL
    return REVIEWED if total >= 30 else COLLEAGUE if total >= 25 else BLOCKED


def text(fit: Fit) -> str:
    """One line: `Fit: 41/50 (Tool)`, or how much of it is known."""
    if fit.total is not None:
        return f"{fit.total}/50 ({verdict(fit)})"
    known = [each for each in fit if each is not None]
    return f"{sum(known)}/{10 * len(known)} of what is known"
