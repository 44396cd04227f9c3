"""Reads the event logs of runs, each `events.jsonl` in one pass. All other modules use this one to read logs."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from rooda.agents.records import Agent, Usage
from rooda.base import clock, files, json, signing
from rooda.base.json import Json, loads
from rooda.processes import table
from rooda.run import ended
from rooda.run import folder as run_folder
from rooda.run.events import END, NAME, Digest
from rooda.run.setup import Budget
from rooda.run.spending import Spent, Used, total

MOST = 1e15  # upper bound of each number in a log; a larger one is invalid
LARGEST = 268_435_456  # bytes of a log; a larger one is not read
LONGEST = 4_194_304  # bytes of a line; rooda writes shorter ones
RECENT = 65_536  # bytes at the end of a log in which every event is parsed; before them only some kinds are
PAUSE = 0.2  # seconds between two reads of a growing log
OPENING = ("run.started", "run.resumed")
_COUNTED = (*OPENING, "work.began", "iteration.started", "agent.started", "agent.ended", "state.saved", "run.ended")
_ALWAYS = (*(f'"{name}"'.encode() for name in _COUNTED), b'"level": 0')
_PHASES = {"agent.started": "agent", "gate.started": "gate", "resting": "waiting", "iteration.started": "prompt"}
_END = f'"{END}"'.encode()
_BETWEEN = ("agent.ended", "gate.ended", "rested")
Pricing: TypeAlias = Callable[[], Mapping[str, tuple[float, ...]]]  # returns prices; called only if a call was cut off


class Now(NamedTuple):
    """The current activity of a run, derived from its events."""

    phase: str = ""  # prompt | agent | gate | waiting | question | between
    since: str = ""
    account: str = ""  # account whose usage limit the run waits for
    until: str = ""
    iteration: int = 0  # as on the screen, from 1
    max_iterations: int = 0
    failures: str = ""  # "1/3"


class SessionState:
    """The state of one session, built from its events one by one. Pure."""

    def __init__(self) -> None:
        self.loop = ""
        self.first: Json = {}
        self.last: Json = {}
        self.opening: Json = {}
        self.work: Json = {}  # `head` and `dirty` of the event work.began
        self.ended: Json | None = None  # the event run.ended
        self.calls: list[Used] = []  # ended calls
        self.open_calls: dict[str, Json] = {}  # start events of calls that have not ended, by transcript
        self.unsaved: list[Json] = []  # start events of calls since the state was last saved
        self.called_iterations: set[int] = (
            set()
        )  # iterations with a call; other events between iterations have a number too
        self.question_open = False  # True while a question waits for its answer
        self.reported_seconds: float | None = None  # run time in seconds, as reported by its last call or its end
        self.now = Now()
        self._by_node = False  # True: iterations are those of a flow's top node
        self._number: Json = {}  # the latest iteration of the top node

    def add(self, record: Json) -> None:
        """Update the state with the next event."""
        event = record["event"]
        self.first, self.last = self.first or record, record
        self.loop = self.loop or str(record.get("loop", ""))
        self.question_open = event == "question.asked" or (self.question_open and event != "question.answered")
        if event in OPENING:
            self.opening = self.opening or record
        if event in OPENING or event == "node.boundary":
            self._by_node = self._by_node or "nodes" in record
            self._number = (_of_top_node(record) if self._by_node else {}) or self._number
        elif event == "state.saved":
            self.unsaved = []
        elif event == "run.ended":
            self.ended = record
        elif event == "work.began" and isinstance(record.get("dirty"), dict):
            self.work = {"head": str(record.get("head", "")), "dirty": record["dirty"]}
        if event in ("agent.started", "agent.ended"):
            self._add_call(event, record)
        if event in ("agent.started", "iteration.started") and isinstance(number := record.get("display"), int):
            self.called_iterations.add(number)
        if event in ("agent.ended", "run.ended"):
            self._add_run_time(record.get("ran"))
        try:
            self.now = _after(self.now, record, self._by_node)
        except (TypeError, ValueError, KeyError):
            pass  # the file was edited

    def _add_call(self, event: str, record: Json) -> None:
        transcript, numbered = str(record.get("transcript", "")), record | self._number
        if event == "agent.started":
            self.open_calls[transcript] = {**numbered, "transcript": transcript}
            self.unsaved.append(self.open_calls[transcript])
        elif call := call_of(numbered, self.open_calls.pop(transcript, numbered)):
            self.calls.append(call)

    def _add_run_time(self, ran: Any) -> None:
        if isinstance(ran, int | float) and 0 <= ran < MOST:
            self.reported_seconds = max(self.reported_seconds or 0.0, float(ran))

    def number_of(self, record: Json) -> int:
        """Return the displayed iteration number of the event just added; in a flow, that of the top node."""
        number = {**record, **self._number}.get("display", 0)
        return number if isinstance(number, int) else 0

    def used(self, prices: Pricing) -> Iterator[Used]:
        """Yield the usage and cost of each call of an ended session.

        The usage of a call that a crash cut off is read from its transcript if possible.
        """
        yield from self.calls
        for started in self.open_calls.values():
            if call := _cut_off(started, prices):
                yield call

    @property
    def spent(self) -> Spent:
        """The total usage of a running session. A call in progress counts as a call of unknown cost."""
        spent, open_ = total(self.calls), len(self.open_calls)
        return spent._replace(calls=spent.calls + open_, unknown=spent.unknown + open_)

    @property
    def run_time(self) -> float:
        """The run time that the session's end or its last call reported; if neither did, the sum of its calls."""
        return sum(call.seconds for call in self.calls) if self.reported_seconds is None else self.reported_seconds


class SessionLog(SessionState):
    """The log of one session. `refresh` reads the events appended since the last refresh."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
        self.folder = os.path.dirname(path)
        self.run = os.path.basename(self.folder)
        self._offset = 0

    def refresh(self) -> "SessionLog":
        try:
            size = os.path.getsize(self.path)
            if size < self._offset:  # the log was deleted and started again
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
                self.add(located(record, self.folder))

    def state_of(self, facts: Json) -> str:
        """Return the state of this session's loop, which must have no process and no newer session."""
        word = str(facts.get("state") or ended.of_file(str(facts.get("status", ""))))
        stopped = bool(self.run) and run_folder.order_of(self.folder).get("order") == run_folder.STOP
        return ended.without_process(word, self.ended, stopped)

    def elapsed(self, alive: bool) -> float:
        """Return the seconds from the first to the last event; for a running session, the age of its process or log."""
        pid = self.run.rpartition("-")[2]
        age = table.age(int(pid)) if alive and pid.isdecimal() else None
        if age is not None:
            return age
        first = seconds_of(self.first.get("ts", ""))
        last = clock.now() if alive else seconds_of(self.last.get("ts", ""))
        return max(last - first, 0.0) if first else 0.0


Logs: TypeAlias = Callable[[str], SessionLog]  # returns the log at a path: a new one, or one read before


def sessions(workspace: str, name: str, loop: str, log: Logs = SessionLog) -> list[SessionLog]:
    """Return the sessions of the newest run, oldest first. Times are ignored: the clock may have been set back."""
    found: list[SessionLog] = []
    for folder in reversed(run_folder.all_of(workspace, name)):
        session = log(os.path.join(folder, NAME)).refresh()
        found.insert(0, session)
        if session.loop == loop and session.opening.get("event") == "run.started":
            break
    return found


def state_of(workspace: str, name: str, loop: str, facts: Json) -> str:
    """Return the state of a loop from its newest session and its files: `facts` has `status`, `running` and `pid`."""
    found = sessions(workspace, name, loop)
    session = found[-1] if found else SessionLog("")
    if facts["running"]:
        return ended.of_running(session.now.phase, table.is_stopped(facts["pid"]))
    return session.state_of(facts)


def newest(workspace: str, name: str, loop: str, begun: str = "", log: Logs = SessionLog) -> SessionLog | None:
    """Return the newest session that started or resumed this loop; None if that session completed the run.

    A run can't be resumed once it is completed. `begun` is the session that started the run, as
    recorded in the loop's state file; it counts even if rooda was killed before the log recorded the start.
    """
    for folder in reversed(run_folder.all_of(workspace, name)):
        session = log(os.path.join(folder, NAME))
        if session.run == begun:
            return session
        if session.refresh().opening and session.loop == loop:
            return None if (session.ended or {}).get("status") == "completed" else session
    return None


def note_cancel(workspace: str, name: str, loop: str, reason: str = "") -> None:
    """Record in the folder of a loop's newest session that the user has cancelled the run for good."""
    if session := newest(workspace, name, loop):
        run_folder.leave_order(session.folder, run_folder.CANCEL, reason)


def of_run(workspace: str, name: str, loop: str) -> list[SessionLog]:
    """Return the sessions of this loop since its last start; [] if the loop can't be resumed."""
    log = cache(SessionLog)
    found = sessions(workspace, name, loop, log) if newest(workspace, name, loop, log=log) else []
    return [session for session in found if session.loop == loop]


def used(workspace: str, name: str | None = None, since: str = "", prices: Pricing = dict) -> Iterator[Used]:
    """Yield all calls since the timestamp `since`, oldest first; `run` of each is the session that started its run."""
    begun: dict[tuple[str, str], str] = {}
    for folder in run_folder.all_of(workspace, name):
        session = SessionLog(os.path.join(folder, NAME)).refresh()
        loop = str(session.opening.get("loop", "")), run_folder.loop_of(session.run)
        if session.opening.get("event") == "run.started":
            begun[loop] = session.run
        for call in session.used(prices):
            if call.ts[:19] >= since[:19]:
                yield call._replace(run=begun.setdefault(loop, session.run))


def last_limits(workspace: str, name: str, loop: str) -> Budget:
    """Return the limits of a loop's newest run, which a resume without options reuses."""
    session = newest(workspace, name, loop)
    if session is None:
        return Budget()
    origin = run_folder.origin_of(session.folder)
    try:
        return json.decode(Budget, origin["limits"] if origin.get("signed") else session.opening["limits"])
    except (ValueError, KeyError, TypeError):
        return Budget()


def events_of_run(workspace: str, name: str, loop: str, wanted: Collection[str]) -> Iterator[Json]:
    """Yield the events with these names since the last start of a run, oldest first.

    Sessions that this user did not sign are left out, because text from these events is put into prompts.
    """
    marks = [f'"{each}"'.encode() for each in wanted]
    for session in of_run(workspace, name, loop):
        if run_folder.origin_of(session.folder).get("signed") or not signing.has_key():
            for _, line in _lines_if_there(session.path, 0):
                counts = any(mark in line for mark in marks)
                if counts and (record := parsed(line)) and record["event"] in wanted:
                    yield located(record, session.folder)


def is_signed(path: str) -> bool:
    """True if this user signed the log up to `run.ended`, and only `problem` events of hooks follow."""
    digest, ended = Digest(os.path.basename(os.path.dirname(path))), False
    for _, line in _lines_if_there(path, 0):
        if ended and (parsed(line) or {}).get("event") != "problem":
            return False
        if not ended and _is_end(line):
            if not digest.covers(line.removesuffix(b"\n")):
                return False
            ended = True
        digest.add(line)
    return ended


def sign(path: str) -> None:
    """Sign a log up to `run.ended` after the user has seen it; delete all later lines."""
    digest, found = Digest(os.path.basename(os.path.dirname(path))), list[bytes]()
    for _, line in lines(path):
        if _is_end(line):
            record, _ = signing.parted(line)
            found.append(signing.with_mac(record, digest.signature(record)) + b"\n")
            break
        digest.add(line)
        found.append(line)
    files.replace(path, b"".join(found))


def has_end(path: str) -> bool:
    """True if the log has a `run.ended` event, signed or not."""
    return any(_is_end(line) for _, line in _lines_if_there(path, 0))


def _is_end(line: bytes) -> bool:
    return _END in line and (parsed(line) or {}).get("event") == END


def records(path: str) -> Iterator[Json]:
    """Yield all events of a log."""
    return (record for _, line in lines(path) if (record := parsed(line)))


def following(path: str, alive: Callable[[], bool], on_wait: Callable[[], None] | None = None) -> Iterator[Json]:
    """Yield existing and new events up to `run.ended`, or until the process that writes them has ended."""
    offset, last = 0, False
    while True:
        before = offset
        for end, line in _lines_if_there(path, offset):
            offset = end
            if record := parsed(line):
                yield record
                if record["event"] == "run.ended":
                    return
        if last and offset == before:  # one more read after the process ended
            return
        last = not alive()
        if on_wait:
            on_wait()
        if not last:
            clock.sleep(PAUSE)


def lines(path: str, offset: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield the end offset and content of each complete line from `offset` on; an overlong line has no content."""
    with files.reading(path, LARGEST) as file:
        file.seek(offset)
        while line := file.readline(LONGEST):
            if len(line) < LONGEST and not line.endswith(b"\n"):
                return
            too_long = not line.endswith(b"\n")
            while line and not line.endswith(b"\n"):
                line = file.readline(LONGEST)
            yield file.tell(), b"\n" if too_long else line


def located(record: Json, folder: str) -> Json:
    """Return the event; its output's path becomes that of the file with this name in `folder`, the run's own folder."""
    key = "output" if record["event"] == "gate.ended" else "transcript"
    return {**record, key: run_folder.transcript_in(folder, record[key])} if record.get(key) else record


def _lines_if_there(path: str, offset: int) -> Iterator[tuple[int, bytes]]:
    try:
        yield from lines(path, offset)
    except OSError:
        return


def parsed(line: bytes) -> Json | None:
    """Parse one event; None for a line that is incomplete or not an event."""
    try:
        record: Any = loads(line)
    except ValueError:
        return None
    known = isinstance(record, dict) and isinstance(record.get("event"), str) and isinstance(record.get("ts"), str)
    return record if known else None


def seconds_of(ts: str) -> float:
    """Convert an event's `ts` to seconds since 1970; 0 if it is invalid."""
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
    """Update the iteration and its limit. Each `node.boundary` of a flow's top node begins the next iteration."""
    number = record.get("number" if by_node else "display", now.iteration)
    if record["event"] == "node.boundary" and record.get("status") == "running":
        number += 1
    most = record.get("max_iterations")
    return now._replace(iteration=int(number), max_iterations=most if isinstance(most, int) else now.max_iterations)


def _of_top_node(record: Json) -> Json:
    """Return the iteration of a flow's top node; {} for an event of another node, which counts separately."""
    if record.get("level", 0) != 0 or not isinstance(record.get("number"), int):
        return {}
    return {"display": record["number"] + (record["event"] == "node.boundary")}


def call_of(record: Json, started: Json) -> Used | None:
    """Return the call in a record; None if its fields are invalid."""
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
        lost=record.get("lost") is True,
        transcript=os.path.basename(str(record.get("transcript", ""))),
    )


def _usage(said: Json) -> Usage:
    return Usage(*(int(_bounded(said.get(key, 0))) for key in Usage._fields))


def _bounded(number: float) -> float:
    """Return the number. Raises ValueError if it is out of range."""
    if not 0 <= number < MOST:
        raise ValueError(number)
    return number


def _cut_off(started: Json, prices: Pricing) -> Used | None:
    from rooda.agents.reply import interrupted_reply

    row = call_of(started, started)
    tells = started.get("output", "text") != "text"
    reply = interrupted_reply(started, Agent("", "", prices=prices() if tells else {}))
    source = reply.cost_source or "unknown"
    lost = tells and not os.path.lexists(reply.transcript)
    return row and row._replace(usage=reply.usage, cost=reply.cost, model=reply.model, source=source, lost=lost)


def count_lost(sessions: Sequence[SessionLog]) -> int:
    """Return how many sessions of a resumed run have lost the start of their log, so that their usage is unknown.

    Without any session, return 1.
    """
    if not sessions:
        return 1
    began = sessions[0].opening.get("event") == "run.started"
    return int(not began) + sum(_lost_start(session) for session in sessions[1:])


def _lost_start(session: SessionLog) -> bool:
    """True if the log has lost its first records. A session that is just starting has record 1, but no opening yet."""
    return bool(session.first) and not session.opening and session.first.get("seq") != 1
