"""Agents that outlived everything of an earlier run: found by the ledger, proved, ended."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from rooda.base import clock
from rooda.processes import ending, identity, table

GRACE = 2.0
PATIENCE = 0.3  # one who forks and exits while we look can be missed; so long as somebody forks we look again


class Found(NamedTuple):
    """Who was found alive."""

    run: str
    pids: tuple[int, ...]
    commands: tuple[str, ...]
    ended: bool


def end(ledger: dict[str, Any], is_run: Callable[[str], bool]) -> Found | None:
    """End every process that provably belongs to the ledger's run; `is_run` knows a run's id. None when none lives."""
    run, calls = ledger.get("run"), ledger.get("calls")
    if not isinstance(run, str) or not isinstance(calls, list) or ledger.get("boot") != identity.boot():
        return None
    if not is_run(run):
        return None
    kin = _Kin(run, _noted(calls))
    found, ended = kin.living(), True
    if found:
        ended = ending.end_all(kin.living, GRACE, lambda seconds: clock.sleep(min(seconds, 0.01)), lambda: False)
    found = list(dict.fromkeys(found + _hunt(kin)))
    if not found:
        return None
    commands = tuple(str(call.get("command", "")) for call in calls if isinstance(call, dict))
    return Found(run, tuple(found), commands, ended)


def _hunt(kin: "_Kin") -> list[int]:
    """Kill on sight, until nobody is seen in a look during which nobody forked. Whom that met."""
    met: list[int] = []
    last = clock.monotonic() + 10 * PATIENCE
    deadline = clock.monotonic() + PATIENCE
    while (now := clock.monotonic()) < min(deadline, last):
        newest = table.newest()
        if seen := kin.strike():
            met += seen
            deadline = now + PATIENCE
        elif newest == table.newest():
            break
    return met


def _noted(calls: list[Any]) -> dict[int, object]:
    """Pid and start time of the noted processes, as far as they make sense."""
    calls = [call for call in calls if isinstance(call, dict) and type(call.get("pid")) is int]
    return {call["pid"]: call["start"] for call in calls if call["pid"] > 1 and type(call.get("start")) in (int, float)}


class _Kin:
    """The noted, their groups, sessions and descendants, and all that carry the run's mark.

    A group or session is proof only while its leader lives, whose start time we know: later its number may be
    another's. So that is looked at once, and whoever was found is remembered with a start time of its own.
    """

    def __init__(self, run: str, noted: dict[int, object]) -> None:
        self._run, self._spared = run, table.ourselves()
        self._unmarked = set(self._spared)
        self._known: dict[int, object] = {}
        leaders = {pid for pid, start in noted.items() if identity.start_of(pid) == start}
        self._learn(leaders)
        self._learn(kin.pid for kin in table.everyone() if {kin.group, kin.session} & leaders)

    def living(self) -> list[int]:
        """Who of them lives now."""
        self._learn(table.marked(self._run, self._unmarked))
        for pid in list(self._known):
            self._learn(table.descendants(pid))
        dead = {pid for pid, start in self._known.items() if identity.start_of(pid) != start or table.is_zombie(pid)}
        self._unmarked |= dead
        self._known = {pid: start for pid, start in self._known.items() if pid not in dead}
        return list(self._known)

    def strike(self) -> list[int]:
        """Kill whoever carries the mark the moment he is seen."""
        met = []
        for pid in table.marked(self._run, self._unmarked):
            if not table.is_zombie(pid):
                ending.kill(pid)
                met.append(pid)
        return met

    def _learn(self, pids: Iterable[int]) -> None:
        for pid in pids:
            if pid not in self._known and pid not in self._spared and (start := identity.start_of(pid)) is not None:
                self._known[pid] = start
