"""What a stop hook says of a goal's state file: stop, or what still keeps the loop going."""

from collections.abc import Mapping
from typing import Any

from rooda.loops.goal.goal_types import SHOWING, plain

STUCK = 5
INVALID = {"ok": True, "reason": "invalid state file"}


def decide(state: Any) -> dict[str, Any]:
    """Both conditions, and what comes before them, in the hook's order."""
    if not isinstance(state, Mapping):
        return INVALID
    if state.get("status") in ("completed", "cancelled"):
        return {"ok": True}
    breaker = state.get("circuitBreaker")
    stuck = breaker.get("stuckCount") if isinstance(breaker, Mapping) else 0
    if isinstance(stuck, int | float) and stuck >= STUCK:
        return {"ok": True, "reason": f"circuit breaker triggered after {STUCK} stuck iterations"}
    status = state.get("criteriaStatus")
    entries: Mapping[str, Any] = status if isinstance(status, Mapping) else {}
    unmet = [name for name, entry in entries.items() if not is_met(entry)]
    if unmet or not entries:
        return {"ok": False, "reason": f"unmet criteria: {', '.join(unmet)}"}
    if any(isinstance(entry, Mapping) and not is_shown(entry) for entry in entries.values()):
        return {"ok": False, "reason": "criterion verified by assumption only - requires actual verification"}
    if state.get("exit_signal") is True:
        return {"ok": True}
    return {"ok": False, "reason": "criteria met but exit_signal not set - verify completion"}


def is_shown(entry: Mapping[str, Any]) -> bool:
    """Is its type one that shows something? Any other word, and none, is an assumption."""
    word = entry.get("verification")
    return isinstance(word, str) and plain(word) in SHOWING


def is_met(entry: Any) -> bool:
    """A boolean, or an object with `met`."""
    return entry.get("met") is True if isinstance(entry, Mapping) else entry is True
