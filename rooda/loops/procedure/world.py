"""Defines the effects of a procedure's loop. The loop calls these methods and has no other effects."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rooda.agents.records import Call, Prompt, Reply
from rooda.errors import Cause
from rooda.loops.procedure.model import Procedure
from rooda.run.records import Gate, Gates

if TYPE_CHECKING:
    from rooda.run.event_records import Event


class Committed(NamedTuple):
    """The result of committing an iteration's changes."""

    commit: str = ""  # "": nothing to commit, or refused
    refused: str = ""  # why git or a hook refused
    tree: str = ""  # the work tree that was committed; "": not known


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

    def results(self, gates: Gates, compared: bool) -> Mapping[str, str]:
        """Return each gate's result: "" if it passed, else its verdict and, if `compared`, a hash of its output."""

    def tree(self, fresh: bool = True) -> str:
        """Return the work tree as the ID of a git tree; "" if it can't be read.

        If not `fresh`, return the tree of the snapshot taken when the iteration began, if there is one.
        """

    def commit(self, base: str, said: str, iteration: int) -> Committed:
        """Commit the paths that differ from the tree `base`. `said`: the agent's final message."""

    def undo(self, iteration: int) -> str:
        """Undo the iteration's changes to files; return the snapshot that keeps them, "" if nothing was undone."""

    def finish_undo(self, began: str, kept: str) -> None:
        """Finish an undo that was cut off: restore the snapshot `began`; the snapshot `kept` has the undone changes."""

    def begin_repeated(self, began: str) -> None:
        """Make an undo of the next iteration, which repeats an interrupted one, restore the snapshot `began`."""

    def wait(self, seconds: float) -> None:
        """Sleep for that many seconds, or until a signal arrives."""
