"""The ledger of a run: whom it has started and not yet ended, on disk in the lock's file before the agent begins."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from rooda.base import clock
from rooda.base.json import Json
from rooda.processes import ending, table
from rooda.processes.lock import Lock

Complain = Callable[[str], None]


class Ledger:
    """Best effort, like all persistence: what can't be noted is said, and the loop goes on."""

    def __init__(self, held: Lock | None, run: str, complain: Complain) -> None:
        self._lock, self._run, self._last_complaint, self._say = held, run, "", complain
        self._calls: list[Json] = []
        self._note()
        self.sync()

    def turn(self) -> None:
        """Whoever was entered has ended; it is written with the next who begins."""
        self._calls, self._last_complaint = [], ""

    def enter(self, pid: int, command: str) -> None:
        """This process is about to become an agent."""
        self._calls.append({"pid": pid, "start": table.start_of(pid), "command": command})
        self._note()

    def sync(self) -> None:
        """On the platter too: the run before its first agent, a pid while its process works.

        A power cut that forgets a pid has ended its process; any other death of ours leaves what was written.
        """
        try:
            if self._lock:
                self._lock.sync()
        except OSError:
            pass  # what could not be written has been said

    def renew(self) -> bool:
        """An agent may have cleaned our folder away; then the lock must be held anew. False: another run has it now."""
        try:
            if self._lock and not self._lock.renew():
                self._complain("the lock was deleted, and another run has begun here since; this one makes way for it")
                self.abandon()
                return False
        except OSError as problem:
            self._complain(f"the lock is gone and can't be made again ({problem.strerror})")
        return True

    def abandon(self) -> None:
        """We are as good as dead: the next run may begin, and ends whom we have not ended by then."""
        if self._lock:
            self._lock.unlock()
            self._lock = None

    def close(self) -> None:
        """Nobody is left."""
        try:
            if self._lock:
                self._lock.release()
        except OSError:
            pass  # the next start looks for survivors, and finds none

    def _complain(self, text: str) -> None:
        """Once in a turn is enough."""
        if text != self._last_complaint:
            self._last_complaint = text
            self._say(text)

    def _note(self) -> None:
        try:
            if self._lock:
                self._lock.note(self._run, self._calls)
        except OSError as problem:
            why = problem.strerror or str(problem)
            self._complain(f"the ledger of running agents can't be written ({why}); a crash may leave one alive")


# Agents that outlived everything of an earlier run: found by the ledger, proved, ended.
GRACE = 2.0
PATIENCE = 0.3  # one who forks and exits while we look can be missed; so long as somebody forks we look again


class Survivors(NamedTuple):
    """Who was found alive."""

    run: str
    pids: tuple[int, ...]
    commands: tuple[str, ...]
    ended: bool


def end_survivors(ledger: dict[str, Any], is_run: Callable[[str], bool]) -> Survivors | None:
    """End every process that provably belongs to the ledger's run; `is_run` knows a run's id. None when none lives."""
    run, calls = ledger.get("run"), ledger.get("calls")
    if not isinstance(run, str) or not isinstance(calls, list) or ledger.get("boot") != table.boot():
        return None
    if not is_run(run):
        return None
    processes = _RunProcesses(run, _entered(calls))
    found, ended = processes.living(), True
    if found:
        ended = ending.end_all(processes.living, GRACE, lambda seconds: clock.sleep(min(seconds, 0.01)), lambda: False)
    found = list(dict.fromkeys(found + _kill_newcomers(processes)))
    if not found:
        return None
    commands = tuple(str(call.get("command", "")) for call in calls if isinstance(call, dict))
    return Survivors(run, tuple(found), commands, ended)


def _kill_newcomers(processes: "_RunProcesses") -> list[int]:
    """Kill on sight, until nobody is seen in a look during which nobody forked. Whom that killed."""
    killed: list[int] = []
    last = clock.monotonic() + 10 * PATIENCE
    deadline = clock.monotonic() + PATIENCE
    while (now := clock.monotonic()) < min(deadline, last):
        newest = table.last_pid()
        if seen := processes.kill_marked():
            killed += seen
            deadline = now + PATIENCE
        elif newest == table.last_pid():
            break
    return killed


def _entered(calls: list[Any]) -> dict[int, object]:
    """Pid and start time of the noted processes, as far as they make sense."""
    calls = [call for call in calls if isinstance(call, dict) and type(call.get("pid")) is int]
    return {call["pid"]: call["start"] for call in calls if call["pid"] > 1 and type(call.get("start")) in (int, float)}


class _RunProcesses:
    """The noted, their groups, sessions and descendants, and all that carry the run's mark.

    A group or session is proof only while its leader lives, whose start time we know: later its number may be
    another's. So that is looked at once, and whoever was found is remembered with a start time of its own.
    """

    def __init__(self, run: str, noted: dict[int, object]) -> None:
        self._run, self._spared = run, table.own_ancestry()
        self._unmarked = set(self._spared)
        self._known: dict[int, object] = {}
        leaders = {pid for pid, start in noted.items() if table.start_of(pid) == start}
        self._learn(leaders)
        self._learn(
            processes.pid for processes in table.all_processes() if {processes.group, processes.session} & leaders
        )

    def living(self) -> list[int]:
        """Who of them lives now."""
        self._learn(table.marked_with(self._run, self._unmarked))
        for pid in list(self._known):
            self._learn(table.descendants(pid))
        dead = {pid for pid, start in self._known.items() if table.start_of(pid) != start or table.is_zombie(pid)}
        self._unmarked |= dead
        self._known = {pid: start for pid, start in self._known.items() if pid not in dead}
        return list(self._known)

    def kill_marked(self) -> list[int]:
        """Kill whoever carries the mark the moment he is seen."""
        killed = []
        for pid in table.marked_with(self._run, self._unmarked):
            if not table.is_zombie(pid):
                ending.kill(pid)
                killed.append(pid)
        return killed

    def _learn(self, pids: Iterable[int]) -> None:
        for pid in pids:
            if pid not in self._known and pid not in self._spared and (start := table.start_of(pid)) is not None:
                self._known[pid] = start
