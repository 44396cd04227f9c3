"""Collects the status of all loops in some workspaces, for `rooda status`."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from rooda.base import clock
from rooda.base.json import Json
from rooda.errors import RoodaError
from rooda.loops import registry
from rooda.loops.registry import Loop
from rooda.processes import lock, table
from rooda.run import history
from rooda.run.ended import PARKED, PAUSED, QUESTION, at_limit, needs_more, of_running
from rooda.run.history import Now, SessionLog, seconds_of
from rooda.run.spending import Spent, plus, total
from rooda.settings.where import Where
from rooda.views.status_table import Row, unreadable

if TYPE_CHECKING:
    from rooda.agents.prices import Prices

SELDOM = 10  # refreshes after which loops that aren't running are read again
VERSION = 2  # of the objects printed by --json: keys may be added, but not changed
FIRST = ("loop", "name", "state", "iteration", "max_iterations", "cost", "tokens", "started_at", "last", "next")
NULLABLE = ("started_at", "last", "next")
IN_ROW = (*FIRST, "running", "pid", "reason", "doubt")  # facts that `details` leaves out


class Found(NamedTuple):
    """A loop's row in the status table, and the details read from the loop's files."""

    row: Row
    facts: Json

    def as_json(self) -> Json:
        """Return the object that --json prints: the same keys for all kinds of loops, then the kind's own."""
        row = self.row._asdict()
        own = {"file_status" if key == "status" else key: value for key, value in self.facts.items()}
        details = {key: value for key, value in own.items() if key not in IN_ROW}
        unknown = {key: None for key in NULLABLE if not row[key]}
        return {"v": VERSION, **{key: row.pop(key) for key in FIRST}, **unknown, **row, "details": details}


class Overview:
    """Status of the loops in some workspaces. Caches what it has read, so that a refresh reads only new data."""

    def __init__(self, here: Where) -> None:
        self._here = here
        self._logs: dict[str, SessionLog] = {}
        self._closed: dict[str, tuple[Spent, float]] = {}  # cost and seconds of sessions that have ended
        self._idle: dict[str, list[Row]] = {}
        self._looks: dict[str, int] = {}
        self._running: dict[str, list[Loop]] = {}

    def rows(self, workspaces: list[str], fresh: bool = False) -> list[Row]:
        """Return a row for each loop that runs or can be resumed, running loops first.

        If `fresh`, reread the files of loops that don't run.
        """
        if fresh:
            self._looks.clear()
        rows = [row for workspace in workspaces for row in self._rows_or_problem(workspace)]
        return sorted(rows, key=lambda row: not row.running)

    def details(self, workspace: str, name: str | None) -> list[Found]:
        """Return the row and details of the loop `name`; without a name, of each loop that runs or can be resumed."""
        return [Found(self._row(workspace, loop, facts), facts) for loop, facts in _all(workspace, name)]

    def found(self, kind: str, facts: Json) -> Found:
        """Return the row and details of a loop of the current workspace whose files were already read."""
        loop = Loop(kind, registry.kind(kind).name_of(facts))
        return Found(self._row(self._here.workspace, loop, facts), facts)

    def _rows_or_problem(self, workspace: str) -> list[Row]:
        try:
            return self._rows(workspace)
        except (RoodaError, OSError) as problem:
            return [unreadable(workspace, " ".join(str(problem).split()))]

    def _rows(self, workspace: str) -> list[Row]:
        running = [loop for loop in registry.known(workspace) if lock.is_held(loop.lock)]
        looks = self._looks.get(workspace, 0)
        if looks % SELDOM == 0 or running != self._running.get(workspace):
            busy = {(loop.kind, loop.name) for loop in running}
            self._idle[workspace] = [
                self._row(workspace, loop, facts)
                for loop, facts in _all(workspace, None)
                if (loop.kind, loop.name) not in busy
            ]
        self._looks[workspace], self._running[workspace] = looks + 1, running
        return [self._row(workspace, loop, _facts(workspace, loop)) for loop in running] + self._idle[workspace]

    def _row(self, workspace: str, loop: Loop, facts: Json) -> Row:
        """Return a loop's row. `facts`: the details in its files."""
        running, pid = bool(facts.get("running")), facts.get("pid")
        first, newest, spent, elapsed = self._read(workspace, loop.kind, loop.name, running)
        now, ended, run = newest.now, newest.ended, newest.run
        suspended = running and table.is_stopped(pid)
        question = "" if running else _question(newest)
        reason = question or ("" if running else str(facts.get("reason") or at_limit(ended)))
        resume = _resume(loop, ended)
        waits, left = _waits(now, suspended) if running else (_next(facts, reason, resume), None)
        progress = registry.kind(loop.kind).progress(facts, now)
        return Row(
            workspace=workspace,
            loop=loop.kind,
            name=loop.name,
            run=run,
            state=of_running(now.phase, suspended) if running else newest.state_of(facts),
            running=running,
            pid=pid if isinstance(pid, int) else None,
            phase=now.phase if running else "",
            since=now.since if running else "",
            iteration=progress.iteration,
            display=progress.display if running else progress.iteration,
            max_iterations=(now.max_iterations or None) if progress.max_iterations is None else progress.max_iterations,
            failures=progress.failures or now.failures,
            elapsed=round(elapsed, 3),
            calls=spent.calls,
            tokens=spent.tokens,
            cost=None if spent.unknown == spent.calls else round(spent.cost, 6),
            calls_of_unknown_cost=spent.unknown,
            suspended=suspended,
            waits_for=_answer(loop) if question else waits,
            seconds_left=left,
            reason=reason,
            started_at=progress.started_at or str(first.first.get("ts", "")),
            last=str(newest.last.get("ts", "")) or progress.last,
            next=_answer(loop) if question else _command(resume, facts, suspended, progress.over),
        )

    def _read(self, workspace: str, kind: str, name: str, running: bool) -> tuple[SessionLog, SessionLog, Spent, float]:
        """Return a run's first and newest session, what all its sessions spent, and how many seconds they took."""
        found = history.sessions(workspace, name, kind, self._log)
        if not found:
            return SessionLog(""), SessionLog(""), Spent(), 0.0
        newest, key = found[-1], "\n".join((found[0].path, found[-1].path, str(running)))
        if key not in self._closed:
            there = self._here if workspace == self._here.workspace else Where(workspace)
            self._closed[key] = _closed(found[:-1] if running else found, kind, partial(_prices, there))
        spent, elapsed = self._closed[key]
        if running:
            spent, elapsed = plus(spent, newest.spent), elapsed + newest.elapsed(True)
        return found[0], newest, spent, elapsed

    def _log(self, path: str) -> SessionLog:
        return self._logs.setdefault(path, SessionLog(path))


def as_json(here: Where, kind: str, facts: list[Json]) -> list[Json]:
    """Return what `status --json` prints for loops of the current workspace whose files were already read."""
    overview = Overview(here)
    return [overview.found(kind, each).as_json() for each in facts]


def for_people(row: Row, facts: Json) -> Json:
    """Return the facts from which a kind formats its status lines, including the state and how to continue the loop."""
    resume = {"resume": row.next} if row.state in (PAUSED, PARKED) and row.next else {}
    return {**facts, "shown_status": row.state, **resume}


def _all(workspace: str, name: str | None) -> Iterator[tuple[Loop, Json]]:
    for each in registry.kinds_in(workspace):
        kind = registry.kind(each)
        for facts in kind.facts(workspace, name):
            yield Loop(each, kind.name_of(facts)), facts


def _facts(workspace: str, loop: Loop) -> Json:
    facts = registry.kind(loop.kind).facts_of_running(workspace, loop.name)
    return {**facts, "running": True, "pid": lock.owner(loop.lock).get("pid")}


def _prices(where: Where) -> "Prices":
    from rooda.loops.configuration import prices

    return prices(where)


def _closed(sessions: list[SessionLog], kind: str, pricing: history.Pricing) -> tuple[Spent, float]:
    spent = total(call for session in sessions for call in session.used(pricing) if call.loop == kind)
    return spent, sum(session.elapsed(False) for session in sessions)


def _waits(now: Now, suspended: bool) -> tuple[str, float | None]:
    """Return what a running loop waits for, and the seconds left if they are known."""
    if suspended:
        return "rooda continue", None
    if now.phase == "question":
        return "your answer", None
    if now.phase != "waiting":
        return "", None
    left = max(seconds_of(now.until) - clock.now(), 0.0)
    return f"usage limit of {now.account}" if now.account else "a service error", round(left, 1)


def _question(session: SessionLog) -> str:
    """Return the agent's question that ended a session and has no answer yet; "" if there is none."""
    if (session.ended or {}).get("reason") != QUESTION:
        return ""
    from rooda.run.asked import open_question

    return open_question(session)


def _answer(loop: Loop) -> str:
    return f'rooda answer {loop.name} "…"'


def _next(facts: Json, reason: str, resume: str) -> str:
    """Return what the user can do next about a loop that isn't running, such as a command."""
    if facts.get("status") in ("damaged", "unreadable"):
        return "you: its files are damaged"
    if facts.get("status") in ("completed", "foreign"):
        return ""
    return f"{reason}: {resume}" if reason else resume


def _resume(loop: Loop, ended: Json | None) -> str:
    """Return the command that resumes the loop; if a limit ended it, the command in its summary."""
    row = registry.KINDS[loop.kind]
    plain = row.resume if row.only_name else f"rooda resume {loop.name}"
    if ended and needs_more(ended):
        from rooda.views.summary import next_command

        return next_command(ended, registry.view(loop.kind).WORDS.next) or plain
    return plain


def _command(resume: str, facts: Json, suspended: bool, over: bool) -> str:
    """Return the command that continues a loop; "" if the loop can't be resumed, or runs and is not suspended."""
    if suspended:
        return "rooda continue"
    unusable = facts.get("status") in ("damaged", "unreadable", "foreign")
    return "" if over or unusable or facts.get("running") else resume
