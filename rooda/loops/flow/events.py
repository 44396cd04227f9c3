"""The events of a flow, as typed records. Imports nothing but the base of all events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from rooda.run.event_records import ABSENT, EndCause, Event, Limits
from rooda.run.owner import LoopKind, turn_of

Status = Annotated[str, "running", "complete", "max-iterations-reached", "error"]
Sensor = Annotated[str, "pass", "fail", "pending"]


def _turn_of(event: str, facts: Mapping[str, Any]) -> tuple[bool, int | None]:
    """The turns of a flow are the iterations of its top node."""
    if event == "node.boundary" and facts["level"] == 0:
        return True, facts["number"] + 1 if facts["status"] == "running" else None
    return turn_of(event, facts)


KIND = LoopKind("flow", moments={"error": "stuck"}, turn_events=("node.boundary",), turn_of=_turn_of)


class RunStarted(Event, name="run.started", durable=True):
    nodes: list[str]  # ids of the nodes, from the outside in
    nodes_paths: list[str]  # their paths
    task: str  # the task
    branch: str  # the run's branch
    base_branch: str  # the branch it began from
    active: str  # the path of the node that is at work
    # what it is about to do: `measure`, `controller`, `actuator`, `child`, `sensors`, `commit`; empty at the beginning
    step: str
    number: int  # the iteration of the top node that begins or goes on, from 0
    max_iterations: int  # the top node's limit
    limits: Limits  # `cost` in dollars, `tokens`, `seconds`; 0 = no limit


class RunResumed(RunStarted, name="run.resumed", durable=True):
    pass


class NodeEntered(Event, name="node.entered"):
    """A node begins; one inside another for each of its entries."""

    iteration: int
    node: str  # the node's path
    level: int  # its depth, from 0
    label: str  # the dot label: `1.2.0`
    number: int  # the last part of it
    max_iterations: int  # the node's limit
    status: Status  # of the node
    target_met: bool  # true: its controller said so
    sensors: Mapping[str, Sensor]  # by name; none yet where the node was entered just now
    summary: str  # as in the commit's subject
    action: str  # as in the commit's message
    error: str  # what was wrong, of a node that ended with an error; else empty
    executed: int  # iterations in which the controller was asked


class NodeAnswered(Event, name="node.answered"):
    """What was asked for has been written; it is judged next."""

    node: str  # the node's path
    label: str  # the dot label of its iteration: `1.2`
    call: Annotated[str, "sensor", "controller", "actuator"]  # who wrote it; `sensor` also where rooda measures itself
    files: list[str]  # copies of what was written: of each sensor, of the controller, or of the actuator


class NodeBoundary(NodeEntered, name="node.boundary"):
    """A commit has been made."""


class NodeEnded(NodeBoundary, name="node.ended"):
    reason: Annotated[str, "target-met", "max-iterations", "error"]  # why


class RunEnded(Event, name="run.ended", durable=True):
    status: Status  # `running`: the run can be resumed
    reason: Annotated[str, "target-met", "max-iterations", "error", "signal", "limit"]  # why
    exit_code: int  # of rooda
    branch: str  # the run's branch
    elapsed: float  # of this session
    base_branch: str = ABSENT  # only of a run that is over: the branch it began from
    commits: int = ABSENT  # only of a run that is over: how many
    executed: int = ABSENT  # only of a run that is over: iterations of the top node in which its controller was asked
    max_iterations: int = ABSENT  # only of a run that is over: the top node's limit
    sensors: Mapping[str, Sensor] = ABSENT  # only of a run that is over: the top node's
    action: str = ABSENT  # only of a run that is over: the last one
    error: str = ABSENT  # only of a run that is over: what was wrong, if it ended with an error; else empty
    note: str = ABSENT  # only of a run that can be resumed: what ended this session
    hint: str = ABSENT  # only of a run that can be resumed: what to do about it, or empty
    cause: EndCause = ABSENT
