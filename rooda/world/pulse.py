"""The events of a session, read on from where the last look ended: what it does now, and what it has used so far."""

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from rooda.kernel.loads import loads
from rooda.model import Json
from rooda.policy.spending import Spent, plus, total
from rooda.world import accounts, clock, identity

RECENT = 65_536  # bytes at the end that tell what it does now; of all before only calls and a flow's top node are read
_ALWAYS = (b'"agent.started"', b'"agent.ended"', b'"level": 0')
_PHASES = {"agent.started": "agent", "gate.started": "gate", "resting": "waiting", "iteration.started": "prompt"}
_BETWEEN = ("agent.ended", "gate.ended", "rested")


class Now(NamedTuple):
    """What the last events say."""

    phase: str = ""  # prompt | agent | gate | waiting | question | between
    since: str = ""
    account: str = ""  # whose usage limit it waits for
    until: str = ""
    iteration: int = 0  # as the screen counts
    max_iterations: int = 0
    failures: str = ""  # "1/3"
    ended: Json | None = None  # the event run.ended


class Pulse:
    """One session. `look` reads what is new."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._forget()

    def _forget(self) -> None:
        self._offset, self._closed = 0, Spent()
        self._open: dict[str, Json] = {}  # calls at work
        self.now, self.first, self.last = Now(), "", ""

    def look(self) -> "Pulse":
        try:
            size = os.path.getsize(self._path)
        except OSError:
            return self
        if size < self._offset:  # somebody has taken it away, and it began anew
            self._forget()
        for line in whole_lines(self._path, self._offset):
            self._offset += len(line)
            if not self.first or self._offset > size - RECENT or any(each in line for each in _ALWAYS):
                record = parsed(line)
                if record:
                    self._take(record)
        return self

    @property
    def spent(self) -> Spent:
        """A call at work counts, with a cost that nobody knows yet."""
        return self._closed._replace(
            calls=self._closed.calls + len(self._open), unknown=self._closed.unknown + len(self._open)
        )

    def elapsed(self, alive: bool) -> float:
        """Seconds from its first event to its last; of a live one the age of its process, however the clock is set."""
        loop = os.path.basename(os.path.dirname(self._path)).rpartition("-")[2]
        age = identity.age(int(loop)) if alive and loop.isdecimal() else None
        if age is not None:
            return age
        first, last = seconds_of(self.first), clock.now() if alive else seconds_of(self.last)
        return max(last - first, 0.0) if first else 0.0

    def _take(self, record: Json) -> None:
        self.first, self.last = self.first or record["ts"], record["ts"]
        event, transcript = record["event"], str(record.get("transcript", ""))
        if event == "agent.started":
            self._open[transcript] = record
        elif event == "agent.ended":
            call = accounts.entry(record, self._open.pop(transcript, record))
            self._closed = plus(self._closed, total([call] if call else []))
        try:
            self.now = _after(self.now, record)
        except (TypeError, ValueError, KeyError):
            pass  # somebody changed the file


def _after(now: Now, record: Json) -> Now:
    event = record["event"]
    if record.get("loop") != "flow" or record.get("level") == 0 or event in ("run.started", "run.resumed"):
        now = _counted(now, record)
    if phase := "question" if event == "question.asked" else _PHASES.get(event, ""):
        now = now._replace(phase=phase, since=record["ts"], account="", until="")
    elif event in _BETWEEN or event == "question.answered":
        now = now._replace(phase="between", since=record["ts"], account="", until="")
    if event == "resting":
        now = now._replace(account=str(record.get("account", "")), until=str(record["until"]))
    if "failure_threshold" in record:
        now = now._replace(failures=f"{record['consecutive_failures']}/{record['failure_threshold']}")
    return now._replace(ended=record if event == "run.ended" else now.ended)


def _counted(now: Now, record: Json) -> Now:
    """The iteration at work and the limit. A flow's top node closes each with a boundary, and the next one begins."""
    number = record.get("number" if record.get("loop") == "flow" else "display", now.iteration)
    if record["event"] == "node.boundary" and record.get("status") == "running":
        number += 1
    most = record.get("max_iterations")
    return now._replace(iteration=int(number), max_iterations=most if isinstance(most, int) else now.max_iterations)


def whole_lines(path: str, offset: int) -> Iterator[bytes]:
    """Every line from there on that has its end; the file may still grow."""
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            for line in file:
                if line.endswith(b"\n"):
                    yield line
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
    """Of an event's time; 0 for what is none."""
    return clock.moment(ts.replace("Z", "+00:00")) or 0.0 if ts else 0.0
