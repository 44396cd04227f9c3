"""Keeps the ledger of all agent calls of the user's loops, and the budget reservations of calls that have not ended.

`<state home>/ledger/<month>.jsonl` has one line for each call. `open/` has a file for each running session, with its
owner and, if a budget is set, its reservations. Everything is written under one lock. If the owner of a session
is dead, the next session settles it: it adds the calls that are in the dead session's log but not in the ledger.
"""

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from rooda.agents import limits
from rooda.agents.records import Agent, Reply
from rooda.base import clock, dirs, files, json
from rooda.base.json import Json
from rooda.errors import Cause, UsageProblem
from rooda.git import traces
from rooda.processes import lock, table
from rooda.run import folder as run_folder
from rooda.run import history
from rooda.run.budgets import PROJECT, Moment, Paid, Purse, Reservation, Spending, first_limit, has_limit, reached
from rooda.run.events import NAME, encoded
from rooda.run.history import Pricing
from rooda.run.setup import Budgets
from rooda.run.spending import Used

VERSION = 1
PATIENCE = 10.0  # seconds to wait for the lock
MOST_PENDING = 64  # lines that may wait in memory, if every agent ends before they can be written while it works
ELSEWHERE = 86_400.0  # seconds after which the session of another machine counts as dead
ENDING = ".jsonl"
Warn = Callable[[str], None]


class Place(NamedTuple):
    """The session that makes the calls."""

    workspace: str
    loop: str
    name: str
    run: str


class CostLedger(Purse):
    """The ledger as one session uses it.

    If the ledger fails and a budget is set, no agent call starts; without a budget, rooda only warns once.
    """

    def __init__(self, place: Place, budgets: Budgets, prices: Pricing, warn: Warn) -> None:
        self._place = place._replace(workspace=os.path.realpath(place.workspace))
        self._budgets, self._prices, self._warn, self._warned = budgets, prices, warn, False
        self._project = os.environ.get(PROJECT) or project_of(place.workspace)
        self._home = dirs.state("ledger")
        self._accounts: dict[str, str] = {}  # account, keyed by agent
        self._reserved: dict[str, Reservation] = {}  # keyed by call
        self._unwritten: list[bytes] = []  # lines that are not written to the file yet
        self._started: set[str] = set()  # calls that were started but are not recorded yet
        self._spending, self._offsets = Spending(self._project, budgets.group), dict[str, int]()
        self._unsynced = False
        with self._reported():
            self._begin()

    def limited(self, agent: Agent) -> Cause | None:
        if not has_limit(self._budgets, agent):
            return None
        return self._checked(agent, lambda own, _: self._reached(agent, own, {}))

    def reserve(self, call: str, agent: Agent) -> Cause | None:
        self._started.add(call)
        if not has_limit(self._budgets, agent):
            return None

        def take(own: Reservation, _: Moment) -> Cause | None:
            kept = {key: each for key, each in self._reserved.items() if key != call}
            cause = self._reached(agent, own, kept)
            if cause is None:
                self._reserved = {**kept, call: own._replace(amount=agent.cap or self._spending.typical(agent.name))}
                self._write_session()
            return cause

        return self._checked(agent, take)

    def release(self, calls: Iterable[str]) -> None:
        found = [call for call in calls if call in self._started]
        self._started -= {*found}
        if any(call in self._reserved for call in found):
            self._reserved = {call: own for call, own in self._reserved.items() if call not in found}
            with self._reported(), self._locked():
                self._write_session()

    def paid(self, call: str, kind: str, number: int, agent: Agent, reply: Reply) -> None:
        place, reserved = self._place, self._reserved.pop(call, None)
        used = Used(
            clock.rfc3339_milli(clock.now()),
            place.run,
            place.loop,
            place.name,
            number,
            kind,
            agent.name,
            reply.model,
            round(reply.seconds, 6),
            reply.usage,
            reply.cost,
            reply.cost_source or "unknown",
            reply.lost,
            call,
        )
        used = _charged(used, reserved.amount if reserved else 0.0) if reply.lost else used
        group = self._budgets.group
        self._unwritten.append(_line(used, place.workspace, self._project, self._account(agent), group=group))
        self._started.discard(call)
        if reserved or len(self._unwritten) >= MOST_PENDING:  # else it is written while an agent works, or at the end
            with self._reported(), self._locked():
                self._append()
                if reserved:
                    self._write_session()

    def sync(self) -> None:
        """Write all pending lines, and sync those that a budget needs after a power failure.

        Called while an agent works, and before a wait.
        """
        if self._unwritten:
            with self._reported(), self._locked():
                self._append()
        if not self._unsynced:
            return
        self._unsynced = False
        with self._reported():
            for path in (self._month_file(), self._session_file()):
                if os.path.exists(path):
                    files.sync_file(path)
            files.sync_parent(self._session_file())

    def close(self) -> None:
        """End the session; add those calls from its event log whose end was not recorded in the ledger."""
        with self._reported(), self._locked():
            self._append()
            if self._started or self._reserved:
                self._settle(self._session_file(), self._session())
            else:
                files.remove(self._session_file())

    def of_sessions(self, first: str, known: Iterable[str]) -> list[Used]:
        """Return this loop's calls since its session `first`, except those of the sessions in `known`."""
        excluded, place, found = {*known, self._place.run}, self._place, list[Used]()
        with self._reported():
            for record in records(self._home, first):
                same = record.get("workspace") == place.workspace and record.get("loop") == place.loop
                run = str(record.get("run", ""))
                if same and record.get("name") == place.name and run > first and run not in excluded:
                    found += [used] if (used := history.call_of(record, record)) else []
        return found

    # Under the lock

    def _begin(self) -> None:
        dirs.make_state("ledger", "open")
        with self._locked():
            self._settle_dead()
            self._write_session()
        self._unsynced = bool(self._budgets.day or self._budgets.project or self._budgets.run)

    def _checked(self, agent: Agent, check: Callable[[Reservation, Moment], Cause | None]) -> Cause | None:
        """Return the result of `check`, called under the lock; if the ledger fails, the budget counts as reached."""
        own = Reservation(0.0, agent.name, self._project, self._account(agent), self._budgets.group)
        now = _moment()
        try:
            dirs.make_state("ledger", "open")
            with self._locked():
                self._append()
                self._catch_up(now)
                cause = check(own, now)
            self._unsynced = True
            return cause
        except (OSError, UsageProblem) as problem:
            return first_limit(self._budgets, agent, own.account)._replace(problem=_in_words(problem))

    def _reached(self, agent: Agent, own: Reservation, mine: Mapping[str, Reservation]) -> Cause | None:
        others = [*self._settle_dead(), *mine.values()]
        now = _moment()
        self._catch_up(now)  # including the calls that were just settled
        return reached(self._budgets, agent, own, others, self._spending, now)

    def _settle_dead(self) -> list[Reservation]:
        """Settle the sessions of dead owners; return the reservations of all other sessions."""
        found, folder = list[Reservation](), os.path.join(self._home, "open")
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if name.endswith(".tmp"):  # a killed process left it: only the holder of the lock writes such files
                files.remove(path)
            elif path != self._session_file() and (record := _read(path)):
                if is_alive(record):
                    found += _reservations(record).values()
                else:
                    self._settle(path, record)
        return found

    def _settle(self, path: str, record: Json) -> None:
        """Add the calls that a dead session logged but the ledger lacks, then delete the session's record."""
        workspace, run = str(record.get("workspace", "")), str(record.get("run", ""))
        known = {
            str(each.get("transcript", ""))
            for each in records(self._home, run)
            if each.get("run") == run and each.get("workspace") == workspace
        }
        reserved = _reservations(record)
        project, group = str(record.get("project", "")), str(record.get("group", ""))
        for used, account in self._missing(workspace, run, known, reserved):
            self._unwritten.append(_line(used, workspace, project, account, settled=True, group=group))
        self._append()
        files.remove(path)

    def _missing(
        self, workspace: str, run: str, known: set[str], reserved: Mapping[str, Reservation]
    ) -> Iterator[tuple[Used, str]]:
        session = history.SessionLog(os.path.join(run_folder.folder_of(workspace, run), NAME)).refresh()
        for used in session.used(self._prices):
            own = reserved.get(used.transcript)
            known_cost = used.cost is not None or own is None
            if used.transcript not in known:
                yield used if known_cost else _charged(used, own.amount if own else 0.0), own.account if own else ""
            known.add(used.transcript)
        if session.opening:
            return  # the other reserved calls were not started
        for call, own in reserved.items():  # the log was deleted, so each reserved call may have been made
            if call not in known:
                kind = clock.rfc3339_milli(clock.now()), run, "", run_folder.loop_of(run), 0, "", own.agent
                yield _charged(Used(*kind, "", 0.0, None, None, "unknown", True, call), own.amount), own.account

    def _append(self) -> None:
        """Append the pending lines to the file of the current month, whatever their own timestamps are."""
        if not self._unwritten:
            return
        descriptor = files.open_append(self._month_file(), 0o600)
        try:
            files.append(descriptor, b"".join(self._unwritten))
        finally:
            os.close(descriptor)
        self._unwritten.clear()

    def _catch_up(self, now: Moment) -> None:
        """Read and count the lines that were added to the ledger since it was last read."""
        for name in _months(self._home, None if self._budgets.project else clock.rfc3339(now.day_start)[:7]):
            path, offset = os.path.join(self._home, name), self._offsets.get(name, 0)
            if os.path.getsize(path) < offset:  # the file was deleted and created again
                offset = 0
            for end, line in history.lines(path, offset):
                self._offsets[name] = end
                if record := _record(line):
                    self._spending.add(_paid(record), now)

    def _write_session(self) -> None:
        files.replace_unsynced(self._session_file(), encoded(self._session()).encode() + b"\n", 0o600)

    def _session(self) -> Json:
        place = self._place._asdict() | {"project": self._project, "host": os.uname().nodename}
        place |= {"group": self._budgets.group} if self._budgets.group else {}
        calls = {call: own._asdict() for call, own in self._reserved.items()}
        return {"v": VERSION, **place, **table.identity_of(os.getpid()), "at": clock.now(), "calls": calls}

    # Files

    def _session_file(self) -> str:
        mark = files.sha256(files.to_bytes(self._place.workspace))[:8]
        return os.path.join(self._home, "open", f"{self._place.run}-{mark}.json")

    def _month_file(self) -> str:
        return os.path.join(self._home, clock.rfc3339(clock.now())[:7] + ENDING)

    def _account(self, agent: Agent) -> str:
        if agent.name and agent.name not in self._accounts:
            self._accounts[agent.name] = limits.account(agent)
        return self._accounts.get(agent.name, "")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        if not self._home:
            raise OSError(errno.ENOENT, "HOME is not set")
        descriptor = lock.hold(os.path.join(self._home, "lock"), PATIENCE)
        try:
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """Report the first failure of the ledger and ignore later ones: without a budget the loop continues."""
        try:
            yield
        except (OSError, UsageProblem) as problem:
            if not self._warned:
                self._warned = True
                self._warn(f"the cost ledger can't be written: {_in_words(problem)}")


def records(home: str, first_run: str = "") -> Iterator[Json]:
    """Yield the lines of the ledger, oldest month first; with `first_run`, only those since the month of that run."""
    for name in _months(home, f"{first_run[:4]}-{first_run[4:6]}" if first_run else None):
        for _, line in history.lines(os.path.join(home, name)):
            if record := _record(line):
                yield record


def open_sessions() -> list[Json]:
    """Return the records of all sessions that have not been settled: their workspace, loop, name and run."""
    home = dirs.state("ledger", "open")
    return [_read(os.path.join(home, name)) for name in (files.list_if_readable(home) if home else ())]


def project_of(workspace: str) -> str:
    """Return a workspace's path in its repository's main work tree or, for a task's clone, in the user's repository."""
    top = traces.clone_around(workspace)
    if not top:
        return traces.in_main_tree(workspace)
    from rooda.git import clones

    loan, inner = clones.loan_of(top), os.path.relpath(os.path.realpath(workspace), top)
    if loan is None:
        return traces.in_main_tree(workspace)
    lender = os.path.dirname(loan.common) if os.path.basename(loan.common) == ".git" else loan.lender
    return traces.in_main_tree(os.path.join(lender, inner))


def calls_of(workspace: str, name: str | None = None) -> Iterator[Used]:
    """Yield a workspace's calls from the ledger, oldest first; nothing if the ledger can't be read."""
    real, home = os.path.realpath(workspace), dirs.state("ledger")
    try:
        for record in records(home) if home else ():
            wanted = record.get("workspace") == real and name in (None, record.get("name"), record.get("run"))
            if wanted and (used := history.call_of(record, record)):
                yield used
    except OSError:
        return


def calls_elsewhere(workspace: str, name: str | None, since: str) -> list[Used]:
    """Return the calls that the ledger records for the project's other workspaces: clones of tasks, and worktrees."""
    real, project, home = os.path.realpath(workspace), project_of(workspace), dirs.state("ledger")
    found = list[Used]()
    try:
        for record in records(home) if home else ():
            is_elsewhere = record.get("project") == project and record.get("workspace") != real
            wanted = is_elsewhere and name in (None, record.get("name"), record.get("run"))
            if wanted and (used := history.call_of(record, record)) and used.ts[:19] >= since[:19]:
                found.append(used)
    except OSError:
        pass
    return found


def all_calls(workspace: str, name: str | None, since: str, prices: Pricing) -> list[Used]:
    """Return all calls of a workspace since a timestamp: from its logs, and from the ledger if a log was deleted."""
    deleted = (call for call in deleted_calls(workspace, name) if call.ts[:19] >= since[:19])
    return [*deleted, *history.used(workspace, name, since, prices)]


def deleted_calls(workspace: str, name: str | None) -> list[Used]:
    """Return the calls in the ledger whose logs in the workspace were deleted, oldest first."""
    logged = {os.path.basename(each) for each in run_folder.all_of(workspace, name) if os.path.exists(f"{each}/{NAME}")}
    return [call for call in calls_of(workspace, name) if call.run not in logged]


def is_alive(record: Json) -> bool:
    """True if the owner of a session is alive. An owner on another machine counts as alive for a day."""
    if record.get("host") != os.uname().nodename:
        at = record.get("at")
        return isinstance(at, int | float) and abs(clock.now() - at) < ELSEWHERE
    return table.is_alive(record)


def _months(home: str, first: str | None) -> list[str]:
    """Return the names of the ledger's files, oldest first.

    `first`: only the files since this month, but at least the latest two, since the clock may have been set back.
    """
    try:
        found = sorted(name for name in os.listdir(home) if name.endswith(ENDING))
    except FileNotFoundError:
        return []
    return [name for name in found if first is None or name[:7] >= first or name in found[-2:]]


def _line(used: Used, workspace: str, project: str, account: str, settled: bool = False, group: str = "") -> bytes:
    """Return the ledger's line for a call. A key that means the same as a field of an event has the field's name."""
    facts = used._asdict()
    usage = facts.pop("usage")
    record = {"v": VERSION, **facts, "usage": usage and usage._asdict(), "display": facts.pop("number")}
    record |= {"cost_source": record.pop("source"), "workspace": workspace, "project": project, "account": account}
    record |= {"group": group} if group else {}
    record |= {"settled": True} if settled else {"boot": table.boot(), "uptime": round(clock.uptime(), 3)}
    del record["number"]
    return encoded(record).encode("utf-8", "replace") + b"\n"


def _charged(used: Used, amount: float) -> Used:
    """Return the call; if its cost is unknown, charge the amount that was reserved for it, if any."""
    return used._replace(cost=amount, source="assumed") if amount and used.cost is None else used


def _paid(record: Json) -> Paid:
    used, uptime = history.call_of(record, record), record.get("uptime")
    up = float(uptime) if isinstance(uptime, int | float) else 0.0
    boot, agent, project, account = (str(record.get(key, "")) for key in ("boot", "agent", "project", "account"))
    at = history.seconds_of(str(record.get("ts", "")))
    group = str(record.get("group", ""))
    return Paid(at, up, boot if up else "", agent, project, account, used.cost if used else None, group)


def _reservations(record: Json) -> dict[str, Reservation]:
    """Return the reservations in a session's file; malformed ones are left out."""
    calls, found = record.get("calls"), dict[str, Reservation]()
    for call, each in calls.items() if isinstance(calls, dict) else ():
        try:
            found[call] = json.decode(Reservation, each)
        except (ValueError, TypeError, KeyError, json.Mismatch):
            continue
    return found


def _read(path: str) -> Json:
    try:
        return _record(files.read_ours(path))
    except OSError:
        return {}


def _record(line: bytes) -> Json:
    """Parse a line of the ledger; {} if it is damaged."""
    try:
        found: Any = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _moment() -> Moment:
    now = clock.now()
    return Moment(now, clock.uptime(), table.boot(), clock.day_start(now))


def _in_words(problem: OSError | UsageProblem) -> str:
    if isinstance(problem, UsageProblem):
        return problem.what
    return f"{problem.filename}: {problem.strerror}" if problem.filename else str(problem.strerror or problem)
