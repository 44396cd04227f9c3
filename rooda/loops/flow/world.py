"""Defines the protocol for the effects of a flow's loop."""

from typing import Protocol

from rooda.loops.flow.model import Action, Decision, NodeEntry, Reading
from rooda.run.event_records import Event


class FlowWorld(Protocol):
    """The effects of a flow's loop. Each method from `enter` to `act` is one step that writes files and reads them."""

    def signalled(self) -> int:
        """Return the number of the first signal received; 0 if none."""

    def emit(self, event: Event) -> None: ...

    def limited(self, entry: NodeEntry) -> NodeEntry:
        """Return the entry with the limit that the user has set for the top node while the flow runs."""

    def enter(self, entry: NodeEntry) -> None:
        """Delete the output files of an earlier entry and write the setpoint."""

    def stubs(self, entry: NodeEntry) -> tuple[Reading, ...]:
        """Write an output file with the status `pending` for each sensor; return these readings."""

    def measure(self, entry: NodeEntry, number: int) -> tuple[Reading, ...]:
        """Run all sensors of the node and return their readings."""

    def open(self, entry: NodeEntry, number: int) -> None:
        """Write the iteration number to the node's file."""

    def control(self, entry: NodeEntry, number: int) -> Decision:
        """Call the controller and return its decision."""

    def act(self, entry: NodeEntry, number: int, decision: Decision) -> Action:
        """Run the actuator, an agent or another kind of loop, and return a summary of its action."""

    def readings(self, entry: NodeEntry) -> tuple[Reading, ...]:
        """Return the current readings in the sensors' files; `pending` for a missing or invalid file."""

    def tree(self) -> str:
        """Return the git tree of the work tree without the run's own files."""

    def stuck_after(self) -> int:
        """Return the number of iterations without progress that end a node; 0: no limit."""

    def result(self, entry: NodeEntry) -> Action:
        """Return the outcome in an ended node's result file; raise NodeFailed if it is invalid or an error."""
