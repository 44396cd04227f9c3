"""Reads the past runs of a workspace from their logs, each run with all its sessions."""

import os
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from rooda.base.json import Json
from rooda.run import ended, folder
from rooda.run.events import NAME
from rooda.run.history import Logs, Pricing, SessionLog
from rooda.run.spending import Spent, Used, total


class PastRun(NamedTuple):
    """A run: its sessions, oldest first, from one start up to the next."""

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
    def cancelled(self) -> str | None:
        """The reason with which the user cancelled the run, "" without one; None if the user hasn't cancelled it."""
        return folder.cancelled(self.last.folder)

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
        if self.cancelled is not None:
            return ended.CANCELLED
        if self.last.ended is None:
            return self.last.state_of({"status": "running"})
        return ended.of_end(self.last.ended)


def past_runs(workspace: str, name: str | None = None, log: Logs = SessionLog) -> list[PastRun]:
    """Return the runs of a workspace, or of the loop or run `name`, newest first."""
    found = [session for path in folder.all_of(workspace, name) if (session := _session(path, log)).opening]
    groups: dict[str, list[SessionLog]] = {}  # by the session that started the run, ordered by last session
    begun: dict[tuple[str, str], str] = {}
    for session in found:
        loop = session.loop, folder.loop_of(session.run)
        if session.opening["event"] == "run.started" or loop not in begun:
            begun[loop] = session.run
        groups[begun[loop]] = [*groups.pop(begun[loop], []), session]
    return [PastRun(tuple(sessions)) for sessions in reversed(groups.values())]


def newest_runs(workspace: str, most: int, log: Logs = SessionLog) -> list[PastRun]:
    """Return at most `most` runs, newest first, like `past_runs`; reads only the logs of these runs."""
    groups: dict[tuple[str, str], list[list[SessionLog]]] = {}  # by loop; the last list of each may be incomplete
    order: list[list[SessionLog]] = []
    whole: set[int] = set()  # ids of the lists that have the start of their run
    for path in reversed(folder.all_of(workspace, None)):
        if len(order) >= most and len(whole) == len(order):
            break
        session = _session(path, log)
        found = groups.setdefault((session.loop, folder.loop_of(session.run)), []) if session.opening else None
        if found is None or (len(order) >= most and (not found or id(found[-1]) in whole)):
            continue
        if not found or id(found[-1]) in whole:
            found.append([])
            order.append(found[-1])
        found[-1].insert(0, session)
        if session.opening["event"] == "run.started":
            whole.add(id(found[-1]))
    return [PastRun(tuple(sessions)) for sessions in order]


def run_of(workspace: str, run: str, log: Logs = SessionLog) -> tuple[PastRun, str] | None:
    """Return the run that has the session `run`, and the session that began the next run, "" if there is none.

    Reads only the logs of this run; None if there is no such session.
    """
    paths = folder.all_of(workspace, folder.loop_of(run))
    at = next((place for place, path in enumerate(paths) if os.path.basename(path) == run), None)
    if at is None or not (found := [_session(paths[at], log)])[0].opening:
        return None
    loop, after = found[0].loop, ""
    for path in reversed(paths[:at]):
        if found[0].opening["event"] == "run.started":
            break
        if (session := _session(path, log)).opening and session.loop == loop:
            found.insert(0, session)
    for path in paths[at + 1 :]:
        if (session := _session(path, log)).opening and session.loop == loop:
            if session.opening["event"] == "run.started":
                after = session.run
                break
            found.append(session)
    return PastRun(tuple(found)), after


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
    """Return the run with the newest session that has a log, else None. Reads only the logs of that run's loop."""
    latest = folder.latest(workspace, None)
    found = past_runs(workspace, folder.loop_of(os.path.basename(latest))) if latest else []
    return found[0] if found else None


def spent(run: PastRun, running: bool, prices: Pricing) -> Spent:
    """Return the total usage of a run, from its logs and from the ledger."""
    return total(calls(run, running, prices))


def calls(run: PastRun, running: bool, prices: Pricing) -> Iterator[Used]:
    """Yield the recorded calls of a run: from its logs and, if logs were deleted, from the ledger."""
    yield from run.deleted
    for session in run.sessions:
        yield from session.calls if running and session is run.last else session.used(prices)


def _session(path: str, log: Logs) -> SessionLog:
    return log(os.path.join(path, NAME)).refresh()


def is_running(run: PastRun, live: Collection[str]) -> bool:
    return run.last.run in live
