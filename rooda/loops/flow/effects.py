"""The world of a flow: what each step of its loop does, bound to one session."""

import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from rooda.agents.records import Agent
from rooda.base import files
from rooda.base.dirs import shipped
from rooda.errors import Interrupted
from rooda.loops.flow import artifacts as flow_artifacts
from rooda.loops.flow import contract, prompts
from rooda.loops.flow.artifacts import ACTUATOR, CONTROLLER, RESULT, Files, header, put
from rooda.loops.flow.calls import Calls, Request
from rooda.loops.flow.contract import Broken
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
    FlowWorld,
    Job,
    Node,
    NodeFailed,
    Reading,
    artifacts,
    label,
    sensor_file,
)
from rooda.loops.flow.prompts import Told
from rooda.loops.flow.yaml import lenient
from rooda.run.records import Command, Ran
from rooda.run.session import Session
from rooda.run.setup import Setup

CHEAP, DEEP, MAKER = "haiku", "opus", "sonnet"  # model words of sensors, controllers, actuators


class Ways(NamedTuple):
    """How this run does what can be done in several ways."""

    setup: Setup
    agent: Callable[[str, dict[str, Any], str], Agent]  # kind of call, front matter, model word
    native: bool = False
    sensor_timeout: float = 0.0
    loop: Callable[[Session, Job, int, str], Action] | None = None  # runs another kind of loop with this plan


class Bench(NamedTuple):
    """What the steps work with."""

    session: Session
    place: Files
    calls: Calls
    ways: Ways

    def text(self, path: str) -> str:
        """An agent file of the flow; NodeFailed when it is gone."""
        try:
            return files.text(os.path.join(self.place.project, path))
        except OSError as problem:
            raise NodeFailed(f"{path} can't be read: {problem.strerror}") from None

    def told(self, node: Node) -> list[Told]:
        folder = artifacts(self.place.run, node.path)
        return [
            Told(sensor.name, prompts.output_of(folder, sensor.name), self.text(sensor.path)) for sensor in node.sensors
        ]


def world_of(session: Session, place: Files, guard: Guard, ways: Ways) -> FlowWorld:
    bench = Bench(session, place, Calls(session, ways.setup, place, guard), ways)
    return FlowWorld(
        signalled=session.signalled,
        emit=session.emit,
        enter=lambda job: flow_artifacts.enter(place, job.node, session.clean(job.setpoint)),
        stubs=lambda job: flow_artifacts.stub(place, job.node),
        measure=partial(measured, bench),
        readings=partial(readings, place),
        open=lambda job, number: flow_artifacts.update(place, job.node, number, "running", session.clean(job.setpoint)),
        control=partial(controlled, bench),
        act=partial(acted, bench),
        result=partial(result, place),
    )


def prompt_text(name: str) -> str:
    return files.text(shipped("prompts", f"flow/{name}"))


def measured(bench: Bench, job: Job, number: int) -> tuple[Reading, ...]:
    """One call for all sensors of the node; none where it has none."""
    node, place = job.node, bench.place
    if not node.sensors:
        return ()
    outputs = [place.of_node(node.path, sensor_file(sensor.name)) for sensor in node.sensors]
    if bench.ways.native:
        told = bench.told(node)
        work = partial(measure, bench.session, told, place.project, number, bench.ways.sensor_timeout)
        bench.calls.guarded(f"sensors of {node.path}", outputs, False, work)
        tag = label(job.parent_label, number)
        bench.calls.keep("sensor", node.path, tag, f"{number:04d}-sensor-{tag}", outputs)
        return sensor_files(place, node)
    return bench.calls.make(
        Request(
            kind="sensor",
            who=f"sensors of {node.path}",
            path=node.path,
            label=label(job.parent_label, number),
            number=number,
            agent=bench.ways.agent("sensor", lenient(bench.text(node.sensors[0].path)), CHEAP),
            prompt=lambda: prompts.sensors(prompt_text("sensors.md"), bench.told(node)),
            outputs=outputs,
            judge=partial(sensor_files, place, node),
            answer=lambda said: contract.reading(said, node.sensors[0].name),
        )
    )


def readings(place: Files, job: Job) -> tuple[Reading, ...]:
    """After a failure: a file that is not there, or not what it should be, is no reading."""
    now = flow_artifacts.readings(place, job.node)
    return tuple(found or Reading(sensor.name, PENDING) for sensor, found in zip(job.node.sensors, now, strict=True))


def sensor_files(place: Files, node: Node) -> tuple[Reading, ...]:
    """What the files of the sensors say; Broken if one says nothing that counts."""
    found = []
    for sensor in node.sensors:
        name = sensor_file(sensor.name)
        found.append(_judged(place, node, name, partial(contract.reading, name=sensor.name)))
    return tuple(found)


def _judged(place: Files, node: Node, name: str, judge: Callable[[str], Any]) -> Any:
    said = flow_artifacts.text(place.of_node(node.path, name))
    if said is None:
        raise Broken(f"{name} was not written")
    try:
        return judge(said)
    except Broken as problem:
        raise Broken(f"{name} {problem}") from None


def controlled(bench: Bench, job: Job, number: int) -> Decision:
    """The controller's decision. It is a cheap question when every sensor passes."""
    node, place = job.node, bench.place
    text, told = bench.text(node.controller), bench.told(node)
    keys = lenient(text)
    now = flow_artifacts.readings(place, node)
    passing = contract.all_pass([each for each in now if each]) and None not in now
    return bench.calls.make(
        Request(
            kind="controller",
            who=node.controller,
            path=node.path,
            label=label(job.parent_label, number),
            number=number,
            agent=bench.ways.agent("controller", keys, CHEAP if passing else str(keys.get("model") or DEEP)),
            prompt=lambda: (
                prompts.controller(prompt_text("controller.md"), text, node, place.run, told)
                + (prompts.in_full(job.setpoint) if bench.session.clean(job.setpoint) != job.setpoint else "")
            ),
            outputs=[place.of_node(node.path, CONTROLLER)],
            judge=partial(decision, place, node),
            answer=lambda said: contract.decision(said, _needs_plan(node)),
        )
    )


def decision(place: Files, node: Node) -> Decision:
    found: Decision = _judged(place, node, CONTROLLER, partial(contract.decision, needs_plan=_needs_plan(node)))
    return found


def _needs_plan(node: Node) -> bool:
    return node.child is not None or node.strategy == LOOP


def acted(bench: Bench, job: Job, number: int, decided: Decision) -> Action:
    """The actuator does what the controller's file says; it may edit, and nothing else."""
    node, place = job.node, bench.place
    if node.strategy == LOOP:
        return _looped(bench, job, number, decided)
    text = bench.text(node.agent)
    folder = artifacts(place.run, node.path)
    done = bench.calls.make(
        Request(
            kind="actuator",
            who=node.agent,
            path=node.path,
            label=label(job.parent_label, number),
            number=number,
            agent=bench.ways.agent("actuator", lenient(text), MAKER),
            prompt=lambda: prompts.actuator(
                prompt_text("actuator.md"), text, prompt_text("actuator-reminder.md"), folder
            ),
            outputs=[place.of_node(node.path, ACTUATOR)],
            judge=partial(action, place, node),
            may_edit=True,
            answer=contract.require_report,
        )
    )
    return done._replace(text=bench.session.clean(done.text))


def action(place: Files, node: Node) -> Action:
    found: Action = _judged(place, node, ACTUATOR, contract.action)
    return found


def _looped(bench: Bench, job: Job, number: int, decided: Decision) -> Action:
    """Another kind of loop works on the plan; rooda writes down what became of it."""
    assert bench.ways.loop is not None, "checked before the start"
    output = bench.place.of_node(job.node.path, ACTUATOR)
    work = partial(bench.ways.loop, bench.session, job, number, decided.plan)
    done = bench.calls.guarded(f"the loop of {job.node.path}", [output], True, work, may_commit=True)
    flow_artifacts.put(output, f"# Actuator Output\n\n## What Was Done\n\n{done.text}\n")
    return done


def result(place: Files, job: Job) -> Action:
    """What the node inside came to, by its own result file; NodeFailed if that can't be read."""
    keys = flow_artifacts.read_state(flow_artifacts.text(place.of_node(job.node.path, RESULT)))
    status, rounds = keys.get("status"), keys.get("iterations-executed")
    if status not in STATUSES or type(rounds) is not int:
        raise NodeFailed(f"the result of {job.node.id} can't be read")
    if status == ERROR:
        raise NodeFailed(f"{job.node.id} ended with an error")
    return Action(f"{job.node.id}: {status} after {rounds} iterations")


# Sensors measured by rooda itself: the command of each agent file is run, exit 0 is a pass.
KEPT = 16_384  # bytes of output that go into a sensor's file


def command_of(text: str) -> str:
    """`command:` of the front matter, else the block behind "Run the following command:"; nothing if there is none."""
    if said := lenient(text).get("command"):
        return str(said).strip()
    found = re.search(r"run the following command:?\**[ \t]*\n\s*\n?((?:(?: {4}|\t)[^\n]*\n?)+)", text, re.I)
    if found:
        return "\n".join(row.strip() for row in found[1].splitlines()).strip()
    fenced = re.search(r"run the following command:?\**[ \t]*\n\s*(`{3,})\w*\n(.*?)\n[ \t]*+\1", text, re.I | re.DOTALL)
    return fenced[2].strip() if fenced else ""


def measure(session: Session, told: Sequence[Told], project: str, number: int, timeout: float) -> None:
    """One after the other, in the flow's order."""
    for place, each in enumerate(told, 1):
        command = command_of(each.text)
        if not command:
            raise NodeFailed(f"the sensor {each.name} names no command for rooda to run")
        ran = session.run((Command(command, f"sensor-{place}-{each.name}", timeout, number),))[0]
        if ran.ended == "interrupted":
            raise Interrupted(session.signalled())
        put(os.path.join(project, each.output), session.clean(report(each.name, command, ran)))


def report(name: str, command: str, ran: Ran) -> str:
    """The sensor's file, as an agent would write it."""
    try:
        output = files.tail(ran.output, KEPT).decode("utf-8", "replace")
    except OSError:
        output = ""
    how = "" if ran.ended == "exit" else f" ({ran.ended})"
    left_out = f"(the last {KEPT} of {ran.size} bytes)\n\n" if ran.size > KEPT else ""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", output + command)), default=0))
    return (
        header({"sensor": name, "status": PASS if ran.code == 0 and ran.ended == "exit" else FAIL})
        + f"# Sensor Output: {name}\n\n## Command\n\n{fence}sh\n{command}\n{fence}\n\nExit code: {ran.code}{how}\n\n"
        + f"## Output\n\n{left_out}{fence}\n{output.rstrip()}\n{fence}\n"
    )
