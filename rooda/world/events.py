"""Where the events of a session are emitted: once, to the journal first, then to its subscribers in their order."""

from collections.abc import Callable, Container
from typing import TypeAlias

from rooda.model import Json
from rooda.policy.event_records import Event, SessionEnd
from rooda.world.journal import Journal

Hear: TypeAlias = Callable[[Json], None]  # the event as its line has it
Ahead: TypeAlias = Callable[[Event], None]


class Events:
    """Writes and passes on what happens in a session."""

    def __init__(self, journal: Journal, at_the_end: Callable[[], SessionEnd]) -> None:
        self._journal, self._at_the_end = journal, at_the_end
        self._iteration = 0
        self._ahead: list[tuple[Ahead, Container[str]]] = []
        self._subscribers: list[tuple[Hear, Container[str] | None]] = []
        self._of: dict[str, list[Hear]] = {}  # by event

    def ahead(self, hear: Ahead, events: Container[str]) -> None:
        """Call it before one of these events is written."""
        self._ahead.append((hear, events))

    def subscribe(self, hear: Hear, events: Container[str] | None = None) -> None:
        """Call it after one of these events, or any event, is written."""
        self._subscribers.append((hear, events))
        self._of.clear()

    def emit(self, event: Event) -> None:
        name, facts = event.NAME, event.facts
        for ahead, events in self._ahead:
            if name in events:
                ahead(event)
        if name == "run.ended":
            facts = {**facts, **self._at_the_end().facts}
        elif not name.startswith("run."):
            self._iteration = facts.get("iteration", self._iteration)
            facts = {"iteration": self._iteration, "display": self._iteration + 1, **facts}
        record = self._journal.record(name, facts)
        self._journal.append(record, event.DURABLE)
        for hear in self._of.get(name) or self._hearers(name):
            hear(record)

    def _hearers(self, name: str) -> list[Hear]:
        found = self._of[name] = [hear for hear, events in self._subscribers if events is None or name in events]
        return found
