"""The files of a run: `.ai-loop/runs/<run-id>/…`, written and read as the specification names them."""

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from rooda.base import files
from rooda.loops.flow import contract
from rooda.loops.flow.contract import Broken
from rooda.loops.flow.model import Node, Reading, artifacts, run_folder, sensor_file
from rooda.loops.flow.yaml import front_matter, quoted, scalar

ORCHESTRATOR, CONTROLLER, ACTUATOR, RESULT = (
    f"{name}-output.md" for name in ("orchestrator", "controller", "actuator", "result")
)
STATE = "run-state.md"
STEP = "active-step"  # key of the run\'s state


class Quoted(str):
    """A scalar that is written already."""


class Files(NamedTuple):
    """Where a run's files are."""

    project: str
    run: str

    def of_node(self, path: str, name: str) -> str:
        return os.path.join(self.project, artifacts(self.run, path), name)

    @property
    def state(self) -> str:
        return os.path.join(self.project, run_folder(self.run), STATE)


def text(path: str) -> str | None:
    """The file's text; None if it can't be read, or somebody put a link in its place."""
    try:
        return files.to_text(files.read_ours(path))
    except OSError:
        return None


def put(path: str, content: str) -> None:
    """Whole or not at all, also after a power cut."""
    files.make_folder(os.path.dirname(path))
    files.replace(path, files.to_bytes(content))


def sweep(place: Files) -> None:
    """Remove what a killed writer left half written: nothing of it belongs into a commit."""
    for folder, _, names in os.walk(os.path.dirname(place.state)):
        for name in names:
            if re.fullmatch(r".+\.md\.\d+\.tmp", name):
                files.remove(os.path.join(folder, name))


def header(keys: Mapping[str, Any]) -> str:
    """Front matter: lists as blocks, texts plain where YAML gives them back so, else in quotes."""
    rows = []
    for key, value in keys.items():
        if isinstance(value, list | tuple):
            rows.append(f"{key}:")
            rows += [f"  - {scalar(each)}" for each in value]
        else:
            rows.append(f"{key}: {value if isinstance(value, Quoted) else scalar(value)}")
    return "---\n" + "\n".join(rows) + "\n---\n"


def write_state(place: Files, state: Mapping[str, Any]) -> None:
    put(place.state, header({**state, "task": Quoted(quoted(str(state["task"])))}))


def read_state(data: str | None) -> dict[str, Any]:
    """The keys of a run-state; {} if there is none that can be read."""
    keys = front_matter(data)[0] if data is not None else None
    return keys or {}


def enter(place: Files, node: Node, setpoint: str) -> None:
    """Step 0: what a former entry left is gone (git has it), and the setpoint is there."""
    for name in (CONTROLLER, ACTUATOR, RESULT):
        files.remove(place.of_node(node.path, name))
    put(place.of_node(node.path, ORCHESTRATOR), _orchestrator(node, 0, "running") + task_section(setpoint))


def task_section(setpoint: str) -> str:
    return f"\n# Task (setpoint)\n\n{setpoint}\n"


def update(place: Files, node: Node, iteration: int, status: str, setpoint: str) -> None:
    """Only number and status change; the task stays as it was written."""
    path = place.of_node(node.path, ORCHESTRATOR)
    keys, body = front_matter(text(path) or "")
    put(path, _orchestrator(node, iteration, status) + (body if keys is not None else task_section(setpoint)))


def _orchestrator(node: Node, iteration: int, status: str) -> str:
    return header(
        {
            "iteration": iteration,
            "status": status,
            "max-iterations": node.max_iterations,
            "node-path": node.path,
            "parent-node-path": node.parent,
        }
    )


def standing(place: Files, node: Node) -> tuple[int, str]:
    """Iteration and status of the node's own file; -1 and nothing without one."""
    keys = read_state(text(place.of_node(node.path, ORCHESTRATOR)))
    iteration = keys.get("iteration")
    return (iteration, str(keys.get("status", ""))) if type(iteration) is int else (-1, "")


def stub(place: Files, node: Node) -> tuple[Reading, ...]:
    """Nothing is measured yet: a file for each sensor says so."""
    for sensor in node.sensors:
        said = header({"sensor": sensor.name, "status": "pending"})
        said += f"# Sensor Output: {sensor.name}\n"
        said += "No baseline measurement — first iteration after parent controller decision.\n"
        put(place.of_node(node.path, sensor_file(sensor.name)), said)
    return tuple(Reading(sensor.name, "pending") for sensor in node.sensors)


def discard(place: Files, node: Node, name: str) -> None:
    """Remove what is about to be written anew."""
    names = [sensor_file(sensor.name) for sensor in node.sensors] if name == "sensors" else [name] if name else []
    for each in names:
        files.remove(place.of_node(node.path, each))


def readings(place: Files, node: Node) -> tuple[Reading | None, ...]:
    """What each sensor's file says now; None where it says nothing that counts."""
    return tuple(_reading(place.of_node(node.path, sensor_file(sensor.name)), sensor.name) for sensor in node.sensors)


def _reading(path: str, name: str) -> Reading | None:
    try:
        return contract.any_reading(text(path) or "", name)
    except Broken:
        return None
