"""The effects of a procedure's loop. The loop gets an object with these methods and never touches the world itself."""

from typing import TYPE_CHECKING, Protocol

from rooda.agents.records import Call, Prompt, Reply
from rooda.errors import Cause
from rooda.loops.procedure.model import Procedure
from rooda.run.records import Gate, Gates

if TYPE_CHECKING:
    from rooda.run.event_records import Event


class World(Protocol):
    def now(self) -> str:
        """The time in UTC, in the format of the state files."""

    def elapsed(self) -> float:
        """Seconds since this session began."""

    def signalled(self) -> int:
        """The first signal received, 0 for none."""

    def reached_limit(self) -> Cause | None:
        """The limit of cost, tokens or time that is reached, if any."""

    def emit(self, event: "Event") -> None: ...

    def compose(self, procedure: Procedure, iteration: int) -> Prompt:
        """Write the prompt of an iteration, counted from 0."""

    def ask(self, call: Call) -> Reply: ...

    def check(self, gates: tuple[Gate, ...], iteration: int) -> Gates: ...

    def wait(self, seconds: float) -> None:
        """Sleep; a signal ends it early."""
