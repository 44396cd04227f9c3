"""Reads the past runs of a workspace from their logs, each run with all its sessions."""

import os
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from rooda.base.json import Json
from rooda.run import ended, folder
from rooda.run.events import NAME
from rooda.run.history import Pricing, SessionLog
from rooda.run.spending import Spent, Used, total


class PastRun(NamedTuple):
    """One run: its sessions, oldest first, from one start to the next."""

    sessions: tuple[SessionLog, ...]
    deleted: tuple[Used, ...] = ()  # calls of sessions whose logs were deleted; read from the user's ledger

    @property
    def last(self) -> SessionLog:
        return self.sessions[-1]

    @property
    def loop(self) -> str:
        return self.last.loop

    @property
    def name(self) -> str:
        return folder.loop_of(self.last.run)

    @property
    def summary(self) -> Json:
        """Return the summary that the last session logged at its end; {} if it logged none."""
        found = (self.last.ended or {}).get("summary")
        return found if isinstance(found, dict) else {}

    @property
    def started_at(self) -> str:
        return str(self.sessions[0].first.get("ts", ""))

    @property
    def iterations(self) -> int:
        return int(self.summary.get("iterations", max(self.last.called_iterations, default=0)))

    def elapsed(self, running: bool) -> float:
        return sum(each.elapsed(running and each is self.last) for each in self.sessions)

    def state(self, running: bool) -> str:
        """Return the state of the run, one of those in run/ended.py."""
        if running:
            return ended.of_running(self.last.now.phase, suspended=False)
        if self.last.ended is None:
            return self.last.state_of({"status": "running"})
        return ended.of_end(self.last.ended)


def past_runs(workspace: str, name: str | None = None) -> list[PastRun]:
    """Return the runs of a workspace, or of the loop or run `name`, newest first."""
    found = [each for each in map(_session, folder.all_of(workspace, name)) if each.opening]
    groups: dict[str, list[SessionLog]] = {}  # by the session that started the run, ordered by last session
    begun: dict[tuple[str, str], str] = {}
    for session in found:
        loop = session.loop, folder.loop_of(session.run)
        if session.opening["event"] == "run.started" or loop not in begun:
            begun[loop] = session.run
        groups[begun[loop]] = [*groups.pop(begun[loop], []), session]
    return [PastRun(tuple(sessions)) for sessions in reversed(groups.values())]


def with_deleted(runs: list[PastRun], calls: Iterable[Used]) -> list[PastRun]:
    """Add to each run the calls of its sessions whose logs were deleted. `runs` are newest first."""
    found: dict[int, list[Used]] = {}
    for call in calls:
        for place, run in enumerate(runs):
            if (run.loop, run.name) == (call.loop, call.name) and run.sessions[0].run < call.run:
                found.setdefault(place, []).append(call)
                break
    return [run._replace(deleted=tuple(found.get(place, ()))) for place, run in enumerate(runs)]


def newest_run(workspace: str) -> PastRun | None:
    """Return the run with the newest session that has a log. Reads only the logs of that run's loop."""
    latest = folder.latest(workspace, None)
    found = past_runs(workspace, folder.loop_of(os.path.basename(latest))) if latest else []
    return found[0] if found else None


def spent(run: PastRun, running: bool, prices: Pricing) -> Spent:
    """Return the total usage of a run, from all places where costs are recorded."""
    return total(_calls(run, running, prices))


def _calls(run: PastRun, running: bool, prices: Pricing) -> Iterator[Used]:
    yield from run.deleted
    for session in run.sessions:
        yield from session.calls if running and session is run.last else session.used(prices)


def _session(path: str) -> SessionLog:
    return SessionLog(os.path.join(path, NAME)).refresh()


def is_running(run: PastRun, live: Collection[str]) -> bool:
    return run.last.run in live
