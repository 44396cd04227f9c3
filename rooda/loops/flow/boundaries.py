"""The structured commit message of a boundary: made from a node's state, and read back into it. Pure."""

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from rooda.loops.flow.model import ERROR, RUNNING, STATUSES, NodeState, Reading, own_iteration

SUMMARY, ACTION = 72, 200
ENTRY = "initial entry (sensors skipped)"
MEASURED = "initial measurement"
_SUBJECT = re.compile(r"ai-loop\[([^\]]+)\]: iteration ([0-9]{1,9}(?:\.[0-9]{1,9})*) — (\S.*)")
_WRONG = "error: "  # how the action of a node that failed begins: the flow's format fixes it, and is what is read back
_KEYS = ("node-path", "level", "iteration", "status", "target-met", "sensors", "action")


class Boundary(NamedTuple):
    """One commit of a run: which node, which label, and the state it closed with."""

    path: str
    label: str
    state: NodeState


def one_line(text: str, longest: int) -> str:
    """Without line breaks and control characters, cut at a word; never empty."""
    plain = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    if len(plain) > longest:
        plain = (plain[: longest - 1].rpartition(" ")[0] or plain[: longest - 1]).rstrip(" ,;:.") + "…"
    return plain or "nothing said"


def message(boundary: Boundary) -> str:
    path, state = boundary.path, boundary.state
    sensors = ", ".join(f"{reading.sensor}: {reading.status}" for reading in state.readings) or "none"
    rows = (
        f"[node-path] {path}",
        f"[level] {path.count('/')}",
        f"[iteration] {boundary.label}",
        f"[status] {state.status}",
        f"[target-met] {'true' if state.status == 'complete' else 'false'}",
        f"[sensors] {sensors}",
        f"[action] {state.action}",
    )
    return f"{subject(boundary)}\n\n" + "\n".join(rows) + "\n"


def subject(boundary: Boundary) -> str:
    shown = boundary.path.replace("/", " > ")
    return f"ai-loop[{shown}]: iteration {boundary.label} — {boundary.state.summary}"


def read(text: str) -> Boundary | None:
    """The boundary that a commit message tells of; None for a commit of somebody else's."""
    subject, _, body = text.strip("\n").partition("\n")
    found = _SUBJECT.search(subject.strip())  # a hook may have put words of its own around it
    fields = dict(re.findall(r"^\[([\w-]+)\] (.*)$", body, re.MULTILINE))
    if not found or not all(key in fields for key in _KEYS) or fields["status"] not in STATUSES:
        return None
    if fields["iteration"] != found[2]:
        return None
    iteration = int(found[2].rpartition(".")[2])
    state = _state(iteration, fields["status"], _readings(fields["sensors"]), found[3], fields["action"])
    return Boundary(fields["node-path"], found[2], state)


def _readings(text: str) -> tuple[Reading, ...]:
    if text == "none":
        return ()
    pairs = (pair.rpartition(": ") for pair in text.split(", "))
    return tuple(Reading(name, status) for name, _, status in pairs)


def state_of_error(why: str, iteration: int, readings: tuple[Reading, ...]) -> NodeState:
    """The state of a node that failed in this iteration. `readings` are what its files say then."""
    text = f"{_WRONG}{why}"
    return _state(iteration, ERROR, readings, one_line(text, SUMMARY), one_line(text, ACTION))


def _state(iteration: int, status: str, readings: tuple[Reading, ...], summary: str, action: str) -> NodeState:
    """The state that a commit's message says, the same when it is made and when it is read."""
    error = action.removeprefix(_WRONG) if status == ERROR else ""
    return NodeState(iteration, status, readings, summary, action, error)


# Where a node stands, read off its files and commits: the table by which a run goes on. Pure.
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
