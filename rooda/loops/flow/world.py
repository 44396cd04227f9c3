"""The effects of a flow. The loop gets an object with these methods and never touches the world itself."""

from typing import Protocol

from rooda.loops.flow.model import Action, Decision, NodeEntry, Reading
from rooda.run.event_records import Event


class FlowWorld(Protocol):
    """Each method from `enter` to `act` is one step; its value is what the artifact files say afterwards."""

    def signalled(self) -> int:
        """The first signal received, 0 for none."""

    def emit(self, event: Event) -> None: ...

    def enter(self, entry: NodeEntry) -> None:
        """Delete the artifacts of an earlier entry and write the setpoint."""

    def stubs(self, entry: NodeEntry) -> tuple[Reading, ...]:
        """Write a file with the status `pending` for each sensor."""

    def measure(self, entry: NodeEntry, number: int) -> tuple[Reading, ...]:
        """Run all sensors of the node."""

    def open(self, entry: NodeEntry, number: int) -> None:
        """Write the number of the iteration to the node's file."""

    def control(self, entry: NodeEntry, number: int) -> Decision:
        """Ask the controller."""

    def act(self, entry: NodeEntry, number: int, decision: Decision) -> Action:
        """Run the actuator: an agent, or a loop of another kind."""

    def readings(self, entry: NodeEntry) -> tuple[Reading, ...]:
        """The readings in the sensors' files now; `pending` for a file that is missing or invalid."""

    def result(self, entry: NodeEntry) -> Action:
        """The outcome that a node which has ended wrote to its result file; NodeFailed if it is invalid."""
