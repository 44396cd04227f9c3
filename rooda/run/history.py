"""The event logs of runs, read back: each `events.jsonl` in one pass, by this reader alone."""

import os
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from rooda.agents.records import Agent, Usage
from rooda.base import clock, json
from rooda.base.json import Json, loads
from rooda.processes import table
from rooda.run import folder as run_folder
from rooda.run.events import NAME
from rooda.run.setup import Budget
from rooda.run.spending import Spent, Used, total

MOST = 1e15  # of anything that is counted
LONGEST = 4_194_304  # bytes of a line; a longer one isn't an event of ours
RECENT = 65_536  # bytes at the end of a log that show what the run does now; before them only some events count
PAUSE = 0.2  # seconds between two looks at a log that grows
OPENING = ("run.started", "run.resumed")
_COUNTED = (*OPENING, "iteration.started", "agent.started", "agent.ended", "state.saved", "run.ended")
_ALWAYS = (*(f'"{name}"'.encode() for name in _COUNTED), b'"level": 0')
_PHASES = {"agent.started": "agent", "gate.started": "gate", "resting": "waiting", "iteration.started": "prompt"}
_BETWEEN = ("agent.ended", "gate.ended", "rested")
Pricing: TypeAlias = Callable[[], Mapping[str, tuple[float, ...]]]  # called only if a call was cut off


class Now(NamedTuple):
    """What the run was doing at its last event."""

    phase: str = ""  # prompt | agent | gate | waiting | question | between
    since: str = ""
    account: str = ""  # whose usage limit it waits for
    until: str = ""
    iteration: int = 0  # as the screen counts
    max_iterations: int = 0
    failures: str = ""  # "1/3"


class SessionState:
    """What the events of one session add up to, one after the other. Pure."""

    def __init__(self) -> None:
        self.loop = ""
        self.first: Json = {}
        self.last: Json = {}
        self.opening: Json = {}
        self.ended: Json | None = None  # the event run.ended
        self.calls: list[Used] = []  # that have ended
        self.at_work: dict[str, Json] = {}  # events of calls that have begun, by transcript
        self.unsaved: list[Json] = []  # events of calls that began after the state was written last
        self.made: set[int] = set()  # iterations; what happens between two has a number too, so only calls count
        self.asked = False  # does a question wait for its answer?
        self.ran: float | None = None  # seconds, as its last call or its end reported
        self.now = Now()
        self._by_node = False  # counts the iterations of a top node, as flows do
        self._number: Json = {}  # of the top node

    def note(self, record: Json) -> None:
        """Add the next event."""
        event = record["event"]
        self.first, self.last = self.first or record, record
        self.loop = self.loop or str(record.get("loop", ""))
        self.asked = event == "question.asked" or (self.asked and event != "question.answered")
        if event in OPENING:
            self.opening = self.opening or record
        if event in OPENING or event == "node.boundary":
            self._by_node = self._by_node or "nodes" in record
            self._number = (_of_top_node(record) if self._by_node else {}) or self._number
        elif event == "state.saved":
            self.unsaved = []
        elif event == "run.ended":
            self.ended = record
        if event in ("agent.started", "agent.ended"):
            self._note_call(event, record)
        if event in ("agent.started", "iteration.started") and isinstance(number := record.get("display"), int):
            self.made.add(number)
        if event in ("agent.ended", "run.ended"):
            self._note_time(record.get("ran"))
        try:
            self.now = _after(self.now, record, self._by_node)
        except (TypeError, ValueError, KeyError):
            pass  # somebody changed the file

    def _note_call(self, event: str, record: Json) -> None:
        transcript, numbered = str(record.get("transcript", "")), record | self._number
        if event == "agent.started":
            self.at_work[transcript] = {**numbered, "transcript": transcript}
            self.unsaved.append(self.at_work[transcript])
        elif call := _call(numbered, self.at_work.pop(transcript, numbered)):
            self.calls.append(call)

    def _note_time(self, ran: Any) -> None:
        if isinstance(ran, int | float) and 0 <= ran < MOST:
            self.ran = max(self.ran or 0.0, float(ran))

    def used(self, prices: Pricing) -> Iterator[Used]:
        """Every call of a session that is over.

        A call without an end was cut off by a crash; its transcript may still tell what it used.
        """
        yield from self.calls
        for started in self.at_work.values():
            if call := _cut_off(started, prices):
                yield call

    @property
    def spent(self) -> Spent:
        """The sum of a session that runs: a call at work counts, its cost is unknown."""
        spent, open_ = total(self.calls), len(self.at_work)
        return spent._replace(calls=spent.calls + open_, unknown=spent.unknown + open_)

    @property
    def run_time(self) -> float:
        """Seconds up to its end, or to its last call's if it was killed; without either, those of its calls."""
        return sum(call.seconds for call in self.calls) if self.ran is None else self.ran


class SessionLog(SessionState):
    """One session's log; `look` reads what was appended since the last look."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
        self.folder = os.path.dirname(path)
        self.run = os.path.basename(self.folder)
        self._offset = 0

    def look(self) -> "SessionLog":
        try:
            size = os.path.getsize(self.path)
            if size < self._offset:  # somebody has taken it away, and it began again
                super().__init__()
                self._offset = 0
            if size > self._offset:
                self._read_on(size)
        except OSError:
            pass
        return self

    def _read_on(self, size: int) -> None:
        for end, line in lines(self.path, self._offset):
            self._offset = end
            counts = not self.first or end > size - RECENT or any(each in line for each in _ALWAYS)
            if counts and (record := parsed(line)):
                self.note(record)

    def elapsed(self, alive: bool) -> float:
        """Seconds from its first event to its last; of a live one the age of its process, however the clock is set."""
        pid = self.run.rpartition("-")[2]
        age = table.age(int(pid)) if alive and pid.isdecimal() else None
        if age is not None:
            return age
        first = seconds_of(self.first.get("ts", ""))
        last = clock.now() if alive else seconds_of(self.last.get("ts", ""))
        return max(last - first, 0.0) if first else 0.0


Logs: TypeAlias = Callable[[str], SessionLog]  # by path: a new one, or one that was read before


def sessions(workspace: str, name: str, loop: str, log: Logs = SessionLog) -> list[SessionLog]:
    """Those of the run that was begun last, oldest first. No times are compared: the clock may have been set back."""
    found: list[SessionLog] = []
    for folder in reversed(run_folder.all_of(workspace, name)):
        session = log(os.path.join(folder, NAME)).look()
        found.insert(0, session)
        if session.loop == loop and session.opening.get("event") == "run.started":
            break
    return found


def newest(workspace: str, name: str, loop: str, begun: str = "", log: Logs = SessionLog) -> SessionLog | None:
    """The latest session that began or went on with this loop, of this kind.

    None if the run was completed in it: if there is something to go on with now, somebody put it there, and it isn't
    part of that run. `begun`: a session that began it by its state, whatever its log says: a kill may have come
    between the two.
    """
    for folder in reversed(run_folder.all_of(workspace, name)):
        session = log(os.path.join(folder, NAME))
        if session.run == begun:
            return session
        if session.look().opening and session.loop == loop:
            return None if (session.ended or {}).get("status") == "completed" else session
    return None


def of_run(workspace: str, name: str, loop: str) -> list[SessionLog]:
    """The sessions of this loop since it was last begun, if it can go on."""
    log = cache(SessionLog)
    found = sessions(workspace, name, loop, log) if newest(workspace, name, loop, log=log) else []
    return [session for session in found if session.loop == loop]


def used(workspace: str, name: str | None = None, since: str = "", prices: Pricing = dict) -> Iterator[Used]:
    """Every call not before `since` (as the events' `ts`), oldest first; its `run` is the session that began it."""
    begun: dict[tuple[str, str], str] = {}
    for folder in run_folder.all_of(workspace, name):
        session = SessionLog(os.path.join(folder, NAME)).look()
        loop = str(session.opening.get("loop", "")), run_folder.loop_of(session.run)
        if session.opening.get("event") == "run.started":
            begun[loop] = session.run
        for call in session.used(prices):
            if call.ts[:19] >= since[:19]:
                yield call._replace(run=begun.setdefault(loop, session.run))


def last_limits(workspace: str, name: str, loop: str) -> Budget:
    """The limits that the latest run of a loop was given: a resume that names none goes on with them."""
    session = newest(workspace, name, loop)
    try:
        return json.decode(Budget, session.opening["limits"]) if session else Budget()
    except (ValueError, KeyError, TypeError):
        return Budget()


def records(path: str) -> Iterator[Json]:
    """Every event of a log."""
    return (record for _, line in lines(path) if (record := parsed(line)))


def following(path: str, alive: Callable[[], bool], meanwhile: Callable[[], None] | None = None) -> Iterator[Json]:
    """The events that are there and those to come, up to run.ended, or until nobody is alive who could add one."""
    offset, last = 0, False
    while True:
        before = offset
        for end, line in _lines_if_there(path, offset):
            offset = end
            if record := parsed(line):
                yield record
                if record["event"] == "run.ended":
                    return
        if last and offset == before:  # the last look is made after nobody is alive any more
            return
        last = not alive()
        if meanwhile:
            meanwhile()
        if not last:
            clock.sleep(PAUSE)


def lines(path: str, offset: int = 0) -> Iterator[tuple[int, bytes]]:
    """Every whole line from there on, and where it ends; the file may still grow. A line that is too long is empty."""
    with open(path, "rb") as file:
        file.seek(offset)
        while line := file.readline(LONGEST):
            too_long = not line.endswith(b"\n")
            while line and not line.endswith(b"\n"):
                line = file.readline(LONGEST)
            if not line:
                return
            yield file.tell(), b"\n" if too_long else line


def _lines_if_there(path: str, offset: int) -> Iterator[tuple[int, bytes]]:
    try:
        yield from lines(path, offset)
    except OSError:
        return


def parsed(line: bytes) -> Json | None:
    """One event; None for a torn or foreign line."""
    try:
        record: Any = loads(line)
    except ValueError:
        return None
    known = isinstance(record, dict) and isinstance(record.get("event"), str) and isinstance(record.get("ts"), str)
    return record if known else None


def seconds_of(ts: str) -> float:
    """Of an event's time; 0 if it isn't one."""
    return clock.parse_time(ts.replace("Z", "+00:00")) or 0.0 if ts else 0.0


def _after(now: Now, record: Json, by_node: bool) -> Now:
    event = record["event"]
    if not by_node or record.get("level") == 0 or event in OPENING:
        now = _counted(now, record, by_node)
    if phase := "question" if event == "question.asked" else _PHASES.get(event, ""):
        now = now._replace(phase=phase, since=record["ts"], account="", until="")
    elif event in _BETWEEN or event == "question.answered":
        now = now._replace(phase="between", since=record["ts"], account="", until="")
    if event == "resting":
        now = now._replace(account=str(record.get("account", "")), until=str(record["until"]))
    if "failure_threshold" in record:
        now = now._replace(failures=f"{record['consecutive_failures']}/{record['failure_threshold']}")
    return now


def _counted(now: Now, record: Json, by_node: bool) -> Now:
    """The iteration at work and the limit. A top node closes each with a boundary, and the next one begins."""
    number = record.get("number" if by_node else "display", now.iteration)
    if record["event"] == "node.boundary" and record.get("status") == "running":
        number += 1
    most = record.get("max_iterations")
    return now._replace(iteration=int(number), max_iterations=most if isinstance(most, int) else now.max_iterations)


def _of_top_node(record: Json) -> Json:
    """The iteration of the top node, since calls have that of the node inside; {} if it is unknown."""
    if record.get("level", 0) != 0 or not isinstance(record.get("number"), int):
        return {}
    return {"display": record["number"] + (record["event"] == "node.boundary")}


def _call(record: Json, started: Json) -> Used | None:
    """None for a record that only looks like one of ours."""
    try:
        return _row(record, started)
    except (TypeError, ValueError, OverflowError):
        return None


def _row(record: Json, started: Json) -> Used:
    usage, cost = record.get("usage"), record.get("cost")
    return Used(
        ts=str(record.get("ts", "")),
        run=str(record.get("run", "")),
        loop=str(record.get("loop", "")),
        name=str(record.get("procedure") or record.get("name", "")),
        number=int(record.get("display", 0)),
        call=str(started.get("call", "")),
        agent=str(started.get("agent", "")),
        model=str(record.get("model", "")),
        seconds=_bounded(float(record.get("seconds", 0.0))),
        usage=_usage(usage) if isinstance(usage, dict) else None,
        cost=_bounded(float(cost)) if isinstance(cost, int | float) else None,
        source=str(record.get("cost_source") or "unknown"),
    )


def _usage(said: Json) -> Usage:
    return Usage(*(int(_bounded(said.get(key, 0))) for key in Usage._fields))


def _bounded(number: float) -> float:
    """ValueError for what can't be added up."""
    if not 0 <= number < MOST:
        raise ValueError(number)
    return number


def _cut_off(started: Json, prices: Pricing) -> Used | None:
    from rooda.agents.reply import interrupted_reply

    row = _call(started, started)
    tells = started.get("output", "text") != "text"
    reply = interrupted_reply(started, Agent("", "", prices=prices() if tells else {}))
    source = reply.cost_source or "unknown"
    return row and row._replace(usage=reply.usage, cost=reply.cost, model=reply.model, source=source)
