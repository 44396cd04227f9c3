"""All runs of some workspaces, one row each, looked at again and again: what a look needs of the last one is kept."""

from functools import partial

from rooda.base import clock
from rooda.base.json import Json
from rooda.errors import RoodaError
from rooda.loops import registry
from rooda.loops.configuration import prices
from rooda.loops.registry import Loop
from rooda.processes import lock, table
from rooda.run import folder as run_folder
from rooda.run import history
from rooda.run.ended import INTERRUPTED, at_limit, standing
from rooda.run.folder import folder_of
from rooda.run.history import Now, SessionLog, seconds_of
from rooda.run.spending import Spent, plus, total
from rooda.settings.where import Where
from rooda.views.status_table import Row, unreadable

NAMES = ("procedure_name", "task_alias", "alias", "run_id", "name")  # what the kinds of loops call it
SELDOM = 10  # looks between two at those that do not run


class Board:
    """The rows of these workspaces."""

    def __init__(self, here: Where) -> None:
        self._here = here
        self._logs: dict[str, SessionLog] = {}
        self._closed: dict[str, tuple[Spent, float]] = {}  # sums of sessions that are over
        self._idle: dict[str, list[Row]] = {}
        self._looks: dict[str, int] = {}
        self._running: dict[str, list[Loop]] = {}

    def look(self, workspaces: list[str]) -> list[Row]:
        """Who runs first."""
        rows = [row for workspace in workspaces for row in self._told_of(workspace)]
        return sorted(rows, key=lambda row: not row.running)

    def _told_of(self, workspace: str) -> list[Row]:
        """A workspace that can't be looked at has a row that says why, and hides no other one."""
        try:
            return self._of(workspace)
        except (RoodaError, OSError) as problem:
            return [unreadable(workspace, " ".join(str(problem).split()))]

    def _of(self, workspace: str) -> list[Row]:
        running = [loop for loop in registry.known(workspace) if lock.is_held(loop.lock)]
        looks = self._looks.get(workspace, 0)
        if looks % SELDOM == 0 or running != self._running.get(workspace):
            busy = {(loop.kind, loop.name) for loop in running}
            self._idle[workspace] = [
                self.row(workspace, kind, facts)
                for kind in registry.KINDS
                for facts in registry.tenant(kind).facts(workspace, None)
                if (kind, name_of(facts)) not in busy
            ]
        self._looks[workspace], self._running[workspace] = looks + 1, running
        return [self.row(workspace, loop.kind, _facts(workspace, loop)) for loop in running] + self._idle[workspace]

    def row(self, workspace: str, kind: str, facts: Json) -> Row:
        """What the loop's files say of it, what its events say, and whether it stands still."""
        name, running, pid = name_of(facts), bool(facts.get("running")), facts.get("pid")
        newest, spent, elapsed = self._read(workspace, kind, name, running)
        now, ended, run = newest.now, newest.ended, newest.run
        suspended = running and table.is_stopped(pid)
        reason = "" if running else str(facts.get("reason") or at_limit(ended))
        waits, left = _waits(now, suspended) if running else (_next(kind, name, facts, reason), None)
        iteration, most = _iteration(kind, facts, now)
        return Row(
            workspace=workspace,
            loop=kind,
            name=name,
            run=run,
            status="running" if running else _status(str(facts.get("status", "")), ended, folder_of(workspace, run)),
            running=running,
            pid=pid if isinstance(pid, int) else None,
            phase=now.phase if running else "",
            since=now.since if running else "",
            iteration=iteration,
            display=_display(kind, now, iteration) if running else iteration,
            max_iterations=most,
            failures=_failures(kind, facts) or now.failures,
            elapsed=round(elapsed, 3),
            calls=spent.calls,
            tokens=spent.tokens,
            cost=None if spent.unknown == spent.calls else round(spent.cost, 6),
            calls_of_unknown_cost=spent.unknown,
            suspended=suspended,
            waits_for=waits,
            seconds_left=left,
            reason=reason,
        )

    def _read(self, workspace: str, kind: str, name: str, running: bool) -> tuple[SessionLog, Spent, float]:
        """The newest session, and what all sessions of the run used."""
        found = history.sessions(workspace, name, kind, self._log)
        if not found:
            return SessionLog(""), Spent(), 0.0
        newest, key = found[-1], "\n".join((found[0].path, found[-1].path, str(running)))
        if key not in self._closed:
            there = self._here if workspace == self._here.workspace else Where(workspace)
            self._closed[key] = _closed(found[:-1] if running else found, kind, partial(prices, there))
        spent, elapsed = self._closed[key]
        if running:
            spent, elapsed = plus(spent, newest.spent), elapsed + newest.elapsed(True)
        return newest, spent, elapsed

    def _log(self, path: str) -> SessionLog:
        """What was read of a log stays; only what is new is read again."""
        return self._logs.setdefault(path, SessionLog(path))


def name_of(facts: Json) -> str:
    return next((str(facts[key]) for key in NAMES if key in facts), "")


def _facts(workspace: str, loop: Loop) -> Json:
    """Of one that runs. What a flow's files and commits say is dear, and its events tell enough."""
    pid = lock.owner(loop.lock).get("pid")
    known = registry.tenant(loop.kind).facts(workspace, loop.name) if loop.kind != "flow" else []
    return {"name": loop.name, **(known[0] if known else {}), "running": True, "pid": pid}


def _closed(sessions: list[SessionLog], kind: str, pricing: history.Pricing) -> tuple[Spent, float]:
    """The sums of sessions that are over."""
    spent = total(call for session in sessions for call in session.used(pricing) if call.loop == kind)
    return spent, sum(session.elapsed(False) for session in sessions)


def _status(word: str, ended: Json | None, folder: str) -> str:
    """Of one that nobody runs: its files may say that it goes on, or no more than that it was interrupted."""
    if word not in ("running", "in_progress") and not (word == INTERRUPTED and at_limit(ended)):
        return word
    return standing(ended, run_folder.order_of(folder).get("order") == run_folder.STOP)


def _iteration(kind: str, facts: Json, now: Now) -> tuple[int | None, int | None]:
    """How far it is, and its limit; of a flow its top node's, while it runs by its events: its files are dear."""
    top: Json = next(iter(facts.get("nodes") or ()), {})
    known = [facts.get(key, top.get(key)) for key in ("iteration", "max_iterations")]
    iteration, most = (number if isinstance(number, int) else None for number in known)
    if kind == "flow" and facts.get("running"):
        iteration = now.iteration
    return iteration, now.max_iterations if most is None and now.max_iterations else most


def _display(kind: str, now: Now, iteration: int | None) -> int | None:
    """The one at work."""
    return iteration if kind in ("reflex", "flow") else now.iteration or iteration


def _failures(kind: str, facts: Json) -> str:
    if "consecutive_failures" in facts:
        return f"{facts['consecutive_failures']}/{facts['failure_threshold']}"
    count = facts.get("stagnation_count" if kind == "reflex" else "stuckCount")
    return "" if count is None else str(count)


def _waits(now: Now, suspended: bool) -> tuple[str, float | None]:
    """For whom or what, and for how many seconds if that is known."""
    if suspended:
        return "rooda continue", None
    if now.phase == "question":
        return "a person's answer", None
    if now.phase != "waiting":
        return "", None
    left = max(seconds_of(now.until) - clock.now(), 0.0)
    return f"usage limit of {now.account}" if now.account else "a fault of the service", round(left, 1)


def _next(kind: str, name: str, facts: Json, reason: str) -> str:
    """What a person can do about one that does not run."""
    if facts.get("status") == "damaged":
        return "a person: its files are damaged"
    if facts.get("status") == "completed":
        return ""
    command = "rooda goal continue" if kind == "goal" else f"rooda resume {name}"
    return f"{reason}: {command}" if reason else command
