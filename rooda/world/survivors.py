"""Agents that outlived everything of an earlier run: found by the ledger, proved, ended."""

import os
from typing import Any, NamedTuple

from rooda.world import clock, descent, identity, tree

GRACE = 2.0


class Found(NamedTuple):
    """Who was found alive."""

    run: str
    pids: tuple[int, ...]
    commands: tuple[str, ...]
    ended: bool


def end(ledger: dict[str, Any]) -> Found | None:
    """End whoever provably belongs to the run that this ledger tells of. None when nobody lives."""
    run, calls = ledger.get("run"), ledger.get("calls")
    if not isinstance(run, str) or not isinstance(calls, list) or ledger.get("boot") != identity.boot():
        return None
    calls = [call for call in calls if isinstance(call, dict) and isinstance(call.get("pid"), int)]
    spared = descent.ourselves()

    def living() -> list[int]:
        return [pid for pid in _kin(run, calls) if pid not in spared and not descent.is_zombie(pid)]

    found = living()
    if not found:
        return None
    ended = tree.end_all(living, GRACE, lambda seconds: clock.sleep(min(seconds, 0.01)), lambda: False)
    return Found(run, tuple(found), tuple(str(call.get("command", "")) for call in calls), ended)


def _kin(run: str, calls: list[dict[str, Any]]) -> list[int]:
    """The noted processes, their groups, sessions and descendants, and all that carry the run's mark."""
    found = set(descent.marked(run))
    for call in calls:
        pid, start = call["pid"], identity.start_of(call["pid"])
        if start is not None and start != call.get("start"):
            continue  # the number went to somebody else, so nobody of the old group is left
        found.update(kin.pid for kin in descent.everyone() if pid in (kin.pid, kin.group, kin.session))
    for pid in list(found):
        found.update(descent.descendants(pid))
    return sorted(found - {os.getpid()})
