"""Records of the flow loop, shared by everything that runs one. No behaviour worth a test."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from rooda.base.text import visible
from rooda.run.event_records import Emit

NOT_ENTERED = -1
RUNNING, COMPLETE, LIMIT, ERROR = "running", "complete", "max-iterations-reached", "error"
STATUSES = (RUNNING, COMPLETE, LIMIT, ERROR)
REASON_OF = {COMPLETE: "target-met", LIMIT: "max-iterations", ERROR: "error"}
DIRECT, COMPOSITE, LOOP = "direct", "composite", "loop"
PENDING, PASS, FAIL = "pending", "pass", "fail"
ROOT = "root"  # what stands where the top node's parent would


class Sensor(NamedTuple):
    """One sensor of a node: its name and its agent file, relative to the project's root."""

    name: str
    path: str


class Node(NamedTuple):
    """One loop of the flow, with the one inside it."""

    id: str
    path: str  # ids from the root, joined by /
    controller: str  # agent file
    strategy: str  # direct | composite | loop
    max_iterations: int
    sensors: tuple[Sensor, ...] = ()
    agent: str = ""  # direct: the actuator's agent file
    child: "Node | None" = None  # composite
    loop: tuple[tuple[str, Any], ...] = ()  # loop: which kind, and how it is asked

    @property
    def depth(self) -> int:
        return self.path.count("/")

    @property
    def parent(self) -> str:
        """The parent's path; `root` for the top node."""
        return self.path.rpartition("/")[0] or ROOT


class Job(NamedTuple):
    """One entry into a node: what for, and inside which iteration of its parent."""

    node: Node
    setpoint: str
    parent_label: str = ""  # empty: the top node

    @property
    def inner(self) -> bool:
        """Entered from a composite actuator."""
        return bool(self.parent_label)


class Reading(NamedTuple):
    """What a sensor's file says: pass, fail, or pending."""

    sensor: str
    status: str


class Decision(NamedTuple):
    """What the controller's file says."""

    met: bool
    plan: str = ""  # the Action Plan, verbatim


class Action(NamedTuple):
    """What the actuator did, in one line."""

    text: str


class NodeState(NamedTuple):
    """A node after its last boundary: exactly what that commit's message says."""

    iteration: int = NOT_ENTERED
    status: str = RUNNING
    readings: tuple[Reading, ...] = ()
    summary: str = ""
    action: str = ""
    error: str = ""  # what was wrong, of a node that ended with an error


class NodeFailed(Exception):
    """A node can't go on: an agent, a contract or a commit failed for good. `why` is one sentence."""

    def __init__(self, why: str, detail: str = "") -> None:
        super().__init__(why)
        self.why, self.detail = why, detail


class Breach(NamedTuple):
    """What an agent did beside what it was asked for. `text` goes on after its name."""

    text: str
    offence: bool = True  # the second in a run ends its node


def listed(names: Iterable[str]) -> str:
    """The first five of them, fit for a screen."""
    each = [*map(visible, names)]
    return ", ".join(each[:5]) + (f" and {len(each) - 5} more" if len(each) > 5 else "")


class FlowWorld(NamedTuple):
    """What the flow loop may cause. Each function is one step; its value is what the artifact files say then."""

    signalled: Callable[[], int]
    emit: Emit
    enter: Callable[[Job], None]  # step 0: fresh artifacts, the setpoint
    stubs: Callable[[Job], tuple[Reading, ...]]
    measure: Callable[[Job, int], tuple[Reading, ...]]
    readings: Callable[[Job], tuple[Reading, ...]]  # what the sensors' files say now, pending where one says nothing
    open: Callable[[Job, int], None]  # the iteration's number stands in the node's file
    control: Callable[[Job, int], Decision]
    act: Callable[[Job, int, Decision], Action]
    result: Callable[[Job], Action]  # what a node that has ended says of itself
