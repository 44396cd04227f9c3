"""Where the events of a session are emitted: once, to the journal first, then to its subscribers in their order."""

import json
import os
from collections.abc import Callable, Container, Mapping
from typing import Any, NamedTuple, TypeAlias

from rooda.base import clock, files, secrets
from rooda.base.json import Json
from rooda.run.event_records import Event, Problem, SessionEnd
from rooda.run.folder import RunFolder

# `events.jsonl`: what happened in a run, one JSON object a line, in the one versioned format.
VERSION = 1
NAME = "events.jsonl"
_json = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode


class Journal:
    """Appends events, each in one write. Never fails the loop: an event that can't be written is dropped."""

    def __init__(self, folder: RunFolder, **always: Any) -> None:
        self._folder = folder
        self._always = {"run": folder.run, **always}
        self._sequence = 0
        self._descriptor = -1
        self._unsynced = False
        self.hidden: tuple[str, ...] = ()  # values that no reader gets
        self._looked_at: Mapping[str, str] = {}

    def hide(self, environ: Mapping[str, str], workspace: str) -> None:
        """From now on the keys in these variables are stars in every event."""
        if environ == self._looked_at:  # every call of an agent has the same
            return
        self._looked_at = dict(environ)
        found = {*self.hidden, *secrets.forms(environ, (workspace,))}
        self.hidden = tuple(sorted(found, key=len, reverse=True))

    def record(self, event: str, turn: dict[str, int], facts: dict[str, Any]) -> dict[str, Any]:
        """The event as every reader gets it."""
        self._sequence += 1
        stamp = clock.rfc3339_milli(clock.now())
        said = secrets.hide_in(facts, self.hidden) if self.hidden else facts
        return {"v": VERSION, "ts": stamp, **self._always, "seq": self._sequence, "event": event, **turn, **said}

    def append(self, record: dict[str, Any], durable: bool = False) -> None:
        try:
            if self._descriptor < 0 or (durable and not os.fstat(self._descriptor).st_nlink):
                self._open()
            files.append(self._descriptor, _json(record).encode("utf-8", "replace") + b"\n")
            self._unsynced = self._unsynced or durable
        except OSError:
            self.close()

    def sync(self) -> None:
        """Make the durable events durable. While an agent works it costs nothing: the loop has to wait anyway."""
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
        self._descriptor = files.open_append(os.path.join(self._folder.ready(), NAME))


Hear: TypeAlias = Callable[[Json], None]  # the event as its line has it
Ahead: TypeAlias = Callable[[Event], None]
NO_TURN: dict[str, int] = {}


class Route(NamedTuple):
    """Where one kind of event goes."""

    ahead: tuple[Ahead, ...]
    then: tuple[Hear, ...]
    in_turn: bool  # has the iteration that goes on


class Events:
    """Writes and passes on what happens in a session."""

    def __init__(self, journal: Journal, at_the_end: Callable[[], SessionEnd]) -> None:
        self.journal, self._at_the_end = journal, at_the_end
        self._iteration = 0
        self._ahead: list[tuple[Ahead, Container[str]]] = []
        self._subscribers: list[tuple[Hear, Container[str] | None]] = []
        self._routes: dict[str, Route] = {}

    def ahead(self, hear: Ahead, events: Container[str]) -> None:
        """Call it before one of these events is written."""
        self._ahead.append((hear, events))
        self._routes.clear()

    def subscribe(self, hear: Hear, events: Container[str] | None = None) -> None:
        """Call it after one of these events, or any event, is written."""
        self._subscribers.append((hear, events))
        self._routes.clear()

    def emit(self, event: Event) -> None:
        name, facts, turn = event.NAME, event.__dict__, NO_TURN
        ahead, then, in_turn = self._routes.get(name) or self._route(name)
        for hear_ahead in ahead:
            hear_ahead(event)
        if in_turn:
            self._iteration = number = facts.get("iteration", self._iteration)
            turn = {"iteration": number, "display": number + 1}
        elif name == "run.ended":
            facts = {**facts, **self._at_the_end().facts}
        record = self.journal.record(name, turn, facts)
        self.journal.append(record, event.DURABLE)
        for hear in then:
            hear(record)

    def warn(self, text: str) -> None:
        self.emit(Problem(text=text))

    def report_problem_of(self, folder: RunFolder) -> None:
        if problem := folder.take_problem():
            self.warn(problem)

    def _route(self, name: str) -> Route:
        ahead = tuple(hear for hear, events in self._ahead if name in events)
        then = tuple(hear for hear, events in self._subscribers if events is None or name in events)
        found = self._routes[name] = Route(ahead, then, not name.startswith("run."))
        return found
