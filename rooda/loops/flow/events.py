"""Defines the events that only flows emit, as typed records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from rooda.run.event_records import ABSENT, EndCause, Event, Limits
from rooda.run.records import LoopKind, turn_of

Status = Annotated[str, "running", "complete", "max-iterations-reached", "error"]
Sensor = Annotated[str, "pass", "fail", "pending"]


def _turn_of(event: str, facts: Mapping[str, Any]) -> tuple[bool, int | None]:
    """Return whether the event ends a turn, and the next turn's number. A turn is an iteration of the top node."""
    if event == "node.boundary" and facts["level"] == 0:
        return True, facts["number"] + 1 if facts["status"] == "running" else None
    return turn_of(event, facts)


KIND = LoopKind(
    "flow",
    moments={"error": "stuck"},
    turn_events=("node.boundary",),
    turn_of=_turn_of,
    turn_ends=("node.boundary",),
    part_ends=("node.answered",),
)


class RunStarted(Event, name="run.started", durable=True):
    nodes: list[str]  # ids of the nodes, outermost first
    nodes_paths: list[str]  # paths of the nodes, outermost first
    task: str  # the task
    branch: str  # the run's branch
    base_branch: str  # the branch that was checked out at the start
    active: str  # the path of the active node
    # the active node's next step: `measure`, `controller`, `actuator`, `child`, `sensors`, `commit`; empty at the start
    step: str
    number: int  # the iteration of the top node that is started or resumed, from 0
    max_iterations: int  # the top node's limit
    limits: Limits  # `cost` in dollars, `tokens`, `seconds`; 0 = no limit


class RunResumed(RunStarted, name="run.resumed", durable=True):
    pass


class NodeEntered(Event, name="node.entered"):
    """A node was entered. An inner node is entered once per iteration of its parent."""

    iteration: int
    node: str  # the node's path
    level: int  # the node's depth, from 0
    label: str  # the dotted iteration label, such as `1.2.0`
    number: int  # the last part of the label
    max_iterations: int  # the node's limit
    status: Status  # the node's status
    target_met: bool  # true if the controller decided that the target is met
    sensors: Mapping[str, Sensor]  # status per sensor; empty at the node's entry
    summary: str  # the summary, as in the commit's subject
    action: str  # the action, as in the commit's message
    error: str  # the error with which the node ended, else empty
    executed: int  # number of iterations in which the node's controller ran


class NodeAnswered(Event, name="node.answered"):
    """An agent, or rooda itself, wrote the output files of a call. rooda checks these files next."""

    node: str  # the node's path
    label: str  # the dotted label of the node's iteration, such as `1.2`
    # the kind of call; `sensor` even if rooda runs the sensors itself
    call: Annotated[str, "sensor", "controller", "actuator"]
    files: list[str]  # paths of copies of the output files: one per sensor, or one of the controller or actuator


class NodeBoundary(NodeEntered, name="node.boundary"):
    """rooda committed a node's entry, iteration or end."""


class NodeEnded(NodeBoundary, name="node.ended"):
    reason: Annotated[str, "target-met", "max-iterations", "error"]  # why the node ended


class RunEnded(Event, name="run.ended", durable=True):
    status: Status  # `running`: the run can be resumed
    reason: Annotated[str, "target-met", "max-iterations", "error", "signal", "limit"]  # why the session ended
    exit_code: int  # rooda's exit code
    branch: str  # the run's branch
    elapsed: float  # duration of this session in seconds
    base_branch: str = ABSENT  # only if the run has ended: the base branch
    commits: int = ABSENT  # only if the run has ended: number of commits
    # only if the run has ended: the run's first commit if it contains what the user had not committed, else empty
    own_changes: str = ABSENT
    executed: int = ABSENT  # only if the run has ended: number of iterations in which the top node's controller ran
    max_iterations: int = ABSENT  # only if the run has ended: the top node's limit
    sensors: Mapping[str, Sensor] = ABSENT  # only if the run has ended: the top node's readings
    action: str = ABSENT  # only if the run has ended: the last action
    error: str = ABSENT  # only if the run has ended: the reason of an error, else empty
    note: str = ABSENT  # only if the run can be resumed: the reason for the session's end
    hint: str = ABSENT  # only if the run can be resumed: what to do next, or empty
    cause: EndCause = ABSENT
