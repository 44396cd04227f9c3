"""Where the events of a session are emitted: once, to the journal first, then to its subscribers in their order."""

from collections.abc import Callable, Container
from typing import NamedTuple, TypeAlias

from rooda.base.json import Json
from rooda.run.event_records import Event, SessionEnd
from rooda.run.journal import Journal

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
        self._journal, self._at_the_end = journal, at_the_end
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
        record = self._journal.record(name, turn, facts)
        self._journal.append(record, event.DURABLE)
        for hear in then:
            hear(record)

    def _route(self, name: str) -> Route:
        ahead = tuple(hear for hear, events in self._ahead if name in events)
        then = tuple(hear for hear, events in self._subscribers if events is None or name in events)
        found = self._routes[name] = Route(ahead, then, not name.startswith("run."))
        return found
