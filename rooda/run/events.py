"""Writes the events of a session to its journal and passes them to subscribers."""

import json
import os
from collections.abc import Callable, Container, Mapping
from typing import Any, NamedTuple, TypeAlias

from rooda.base import clock, files, secret_forms, secrets, signing
from rooda.base.json import Json
from rooda.run.event_records import Event, Problem, SessionEnd
from rooda.run.folder import RunFolder

# `events.jsonl`: one JSON object per line, in a versioned format.
VERSION = 1
NAME = "events.jsonl"
MOST_HELD = 1024  # number of lines that may wait to be hashed
END = "run.ended"  # carries the signature of the whole log
encoded = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode


class Digest:
    """Hashes the lines of a log, so that the signature in its last record covers them all."""

    def __init__(self, run: str) -> None:
        from rooda.base.hashes import hashlib

        self._what, self._hash = f"events {run}", hashlib.sha256()
        self._lines: list[bytes] = []  # not hashed yet

    def add(self, line: bytes) -> None:
        """Add a line, including its newline."""
        self._lines.append(line)
        if len(self._lines) >= MOST_HELD:
            self.settle()

    def settle(self) -> None:
        """Hash the lines added so far. The loop calls this while an agent works."""
        self._hash.update(b"".join(self._lines))
        self._lines.clear()

    def signature(self, line: bytes) -> str:
        """Return the signature of the log whose last line is `line`; "" without a key."""
        self.settle()
        return signing.mac(self._what, self._hash.digest() + line)

    def covers(self, line: bytes) -> bool:
        """True if the line has this user's valid signature of itself and of all lines before it."""
        self.settle()
        record, signature = signing.parted(line)
        return signing.is_ours(self._what, self._hash.digest() + record, signature)


class Journal:
    """Appends events to the log, each in one write. If one can't be written, it is lost, and the loop continues."""

    def __init__(self, folder: RunFolder, **always: Any) -> None:
        self._folder = folder
        self._always = {"run": folder.run, **always}
        self._sequence = 0
        self._path, self._descriptor = "", -1
        self._unsynced = False
        self._digest = Digest(folder.run)
        self.hidden: tuple[str, ...] = ()  # secrets to replace in every event
        self._looked_at: Mapping[str, str] = {}

    def hide(self, environ: Mapping[str, str], workspace: str) -> None:
        """Replace the secrets in these variables with stars in all later events."""
        if environ == self._looked_at:  # as for most calls
            return
        self._looked_at = dict(environ)
        found = {*self.hidden, *secrets.forms(environ, (workspace,))}
        self.hidden = tuple(sorted(found, key=len, reverse=True))

    def record(self, event: str, turn: dict[str, int], facts: dict[str, Any]) -> dict[str, Any]:
        """Return the record of an event, with secrets replaced by stars."""
        self._sequence += 1
        stamp = clock.rfc3339_milli(clock.now())
        said = secrets.hide_values_in(facts, self.hidden)
        return {"v": VERSION, "ts": stamp, **self._always, "seq": self._sequence, "event": event, **turn, **said}

    def append(self, record: dict[str, Any], durable: bool = False) -> dict[str, Any]:
        """Write a record and return it, with secrets of a recognizable form replaced by stars."""
        line = encoded(record).encode("utf-8", "replace")
        if secret_forms.line_may_have(line):
            record = secrets.hide_in(record, ())
            line = encoded(record).encode("utf-8", "replace")
        self._write(record, line, durable)
        return record

    def _write(self, record: dict[str, Any], line: bytes, durable: bool) -> None:
        try:
            if self._descriptor < 0 or (durable and not os.fstat(self._descriptor).st_nlink):
                self._open()
            if record["event"] == END and (signature := self._digest.signature(line)):
                record["mac"] = signature
                line = signing.with_mac(line, signature)
            line += b"\n"
            files.append(self._descriptor, line)
            self._digest.add(line)
            self._unsynced = self._unsynced or durable
        except OSError:
            self.close()

    def has_vanished(self) -> bool:
        """True if this session's log was deleted or replaced. The next event then begins a new log."""
        try:
            if self._descriptor < 0 or os.path.samestat(os.lstat(self._path), os.fstat(self._descriptor)):
                return False
        except OSError:
            pass
        self.close()
        return True

    def sync(self) -> None:
        """Sync durable events to disk; called while an agent works, when the loop waits anyway."""
        self._digest.settle()
        try:
            if self._unsynced and self._descriptor >= 0:
                files.sync(self._descriptor)
        except OSError:
            self.close()
        self._unsynced = False

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> None:
        self.close()
        self._path = os.path.join(self._folder.ready(), NAME)
        self._descriptor = files.open_append(self._path, 0o600)


Subscriber: TypeAlias = Callable[[Json], None]  # called with the record that was written
AheadSubscriber: TypeAlias = Callable[[Event], None]  # called with the event before it is written
NO_TURN: dict[str, int] = {}


class Route(NamedTuple):
    """The subscribers of one event."""

    ahead: tuple[AheadSubscriber, ...]
    then: tuple[Subscriber, ...]
    in_turn: bool  # True: its record includes the current iteration


class Events:
    """Writes events to the journal and passes them to subscribers."""

    def __init__(self, journal: Journal, at_the_end: Callable[[Json], SessionEnd]) -> None:
        self.journal, self._at_the_end = journal, at_the_end
        self._iteration = 0
        self._ahead: list[tuple[AheadSubscriber, Container[str]]] = []
        self._subscribers: list[tuple[Subscriber, Container[str] | None]] = []
        self._routes: dict[str, Route] = {}

    def subscribe_ahead(self, subscriber: AheadSubscriber, events: Container[str]) -> None:
        """Call `subscriber` with each of these events before the event is written."""
        self._ahead.append((subscriber, events))
        self._routes.clear()

    def subscribe(self, subscriber: Subscriber, events: Container[str] | None = None) -> None:
        """Call `subscriber` after each of these events is written; if `events` is None, after every event."""
        self._subscribers.append((subscriber, events))
        self._routes.clear()

    def emit(self, event: Event) -> None:
        name, facts, turn = event.NAME, event.__dict__, NO_TURN
        ahead, then, in_turn = self._routes.get(name) or self._route(name)
        for notify in ahead:
            notify(event)
        if in_turn:
            self._iteration = number = facts.get("iteration", self._iteration)
            turn = {"iteration": number, "display": number + 1}
        elif name == END:
            facts = {**facts, **self._at_the_end(facts).facts}
        record = self.journal.append(self.journal.record(name, turn, facts), event.DURABLE)
        for subscriber in then:
            subscriber(record)

    def warn(self, text: str) -> None:
        self.emit(Problem(text=text))

    def report_problem_of(self, folder: RunFolder) -> None:
        if problem := folder.take_problem():
            self.warn(problem)

    def _route(self, name: str) -> Route:
        ahead = tuple(notify for notify, events in self._ahead if name in events)
        then = tuple(subscriber for subscriber, events in self._subscribers if events is None or name in events)
        found = self._routes[name] = Route(ahead, then, not name.startswith("run."))
        return found
