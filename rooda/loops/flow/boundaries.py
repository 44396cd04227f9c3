"""Formats and parses the commit messages that record node states; finds where to resume a run. No side effects."""

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from rooda.loops.flow.model import ERROR, RUNNING, STATUSES, NodeState, Reading, own_iteration

SUMMARY, ACTION = 72, 200
ENTRY = "initial entry (sensors skipped)"
MEASURED = "initial measurement"
_SUBJECT = re.compile(r"ai-loop\[([^\]]+)\]: iteration ([0-9]{1,9}(?:\.[0-9]{1,9})*) — (\S.*)")
_WRONG = "error: "  # prefix of a failed node's action; part of the commit format
_KEYS = ("node-path", "level", "iteration", "status", "target-met", "sensors", "action")


class Boundary(NamedTuple):
    """One commit of a run, made when a node enters, finishes an iteration or ends: its node, label and state."""

    path: str
    label: str
    state: NodeState


def one_line(text: str, longest: int) -> str:
    """Return the text on one line without control characters, cut at a word; never empty."""
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
    """Parse a commit message into a Boundary; None if rooda did not write the message."""
    subject, _, body = text.strip("\n").partition("\n")
    found = _SUBJECT.search(subject.strip())  # a git hook may have added text around the subject
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
    """Return the state of a node that failed in this iteration."""
    text = f"{_WRONG}{why}"
    return _state(iteration, ERROR, readings, one_line(text, SUMMARY), one_line(text, ACTION))


def _state(iteration: int, status: str, readings: tuple[Reading, ...], summary: str, action: str) -> NodeState:
    """Build the node state of a commit message; the error is derived from the action."""
    error = action.removeprefix(_WRONG) if status == ERROR else ""
    return NodeState(iteration, status, readings, summary, action, error)


# Where to resume a node, according to its files and commits.
MEASURE, CONTROLLER, ACTUATOR, CHILD, SENSORS, COMMIT = (
    *("measure", "controller", "actuator", "child", "sensors", "commit"),
)
STEP_OF = {  # the value of `active-step` during each step
    **{"ENTER": MEASURE, "MEASURE": MEASURE, "OPEN": CONTROLLER, "CONTROL": CONTROLLER},
    **{"ACT": ACTUATOR, "LOOP": ACTUATOR, "CHILD": CHILD, "SENSORS": SENSORS},
}
_BEFORE = {  # steps finished before each active step; the active step is finished too if its files exist
    CONTROLLER: ("OPEN",),
    ACTUATOR: ("OPEN", "CONTROL"),
    CHILD: ("OPEN", "CONTROL", "CHILD"),
    SENSORS: ("OPEN", "CONTROL", "ACT", "LOOP", "CHILD"),
    COMMIT: ("OPEN", "CONTROL", "ACT", "LOOP", "CHILD", "SENSORS"),
}
_ITSELF = {CONTROLLER: ("CONTROL",), ACTUATOR: ("ACT", "LOOP"), SENSORS: ("SENSORS",)}


class NodeRecord(NamedTuple):
    """One node as recorded in the files and commits of a run."""

    parent_label: str = ""
    boundaries: Sequence[Boundary] = ()  # this node's commits in this run, oldest first
    iteration: int = -1  # from the node's orchestrator-output.md; -1 if there is no such file
    status: str = ""
    on_stack: bool = False
    step: str = ""  # active-step if this node is active; `child` if a node below it is active
    fresh: Collection[str] = ()  # steps of CONTROL, ACT, SENSORS whose files exist and are of this iteration


class Position(NamedTuple):
    state: NodeState | None
    done: tuple[str, ...] = ()


def position(record: NodeRecord) -> Position:
    """Return where to resume a node: the state in its last commit of this entry, and the steps finished since."""
    own = [each for each in record.boundaries if own_iteration(record.parent_label, each.label) is not None]
    if own:
        state = own[-1].state
        return Position(state, _finished_steps(record, state.iteration + 1) if state.status == RUNNING else ())
    known = record.status == RUNNING or (record.status != "" and record.step in ("", CHILD))
    earlier = bool(record.boundaries)  # the node's files may then be from an earlier entry
    if record.on_stack and known and record.iteration >= 1 and not earlier:  # a handwritten state without commits
        return Position(NodeState(record.iteration - 1), _finished_steps(record, record.iteration))
    return Position(None, _of_entry(record))


def _of_entry(record: NodeRecord) -> tuple[str, ...]:
    """Return the finished steps of a node's entry: ENTER and MEASURE once the top node is measured, else none."""
    entered = record.on_stack and record.iteration == 0 and record.status == RUNNING and not record.parent_label
    return ("ENTER", "MEASURE") if entered and "SENSORS" in record.fresh else ()


def _finished_steps(record: NodeRecord, number: int) -> tuple[str, ...]:
    """Return the finished steps of this iteration.

    rooda deletes a step's files before the step becomes active, so a file that exists was written by that step.
    Without an active step, the files alone decide.
    """
    if record.iteration != number:
        return ()
    if record.step in _BEFORE:
        itself = _ITSELF.get(record.step, ())
        return (*_BEFORE[record.step], *(itself if set(itself) & set(record.fresh) else ()))
    if "CONTROL" not in record.fresh:
        return ("OPEN",)
    return ("OPEN", "CONTROL", "ACT", "LOOP", "CHILD") if "ACT" in record.fresh else ("OPEN", "CONTROL")
