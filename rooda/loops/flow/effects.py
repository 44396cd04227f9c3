"""Implements the effects of a flow's loop for one session: agent calls, commands and files."""

import os
import re
from typing import NamedTuple

from rooda.base import files, workspace_files
from rooda.base.dirs import shipped
from rooda.base.text import counted
from rooda.base.yaml import lenient
from rooda.errors import Interrupted
from rooda.loops.flow import artifacts, contract, prompts
from rooda.loops.flow.agents import FlowAgents, run_loop
from rooda.loops.flow.artifacts import ACTUATOR, RESULT, ActuatorFile, ControllerFile, RunFiles, SensorFiles
from rooda.loops.flow.calls import Calls, Request
from rooda.loops.flow.guard import Guard
from rooda.loops.flow.model import (
    ERROR,
    FAIL,
    LOOP,
    PASS,
    PENDING,
    STATUSES,
    Action,
    Decision,
    Node,
    NodeEntry,
    NodeFailed,
    Reading,
    label,
    limited,
    node_folder,
    sensor_file,
)
from rooda.loops.flow.prompts import SensorPrompt
from rooda.loops.flow.world import FlowWorld
from rooda.run.event_records import Event
from rooda.run.records import Command, CommandResult
from rooda.run.session import Session
from rooda.run.setup import Setup

CHEAP, DEEP, MAKER = "haiku", "opus", "sonnet"  # default models of sensors, controllers and actuators


class CallSettings(NamedTuple):
    """The agents and settings for a run's calls."""

    setup: Setup
    agents: FlowAgents
    native: bool = False  # rooda runs the sensor commands itself
    sensor_timeout: float = 0.0
    stuck_after: int = 0  # iterations without progress that end a node; 0: no limit


class Effects(FlowWorld):
    """The effects of one session. rooda undoes a call's changes to all files but its outputs and those it may edit."""

    def __init__(self, session: Session, run_files: RunFiles, guard: Guard, settings: CallSettings) -> None:
        self._session, self._run_files, self._settings = session, run_files, settings
        self._guard = guard
        self._calls = Calls(session, settings.setup, guard)

    def signalled(self) -> int:
        return self._session.signalled()

    def emit(self, event: Event) -> None:
        self._session.emit(event)

    def limited(self, entry: NodeEntry) -> NodeEntry:
        limit = 0 if entry.inner else int(self._session.inbox.new_limits().get("iterations", 0))
        return entry._replace(node=limited(entry.node, limit))

    def enter(self, entry: NodeEntry) -> None:
        artifacts.enter(self._run_files, entry.node, self._session.clean(entry.setpoint))

    def stubs(self, entry: NodeEntry) -> tuple[Reading, ...]:
        return artifacts.stub(self._run_files, entry.node)

    def open(self, entry: NodeEntry, number: int) -> None:
        artifacts.update(self._run_files, entry.node, number, "running", self._session.clean(entry.setpoint))

    def measure(self, entry: NodeEntry, number: int) -> tuple[Reading, ...]:
        """Run all sensors of the node, in one agent call or natively, and return their readings."""
        node, output = entry.node, SensorFiles(self._run_files, entry.node)
        if not node.sensors:
            return ()
        sensors, who, tag = self._sensors(node), f"sensors of {node.path}", label(entry.parent_label, number)
        if self._settings.native:
            with self._calls.guarded(who, output.paths, False):
                self._run_sensors(sensors, number)
            self._calls.keep("sensor", node.path, tag, f"{number:04d}-sensor-{tag}", output.paths)
            return output.read()
        return self._calls.make(
            Request(
                kind="sensor",
                who=who,
                path=node.path,
                label=tag,
                number=number,
                agent=self._settings.agents.for_call("sensor", lenient(sensors[0].text), CHEAP),
                prompt=prompts.sensors(prompt_text("sensors.md"), sensors),
                output=output,
                again=prompt_text("again.md"),
            )
        )

    def control(self, entry: NodeEntry, number: int) -> Decision:
        """Call the node's controller and return its decision; use the cheap model if all sensors pass."""
        node = entry.node
        text, sensors = self._agent_file(node.controller), self._sensors(node)
        now = artifacts.readings(self._run_files, node)
        passing = contract.all_pass([each for each in now if each]) and None not in now
        word = CHEAP if passing else str(lenient(text).get("model") or DEEP)
        prompt = prompts.controller(prompt_text("controller.md"), text, node, self._run_files.run, sensors)
        if self._session.clean(entry.setpoint) != entry.setpoint:
            prompt += prompts.in_full(entry.setpoint)
        return self._calls.make(
            Request(
                kind="controller",
                who=node.controller,
                path=node.path,
                label=label(entry.parent_label, number),
                number=number,
                agent=self._settings.agents.for_call("controller", lenient(text), word),
                prompt=prompt,
                output=ControllerFile(self._run_files, node),
                again=prompt_text("again.md"),
            )
        )

    def act(self, entry: NodeEntry, number: int, decision: Decision) -> Action:
        """Run the node's actuator, an agent that edits files or another loop, and return a summary of its action."""
        node = entry.node
        if node.strategy == LOOP:
            return self._run_loop(entry, number, decision)
        text, reminder = self._agent_file(node.agent), prompt_text("actuator-reminder.md")
        folder = node_folder(self._run_files.run, node.path)
        done = self._calls.make(
            Request(
                kind="actuator",
                who=node.agent,
                path=node.path,
                label=label(entry.parent_label, number),
                number=number,
                agent=self._settings.agents.for_call("actuator", lenient(text), MAKER),
                prompt=prompts.actuator(prompt_text("actuator.md"), text, reminder, folder, self._failing(node)),
                output=ActuatorFile(self._run_files, node),
                again=prompt_text("again.md"),
                may_edit=True,
            )
        )
        return done._replace(text=self._session.clean(done.text))

    def _failing(self, node: Node) -> str:
        """Return a prompt section with the output of the node's failing sensors."""
        found = artifacts.readings(self._run_files, node)
        names = [each.sensor for each in found if each and each.status == FAIL]
        paths = {name: self._run_files.of_node(node.path, sensor_file(name)) for name in names}
        return prompts.failing({name: artifacts.text(path) or "" for name, path in paths.items()})

    def readings(self, entry: NodeEntry) -> tuple[Reading, ...]:
        pairs = zip(entry.node.sensors, artifacts.readings(self._run_files, entry.node), strict=True)
        return tuple(found or Reading(sensor.name, PENDING) for sensor, found in pairs)

    def tree(self) -> str:
        return self._guard.tree()

    def stuck_after(self) -> int:
        return self._settings.stuck_after

    def result(self, entry: NodeEntry) -> Action:
        return result(self._run_files, entry.node)

    def _run_loop(self, entry: NodeEntry, number: int, decision: Decision) -> Action:
        """Run another kind of loop on the plan and write the actuator's output file."""
        output = self._run_files.of_node(entry.node.path, ACTUATOR)
        with self._calls.guarded(f"the loop of {entry.node.path}", [output], True, may_commit=True):
            done = run_loop(self._session, self._settings.agents.agent, entry.node, number, decision.plan)
        artifacts.write(output, f"# Actuator Output\n\n## What Was Done\n\n{done.text}\n")
        return done

    def _run_sensors(self, sensors: list[SensorPrompt], number: int) -> None:
        """Run the sensor commands one after the other, in the flow's order, and write their output files."""
        for place, each in enumerate(sensors, 1):
            command = command_of(each.text)
            if not command:
                raise NodeFailed(f"the sensor {each.name} defines no command for rooda to run")
            name = f"sensor-{place}-{each.name}"
            ran = self._session.run((Command(command, name, self._settings.sensor_timeout, number),))[0]
            if ran.ended == "interrupted":
                raise Interrupted(self._session.signalled())
            path = os.path.join(self._run_files.project, each.output)
            artifacts.write(path, self._session.clean(sensor_report(each.name, command, ran)))

    def _sensors(self, node: Node) -> list[SensorPrompt]:
        folder = node_folder(self._run_files.run, node.path)
        return [
            SensorPrompt(sensor.name, f"{folder}/{sensor_file(sensor.name)}", self._agent_file(sensor.path))
            for sensor in node.sensors
        ]

    def _agent_file(self, path: str) -> str:
        """Return the text of an agent file; raise NodeFailed if it can't be read."""
        try:
            return workspace_files.text(self._run_files.project, path)
        except OSError as problem:
            raise NodeFailed(f"{path} can't be read: {problem.strerror}") from None


def prompt_text(name: str) -> str:
    """Return the text of a prompt or template shipped with rooda."""
    return files.text(shipped("prompts", f"flow/{name}"))


def result(run_files: RunFiles, node: Node) -> Action:
    """Return the outcome in an ended node's result file; raise NodeFailed if it is invalid or an error."""
    keys = artifacts.read_state(artifacts.text(run_files.of_node(node.path, RESULT)))
    status, rounds = keys.get("status"), keys.get("iterations-executed")
    if status not in STATUSES or type(rounds) is not int:
        raise NodeFailed(f"the result of {node.id} can't be read")
    if status == ERROR:
        raise NodeFailed(f"{node.id} ended with an error")
    return Action(f"{node.id}: {status} after {counted(rounds, 'iteration')}")


# Native sensors: rooda itself runs the command in each agent file; exit code 0 means pass.
KEPT = 16_384  # bytes of output kept in a sensor's file


def command_of(text: str) -> str:
    """Return the sensor's command: `command` in the front matter, else the block after "Run the following command:"."""
    if command := lenient(text).get("command"):
        return str(command).strip()
    found = re.search(r"run the following command:?\**[ \t]*\n\s*\n?((?:(?: {4}|\t)[^\n]*\n?)+)", text, re.I)
    if found:
        return "\n".join(row.strip() for row in found[1].splitlines()).strip()
    fenced = re.search(r"run the following command:?\**[ \t]*\n\s*(`{3,})\w*\n(.*?)\n[ \t]*+\1", text, re.I | re.DOTALL)
    return fenced[2].strip() if fenced else ""


def sensor_report(name: str, command: str, ran: CommandResult) -> str:
    """Return a native sensor's output file, in the format that an agent would write."""
    try:
        output = files.tail(ran.output, KEPT).decode("utf-8", "replace")
    except OSError:
        output = ""
    how = "" if ran.ended == "exit" else f" ({ran.ended})"
    left_out = f"(the last {KEPT} of {ran.size} bytes)\n\n" if ran.size > KEPT else ""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", output + command)), default=0))
    return (
        artifacts.header({"sensor": name, "status": PASS if ran.code == 0 and ran.ended == "exit" else FAIL})
        + f"# Sensor Output: {name}\n\n## Command\n\n{fence}sh\n{command}\n{fence}\n\nExit code: {ran.code}{how}\n\n"
        + f"## Output\n\n{left_out}{fence}\n{output.rstrip()}\n{fence}\n"
    )
