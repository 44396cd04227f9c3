"""Records the running processes of a run in its lock file, so that the next run can end those that survive it."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from rooda.base import clock
from rooda.base.json import Json
from rooda.processes import ending, table
from rooda.processes.lock import Lock

Report = Callable[[str], None]


class Ledger:
    """Records the agents of a run. A write that fails is reported; the loop continues."""

    def __init__(self, held: Lock | None, run: str, report: Report) -> None:
        self._lock, self._run, self._last_reported, self._report_text = held, run, "", report
        self._calls: list[Json] = []
        self._write()
        self.sync()

    def forget_ended(self) -> None:
        """Forget the recorded agents, which have ended; the next `record` updates the file."""
        self._calls, self._last_reported = [], ""

    def record(self, pid: int, command: str) -> None:
        """Record a process that is about to become an agent."""
        self._calls.append({"pid": pid, "start": table.start_of(pid), "command": command})
        self._write()

    def sync(self) -> None:
        """Flush the ledger to disk. Called before the first agent starts, and while each agent works.

        A power cut that loses a PID has also ended its process; a crash loses nothing that was written.
        """
        try:
            if self._lock:
                self._lock.sync()
        except OSError:
            pass  # the previous write has reported it

    def renew(self) -> bool:
        """Take the lock again if an agent deleted its file; False if another run has taken it."""
        try:
            if self._lock and not self._lock.renew():
                self._report("the lock file was deleted and another run has started here; stopping this one")
                self.abandon()
                return False
        except OSError as problem:
            self._report(f"the lock file was deleted and can't be created again: {problem.strerror}")
        return True

    def abandon(self) -> None:
        """Release the lock without ending the run's processes; the next run ends them."""
        if self._lock:
            self._lock.unlock()
            self._lock = None

    def close(self) -> None:
        """Release the lock after all processes have ended."""
        try:
            if self._lock:
                self._lock.release()
        except OSError:
            pass  # the next start looks for orphans and finds none

    def _report(self, text: str) -> None:
        """Report a problem, unless it was the last one reported since `forget_ended`."""
        if text != self._last_reported:
            self._last_reported = text
            self._report_text(text)

    def _write(self) -> None:
        try:
            if self._lock:
                self._lock.note(self._run, self._calls)
        except OSError as problem:
            why = problem.strerror or str(problem)
            self._report(f"can't record the running agents ({why}); an agent may survive a crash")


# Find and end agents that survived an earlier run.
GRACE = 2.0
PATIENCE = 0.3  # processes that fork and exit can be missed: search again while new processes appear


class Survivors(NamedTuple):
    """Processes that survived a run, and whether they could be ended."""

    run: str
    pids: tuple[int, ...]
    commands: tuple[str, ...]
    ended: bool


def end_survivors(ledger: dict[str, Any], is_run: Callable[[str], bool]) -> Survivors | None:
    """End every process that provably belongs to the ledger's run; None if none is alive. `is_run` checks an ID."""
    run, calls = ledger.get("run"), ledger.get("calls")
    if not isinstance(run, str) or not isinstance(calls, list) or ledger.get("boot") != table.boot():
        return None
    if not is_run(run):
        return None
    processes = _RunProcesses(run, _recorded(calls))
    found, ended = processes.living(), True
    if found:
        ended = ending.end_all(processes.living, GRACE, lambda seconds: clock.sleep(min(seconds, 0.01)), lambda: False)
    found = list(dict.fromkeys(found + _kill_newcomers(processes)))
    if not found:
        return None
    commands = tuple(str(call.get("command", "")) for call in calls if isinstance(call, dict))
    return Survivors(run, tuple(found), commands, ended)


def _kill_newcomers(processes: "_RunProcesses") -> list[int]:
    """Kill marked processes until a search finds none and no process was started during it; return their PIDs."""
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


def _recorded(calls: list[Any]) -> dict[int, object]:
    """Map the valid PIDs of the ledger to their start times."""
    calls = [call for call in calls if isinstance(call, dict) and type(call.get("pid")) is int]
    return {call["pid"]: call["start"] for call in calls if call["pid"] > 1 and type(call.get("start")) in (int, float)}


class _RunProcesses:
    """Finds a run's processes: those in the ledger, their groups, sessions and descendants, and those with its mark.

    A group or session ID identifies the run's processes only while its leader runs, since it can be reused later. So
    groups and sessions are searched once, and each process found is identified by its own start time from then on.
    """

    def __init__(self, run: str, recorded: dict[int, object]) -> None:
        self._run, self._spared = run, table.own_ancestry()
        self._unmarked = set(self._spared)
        self._known: dict[int, object] = {}
        leaders = {pid for pid, start in recorded.items() if table.start_of(pid) == start}
        self._learn(leaders)
        self._learn(
            processes.pid for processes in table.all_processes() if {processes.group, processes.session} & leaders
        )

    def living(self) -> list[int]:
        """Return the PIDs of the run's live processes."""
        self._learn(table.marked_with(self._run, self._unmarked))
        for pid in list(self._known):
            self._learn(table.descendants(pid))
        dead = {pid for pid, start in self._known.items() if table.start_of(pid) != start or table.is_zombie(pid)}
        self._unmarked |= dead
        self._known = {pid: start for pid, start in self._known.items() if pid not in dead}
        return list(self._known)

    def kill_marked(self) -> list[int]:
        """Kill every process marked with this run as soon as it is found; return their PIDs."""
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
