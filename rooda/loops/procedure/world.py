"""Defines the effects of a procedure's loop. The loop calls these methods and has no other effects."""

from typing import TYPE_CHECKING, Protocol

from rooda.agents.records import Call, Prompt, Reply
from rooda.errors import Cause
from rooda.loops.procedure.model import Procedure
from rooda.run.records import Gate, Gates

if TYPE_CHECKING:
    from rooda.run.event_records import Event


class World(Protocol):
    def now(self) -> str:
        """Return the current UTC time in the format of the state files."""

    def elapsed(self) -> float:
        """Return the seconds since this session began."""

    def signalled(self) -> int:
        """Return the number of the first signal received, 0 for none."""

    def reached_limit(self) -> Cause | None:
        """Return the limit of cost, tokens or time that is reached, if any."""

    def emit(self, event: "Event") -> None: ...

    def compose(self, procedure: Procedure, iteration: int) -> Prompt:
        """Build and save the prompt of an iteration. `iteration` counts from 0."""

    def ask(self, call: Call) -> Reply: ...

    def check(self, gates: tuple[Gate, ...], iteration: int) -> Gates: ...

    def wait(self, seconds: float) -> None:
        """Sleep for some seconds, or until a signal arrives."""
