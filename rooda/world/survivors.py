"""Agents that outlived everything of an earlier run: found by the ledger, proved, ended."""

import os
from typing import Any, NamedTuple

from rooda.world import clock, descent, identity, tree
from rooda.world.runfolder import is_id

GRACE = 2.0
LOOKS = 3  # one who forks and exits while we read /proc can be missed in one look


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
    if not is_id(run):
        return None
    known = _noted(calls)
    spared = descent.ourselves()

    def living() -> list[int]:
        for _ in range(LOOKS):
            kin = [pid for pid in _kin(run, known) if pid not in spared and not descent.is_zombie(pid)]
            if kin:
                return kin
        return []

    found = living()
    if not found:
        return None
    commands = tuple(str(call.get("command", "")) for call in calls if isinstance(call, dict))
    ended = tree.end_all(living, GRACE, lambda seconds: clock.sleep(min(seconds, 0.01)), lambda: False)
    return Found(run, tuple(found), commands, ended)


def _noted(calls: list[Any]) -> dict[int, object]:
    """Pid and start time of the noted processes, as far as they make sense."""
    calls = [call for call in calls if isinstance(call, dict) and type(call.get("pid")) is int]
    return {call["pid"]: call["start"] for call in calls if call["pid"] > 1 and type(call.get("start")) in (int, float)}


def _kin(run: str, known: dict[int, object]) -> list[int]:
    """The noted, their groups, sessions and descendants, and all that carry the run's mark.

    A group or session is proof only while its leader lives, whose start time we know: later its number may be
    another's. So whoever was found is remembered in `known` with a start time of its own.
    """
    found = set(descent.marked(run))
    leaders = {pid for pid, start in known.items() if identity.start_of(pid) == start}
    found |= leaders
    found.update(kin.pid for kin in descent.everyone() if {kin.group, kin.session} & leaders)
    for pid in list(found):
        found.update(descent.descendants(pid))
    for pid in found - leaders:
        if (start := identity.start_of(pid)) is not None:
            known[pid] = start
    return sorted(found - {os.getpid()})
