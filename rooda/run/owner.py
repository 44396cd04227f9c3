"""The loop that a session belongs to, and facts about its kind. Pure."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from rooda.run.setup import Setup

TurnOf: TypeAlias = Callable[[str, Mapping[str, Any]], tuple[bool, int | None]]
OPENING = ("run.started", "run.resumed")
TURN_EVENTS = (*OPENING, "iteration.started", "iteration.ended", "run.ended")


def turn_of(event: str, facts: Mapping[str, Any]) -> tuple[bool, int | None]:
    """True if the event ends a turn, and the number of the turn that it begins or continues."""
    if event == "iteration.started":
        return False, facts["iteration"] + 1
    if event in OPENING:
        return False, facts.get("number")
    return event in ("iteration.ended", "run.ended"), None


class LoopKind(NamedTuple):
    """Facts about one kind of loop for the platform. Each kind has one in its `events.py`."""

    name: str
    name_field: str = "name"  # of every event: holds the loop's name
    name_variable: str = ""  # environment variable that holds the loop's name as well
    is_family: bool = True  # the snapshots of all its loops are pruned together, not by name
    moments: Mapping[str, str] = {}  # the moment of hooks that a `reason` of `run.ended` means
    turn_events: tuple[str, ...] = ()  # events that begin or end a turn, in addition to those of every kind
    turn_of: TurnOf = turn_of

    def family(self, loop: str) -> str:
        """The name under which snapshots are pruned together."""
        return self.name if self.is_family else loop


class Owner(NamedTuple):
    """The loop that a session belongs to."""

    kind: LoopKind
    name: str  # procedure, alias, run id
    setup: Setup
    resumed: bool = False  # earlier sessions count for its limits
    kept: tuple[str, ...] = ()  # options of earlier starts that still apply
    task: str = ""  # the whole task; its public files have stars in place of secrets
