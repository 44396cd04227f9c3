"""Reads the data of the overview: open loops and tasks in all workspaces of the user, and the newest finished runs."""

import os
from collections.abc import Iterator
from typing import NamedTuple

from rooda.base import clock, files, secrets
from rooda.base.json import Json
from rooda.errors import RoodaError
from rooda.git import traces
from rooda.loops import masking, past
from rooda.loops.overview import Found, Overview
from rooda.page import run_facts
from rooda.page.fleet_tasks import FleetTasks
from rooda.processes import lock
from rooda.run import asked, cost_ledger, folder, past_runs, workspaces
from rooda.run.ended import COMPLETED, PARKED
from rooda.run.events import NAME
from rooda.run.history import SessionLog
from rooda.run.past_runs import PastRun
from rooda.run.spending import Used
from rooda.settings.where import Where
from rooda.tasks import model, progress
from rooda.tasks.conflicts import Foresight
from rooda.tasks.store import Store, place_of
from rooda.tasks.work import settings_file
from rooda.views.status_table import Row, unreadable

MOST_FINISHED = 50
FORGETS = 5_000  # number of looks after which everything is read again
SHARE = 10  # running tasks are read again after ten times as long as reading them takes
KEYS_LAST = 30.0  # seconds for which the secrets in a workspace's settings are kept


class Entry(NamedTuple):
    """An open loop or task, with the workspace in which its commands run."""

    id: str
    here: Where
    row: Json  # as `rooda status --all --json` or `rooda tasks --json` prints it
    question: str = ""
    runs: bool = False  # only for a task: `rooda tasks run` is active
    cause: str = ""  # why its newest session ended
    is_fleets: bool = False  # a task of the fleet, for which the page has no actions

    @property
    def is_task(self) -> bool:
        return "title" in self.row["details"]

    @property
    def place(self) -> str:
        """The folder in which the entry's commands run; for a task of the fleet, "fleet" and the name of its worker."""
        if self.is_fleets:
            worker = self.row["details"].get("worker")
            return f"fleet, worker {worker}" if worker else "fleet"
        return self.here.workspace if self.is_task else str(self.row["workspace"])


class Finished(NamedTuple):
    """A run that is over, as `rooda runs --json` prints it."""

    id: str
    workspace: str
    row: Json


def key_of(*names: str) -> str:
    """Return a short name for a workspace or a loop, for use in URLs."""
    return files.sha256(files.to_bytes("\0".join(names)))[:16]


class Board:
    """The open loops and tasks, and the finished runs. It caches all data, so that `look` reads only what is new."""

    def __init__(self, here: Where) -> None:
        self._here = here
        self._overview, self._looks = Overview(here), 0
        self._logs: dict[str, SessionLog] = {}
        self._ledger: dict[str, tuple[object, list[Used]]] = {}
        self._rows: dict[tuple[object, ...], Json] = {}
        self._tasks: dict[str, _Tasks] = {}
        self.fleet = FleetTasks(here)
        self._keys: dict[str, tuple[float, tuple[str, ...]]] = {}
        self.workspaces: dict[str, Where] = {}  # workspaces by key, including the clones of tasks
        self.open: list[Entry] = []
        self.finished: list[Finished] = []

    def look(self, fresh: bool = False) -> None:
        """Read everything that has changed. Without `fresh`, loops that don't run are read less often."""
        self._looks += 1
        if self._looks % FORGETS == 0:  # data of loops and logs that were deleted
            self._overview, self._logs = Overview(self._here), {}
        own = os.path.realpath(self._here.workspace)
        known = {own: self._here} | {path: Where(path) for path in workspaces.known() if path != own}
        loops = [*self._loops(known, fresh)]
        tasks = [entry for here in known.values() for entry in self._tasks_of(here)]
        clones = [Where(each.row["workspace"], each.here.config) for each in tasks if each.row["run"]]
        self.workspaces = {key_of(each.workspace): each for each in [*known.values(), *clones]}
        self.open = [*loops, *{each.id: each for each in tasks}.values(), *self._fleets_tasks()]
        self.finished = [*self._finished([*known.values()], [each.row for each in loops])]

    def log(self, path: str) -> SessionLog:
        """Return the reader of the log at a path; it remembers what it has read, and reads only new lines."""
        return self._logs.setdefault(path, SessionLog(path))

    def run(self, here: Where, run: str) -> PastRun | None:
        """Return the run that has the session `run`; None if there is none, or if a session's folder is a link."""
        try:
            found = past_runs.run_of(here.workspace, run, self.log)
        except (RoodaError, OSError):
            return None
        if found is None or any(os.path.islink(session.folder) for session in found[0].sessions):
            return None
        one, after = found
        calls = self._deleted(here)
        own = (call for call in calls if (call.loop, call.name) == (one.loop, one.name))
        return one._replace(deleted=tuple(call for call in own if one.sessions[0].run < call.run < (after or "~")))

    def keys(self, here: Where) -> tuple[str, ...]:
        """Return the secrets that the page masks in all texts of a workspace."""
        until, found = self._keys.get(here.workspace, (0.0, ()))
        if until < clock.monotonic():
            found = masking.keys(here)
            self._keys[here.workspace] = clock.monotonic() + KEYS_LAST, found
        return found

    def entry(self, id_: str) -> Entry | None:
        return next((each for each in self.open if each.id == id_), None)

    def entry_of(self, workspace: str, loop: str, name: str) -> Entry | None:
        """Return the open loop of this name, or the task whose clone is the workspace."""
        there = [each for each in self.open if each.row["workspace"] == workspace]
        return next(
            (each for each in there if each.is_task or (each.row["loop"], each.row["name"]) == (loop, name)), None
        )

    def _loops(self, known: dict[str, Where], fresh: bool) -> Iterator[Entry]:
        rows = [row for here in known.values() for row in self._rows_of(here, fresh)]
        rows = [row for row in rows if row.running or row.state != COMPLETED]  # a completed goal keeps its state file
        for row in sorted(rows, key=lambda row: not row.running):
            here = known.get(os.path.realpath(row.workspace)) or Where(row.workspace)
            shown = secrets.hide_in(Found(row, {}).as_json(), self.keys(here))
            question = asked.question_of(row.workspace, row.name, row.loop) if row.state == PARKED else ""
            words = [secrets.hide(text, self.keys(here)) for text in (question, self._cause(row))]
            yield Entry(key_of(row.workspace, row.loop, row.name), here, shown, words[0], cause=words[1])

    def _rows_of(self, here: Where, fresh: bool) -> list[Row]:
        try:
            return self._overview.rows([here.workspace], fresh)
        except run_facts.BROKEN as problem:
            return [unreadable(here.workspace, f"a log was edited ({type(problem).__name__})")]

    def _cause(self, row: Row) -> str:
        """Return why a loop ended; "" if the loop still has a process, or has no run."""
        if row.running or not row.run:
            return ""
        path = os.path.join(folder.folder_of(row.workspace, row.run), NAME)
        return past.cause(PastRun((self.log(path).refresh(),)), running=False)

    def _tasks_of(self, here: Where) -> list[Entry]:
        common = traces.folders(here.workspace)[2]
        if not common or not os.path.isdir(os.path.join(common, "rooda", "tasks")):
            return []
        try:
            found = self._tasks.setdefault(common, _Tasks(here))
            return found.look(self.keys(here))
        except (RoodaError, OSError):
            return []

    def _fleets_tasks(self) -> Iterator[Entry]:
        for row in self.fleet.rows:
            shown = secrets.hide_in(row, self.keys(self._here))
            question = shown["details"]["question"] or ""
            yield Entry(key_of("fleet", str(row["name"])), self._here, shown, question, is_fleets=True)

    def _finished(self, known: list[Where], rows: list[Json]) -> Iterator[Finished]:
        goes_on = {(row["workspace"], row["loop"], row["name"]) for row in rows if row["running"]}
        found: list[tuple[str, Where, PastRun]] = []
        for here in known:
            try:
                newest = past_runs.newest_runs(here.workspace, MOST_FINISHED, self.log)
                runs = past_runs.with_deleted(newest, self._deleted(here))
            except (RoodaError, OSError, *run_facts.BROKEN):
                continue
            open_ = past.live_runs(here.workspace) | {row["run"] for row in rows if row["workspace"] == here.workspace}
            for run in runs:
                key = (here.workspace, run.loop, run.name)
                if key in goes_on:  # the loop's newest run, perhaps resumed by a session that has logged nothing yet
                    goes_on.remove(key)
                elif run.last.run not in open_:
                    found.append((run.last.run, here, run))
        for _, here, run in sorted(found, key=lambda each: each[0], reverse=True)[:MOST_FINISHED]:
            try:
                row = self._row(here, run)
            except run_facts.BROKEN:
                continue
            yield Finished(key_of(here.workspace, row["run"]), here.workspace, row)

    def _deleted(self, here: Where) -> list[Used]:
        """Return the calls whose logs were deleted. Read the ledger again only if a log was added or deleted."""
        logged = tuple(os.path.basename(path) for path in folder.all_of(here.workspace, None))
        before = self._ledger.get(here.workspace)
        if before is None or before[0] != logged:
            before = self._ledger[here.workspace] = logged, cost_ledger.deleted_calls(here.workspace, None)
        return before[1]

    def _row(self, here: Where, run: PastRun) -> Json:
        """Return the row of a finished run; rebuild it only if the run's logs have changed or the run was cancelled."""
        seen = tuple((session.path, session.last.get("seq")) for session in run.sessions)
        key = (here.workspace, seen, len(run.deleted), run.cancelled)
        if key not in self._rows:
            if len(self._rows) > 20 * MOST_FINISHED:
                self._rows.clear()
            self._rows[key] = secrets.hide_in(past.facts(run, here, running=False), self.keys(here))
        return self._rows[key]


class _Tasks:
    """The tasks of a repository. `look` reads them again if a task has changed or is running."""

    def __init__(self, here: Where) -> None:
        self._here, self._store = here, Store(place_of(here.workspace))
        self._foresight = Foresight(self._store)
        self._seen: object = None
        self._next = 0.0  # time before which running tasks are not read again
        self._found: list[Entry] = []

    def look(self, hidden: tuple[str, ...]) -> list[Entry]:
        place = self._store.place
        runs = lock.is_held(place.runner)
        seen, begun = (os.stat(place.folder).st_mtime_ns, runs), clock.monotonic()
        if seen != self._seen or (begun > self._next and any(each.row["running"] for each in self._found)):
            self._seen, self._found = seen, [*self._read(runs, hidden)]
            self._next = begun + SHARE * (clock.monotonic() - begun)
        return self._found

    def _read(self, runs: bool, hidden: tuple[str, ...]) -> Iterator[Entry]:
        config = settings_file(self._store, self._here)
        found = progress.board(self._store, config)
        conflicts = self._foresight.of(found.tasks)
        here = self._here
        for number, task in found.tasks.items():
            if task.state in model.OVER:
                continue
            conflict = tuple(conflicts.get(number, ()))
            row = progress.as_json(self._store, task, found.tasks, config, conflict)
            shown = secrets.hide_in(row, hidden)
            yield Entry(
                key_of(self._store.place.folder, str(number)), here, shown, shown["details"]["question"] or "", runs
            )
        for number, why in found.damaged.items():
            row = progress.damaged_json(self._store, number, why)
            yield Entry(key_of(self._store.place.folder, str(number)), here, secrets.hide_in(row, hidden))


def running_runs(workspace: str) -> set[str]:
    """Return the running sessions of a workspace; none if its files can't be read."""
    try:
        return past.live_runs(workspace)
    except (RoodaError, OSError):
        return set()
