"""Reads and writes a run's files below `.ai-loop/runs/<run-id>`. The specification defines their format."""

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

from rooda.base import files
from rooda.base.yaml import front_matter, quoted, scalar
from rooda.loops.flow import contract
from rooda.loops.flow.contract import Broken
from rooda.loops.flow.model import LOOP, Action, Decision, Node, Reading, node_folder, run_folder, sensor_file

ORCHESTRATOR, CONTROLLER, ACTUATOR, RESULT = (
    f"{name}-output.md" for name in ("orchestrator", "controller", "actuator", "result")
)
STATE = "run-state.md"
STEP = "active-step"  # a key of run-state.md
LIMIT_KEY = "max-iterations"  # a key of run-state.md: the limit that the user set in place of flow.yaml's

Value = TypeVar("Value")
Value_co = TypeVar("Value_co", covariant=True)


class Quoted(str):
    """A YAML scalar that is already quoted."""


class RunFiles(NamedTuple):
    """Paths of a run's files."""

    project: str
    run: str

    def of_node(self, path: str, name: str) -> str:
        return os.path.join(self.project, node_folder(self.run, path), name)

    @property
    def state(self) -> str:
        return os.path.join(self.project, run_folder(self.run), STATE)


def text(path: str) -> str | None:
    """Return the text of a file; None if it is missing, unreadable or a symbolic link."""
    try:
        return files.to_text(files.read_ours(path))
    except OSError:
        return None


def write(path: str, content: str) -> None:
    """Write a file atomically, creating its folder if needed."""
    files.make_folder(os.path.dirname(path))
    files.replace(path, files.to_bytes(content))


def sweep(run_files: RunFiles) -> None:
    """Delete temporary files left by a killed process, so that no commit contains them."""
    for folder, _, names in os.walk(os.path.dirname(run_files.state)):
        for name in names:
            if re.fullmatch(r".+\.md\.\d+\.tmp", name):
                files.remove(os.path.join(folder, name))


def header(keys: Mapping[str, Any]) -> str:
    """Format keys as YAML front matter, with block lists and as few quotes as possible."""
    rows = []
    for key, value in keys.items():
        if isinstance(value, list | tuple):
            rows.append(f"{key}:")
            rows += [f"  - {scalar(each)}" for each in value]
        else:
            rows.append(f"{key}: {value if isinstance(value, Quoted) else scalar(value)}")
    return "---\n" + "\n".join(rows) + "\n---\n"


def write_state(run_files: RunFiles, state: Mapping[str, Any]) -> None:
    write(run_files.state, state_text(state))


def state_text(state: Mapping[str, Any]) -> str:
    """Format the keys of run-state.md."""
    return header({**state, "task": Quoted(quoted(str(state["task"])))})


def read_state(data: str | None) -> dict[str, Any]:
    """Return the keys of run-state.md; {} if it is missing or invalid."""
    keys = front_matter(data)[0] if data is not None else None
    return keys or {}


def enter(run_files: RunFiles, node: Node, setpoint: str) -> None:
    """Prepare a node's files for a new entry: delete earlier outputs, which remain in git, and write the setpoint."""
    for name in (CONTROLLER, ACTUATOR, RESULT):
        files.remove(run_files.of_node(node.path, name))
    write(run_files.of_node(node.path, ORCHESTRATOR), _orchestrator(node, 0, "running") + task_section(setpoint))


def task_section(setpoint: str) -> str:
    return f"\n# Task (setpoint)\n\n{setpoint}\n"


def update(run_files: RunFiles, node: Node, iteration: int, status: str, setpoint: str) -> None:
    """Write a node's iteration and status; keep the file's task, or write `setpoint` if the file can't be read."""
    path = run_files.of_node(node.path, ORCHESTRATOR)
    keys, body = front_matter(text(path) or "")
    write(path, _orchestrator(node, iteration, status) + (body if keys is not None else task_section(setpoint)))


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


def progress(run_files: RunFiles, node: Node) -> tuple[int, str]:
    """Return the iteration and status in the node's orchestrator file; -1 and "" if there is no file."""
    keys = read_state(text(run_files.of_node(node.path, ORCHESTRATOR)))
    iteration = keys.get("iteration")
    return (iteration, str(keys.get("status", ""))) if type(iteration) is int else (-1, "")


def stub(run_files: RunFiles, node: Node) -> tuple[Reading, ...]:
    """Write an output file with the status `pending` for each sensor; return these readings."""
    for sensor in node.sensors:
        content = header({"sensor": sensor.name, "status": "pending"})
        content += f"# Sensor Output: {sensor.name}\n"
        content += "No baseline measurement — first iteration after parent controller decision.\n"
        write(run_files.of_node(node.path, sensor_file(sensor.name)), content)
    return tuple(Reading(sensor.name, "pending") for sensor in node.sensors)


def discard(run_files: RunFiles, node: Node, name: str) -> None:
    """Delete the node's output file `name`, or all sensor output files if `name` is "sensors"."""
    names = [sensor_file(sensor.name) for sensor in node.sensors] if name == "sensors" else [name] if name else []
    for each in names:
        files.remove(run_files.of_node(node.path, each))


def readings(run_files: RunFiles, node: Node) -> tuple[Reading | None, ...]:
    """Return the reading in each sensor's file; None for a missing or invalid file."""
    paths = [run_files.of_node(node.path, sensor_file(sensor.name)) for sensor in node.sensors]
    return tuple(_reading(path, sensor.name) for path, sensor in zip(paths, node.sensors, strict=True))


def _reading(path: str, name: str) -> Reading | None:
    try:
        return contract.any_reading(text(path) or "", name)
    except Broken:
        return None


# The output files that a call must write.


class Output(Protocol[Value_co]):
    """The output files that one agent call must write."""

    @property
    def paths(self) -> list[str]:
        """Absolute paths of the files."""

    def read(self) -> Value_co:
        """Parse the files; raise Broken if one is missing or breaks its contract."""

    def unwrapped(self, written: str) -> str:
        """Return the text `written` by the agent, without a code fence or chatter around it."""

    def check_printed(self, printed: str) -> None:
        """Raise Broken if the agent's printed output can't replace the missing output file."""


class SensorFiles(NamedTuple):
    """The output files of all sensors of a node."""

    run_files: RunFiles
    node: Node

    @property
    def paths(self) -> list[str]:
        return [self.run_files.of_node(self.node.path, sensor_file(sensor.name)) for sensor in self.node.sensors]

    def read(self) -> tuple[Reading, ...]:
        pairs = zip(self.paths, self.node.sensors, strict=True)
        return tuple(_checked(path, contract.reading, sensor.name) for path, sensor in pairs)

    def unwrapped(self, written: str) -> str:
        return contract.unwrapped(written, contract.FRONT)

    def check_printed(self, printed: str) -> None:
        contract.reading(printed, self.node.sensors[0].name)


class ControllerFile(NamedTuple):
    """The output file of a node's controller."""

    run_files: RunFiles
    node: Node

    @property
    def paths(self) -> list[str]:
        return [self.run_files.of_node(self.node.path, CONTROLLER)]

    @property
    def needs_plan(self) -> bool:
        """True if the actuator is a loop or a child node, which needs the plan as its task."""
        return self.node.child is not None or self.node.strategy == LOOP

    def read(self) -> Decision:
        return _checked(self.paths[0], contract.decision, self.needs_plan)

    def unwrapped(self, written: str) -> str:
        return contract.unwrapped(written, contract.FRONT)

    def check_printed(self, printed: str) -> None:
        contract.decision(printed, self.needs_plan)


class ActuatorFile(NamedTuple):
    """The output file of a node's actuator."""

    run_files: RunFiles
    node: Node

    @property
    def paths(self) -> list[str]:
        return [self.run_files.of_node(self.node.path, ACTUATOR)]

    def read(self) -> Action:
        return _checked(self.paths[0], contract.action)

    def unwrapped(self, written: str) -> str:
        return contract.unwrapped(written, contract.REPORT)

    def check_printed(self, printed: str) -> None:
        contract.require_report(printed)


def _checked(path: str, judge: Callable[..., Value], *args: object) -> Value:
    """Parse a file with `judge`; raise Broken, naming the file, if it is missing or breaks its contract."""
    content, name = text(path), os.path.basename(path)
    if content is None:
        raise Broken(f"{name} was not written")
    try:
        return judge(content, *args)
    except Broken as problem:
        raise Broken(f"{name} {problem}") from None
