"""Where a node stands, read off its files and commits: the table by which a run goes on. Pure."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from rooda.loops.flow.boundaries import Boundary
from rooda.loops.flow.flow_labels import own_iteration
from rooda.loops.flow.model import RUNNING, NodeState

MEASURE, CONTROLLER, ACTUATOR, CHILD, SENSORS, COMMIT = (
    *("measure", "controller", "actuator", "child", "sensors", "commit"),
)
STEP_OF = {  # what `active-step` says while a step of the loop is done
    **{"ENTER": MEASURE, "MEASURE": MEASURE, "OPEN": CONTROLLER, "CONTROL": CONTROLLER},
    **{"ACT": ACTUATOR, "LOOP": ACTUATOR, "CHILD": CHILD, "SENSORS": SENSORS},
}
_BEFORE = {  # what is done when this is the active step; the step itself is if its files are there
    CONTROLLER: ("OPEN",),
    ACTUATOR: ("OPEN", "CONTROL"),
    CHILD: ("OPEN", "CONTROL", "CHILD"),
    SENSORS: ("OPEN", "CONTROL", "ACT", "LOOP", "CHILD"),
    COMMIT: ("OPEN", "CONTROL", "ACT", "LOOP", "CHILD", "SENSORS"),
}
_ITSELF = {CONTROLLER: ("CONTROL",), ACTUATOR: ("ACT", "LOOP"), SENSORS: ("SENSORS",)}


class Found(NamedTuple):
    """What files and commits say of one node."""

    parent_label: str = ""
    boundaries: Sequence[Boundary] = ()  # this node's commits in this run, oldest first
    iteration: int = -1  # of its orchestrator-output.md, -1 without one
    status: str = ""
    on_stack: bool = False
    step: str = ""  # active-step, if this node is the active one; `child` if one below it is
    fresh: Collection[str] = ()  # CONTROL, ACT, SENSORS: their files are there, and no former iteration's


class Position(NamedTuple):
    state: NodeState | None
    done: tuple[str, ...] = ()


def position(found: Found) -> Position:
    """The state after the node's last boundary of this entry, and the steps done since."""
    own = [each for each in found.boundaries if own_iteration(found.parent_label, each.label) is not None]
    if own:
        state = own[-1].state
        return Position(state, _since(found, state.iteration + 1) if state.status == RUNNING else ())
    told = found.status == RUNNING or (found.status != "" and found.step in ("", CHILD))
    if found.on_stack and told and found.iteration >= 1:  # a state without its commits, made by hand
        return Position(NodeState(found.iteration - 1), _since(found, found.iteration))
    return Position(None, _of_entry(found))


def _of_entry(found: Found) -> tuple[str, ...]:
    """An inner node is entered anew: it costs nothing. At the top a finished measurement is kept."""
    entered = found.on_stack and found.iteration == 0 and found.status == RUNNING and not found.parent_label
    return ("ENTER", "MEASURE") if entered and "SENSORS" in found.fresh else ()


def _since(found: Found, number: int) -> tuple[str, ...]:
    """What is done of this iteration. A step's files are removed before it is noted as the active one, so that a file
    that is there is its work; where no step is noted, the files alone decide."""
    if found.iteration != number:
        return ()
    if found.step in _BEFORE:
        itself = _ITSELF.get(found.step, ())
        return (*_BEFORE[found.step], *(itself if set(itself) & set(found.fresh) else ()))
    if "CONTROL" not in found.fresh:
        return ("OPEN",)
    return ("OPEN", "CONTROL", "ACT", "LOOP", "CHILD") if "ACT" in found.fresh else ("OPEN", "CONTROL")
