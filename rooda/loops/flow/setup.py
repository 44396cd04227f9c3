"""`rooda flow setup`: asks a few questions, then writes flow.yaml and the agent files, but keeps existing files."""

import os
import re
from typing import NamedTuple

from rooda.base import files
from rooda.base.yaml import quoted
from rooda.errors import OK, RoodaError, UsageProblem
from rooda.loops.flow import topology as flow_topology
from rooda.loops.flow.effects import prompt_text
from rooda.loops.flow.model import FLOW_FILE, RUNS
from rooda.loops.flow.prompts import TARGET, filled
from rooda.loops.flow.status import tree
from rooda.run import questions
from rooda.settings import detect
from rooda.views.say import say

AGENTS = ".claude/agents"


class NewSensor(NamedTuple):
    """A sensor to create."""

    name: str
    command: str


class Plan(NamedTuple):
    """The flow to create; loops are listed outermost first."""

    names: list[str]
    limits: list[int]
    inner: list[NewSensor]
    outer: list[NewSensor]


def files_of(plan: Plan) -> list[tuple[str, str]]:
    """Return the path and text of each file to write; flow.yaml is the last."""
    made = {f"{AGENTS}/loop-sensor-{sensor.name}.md": _sensor(sensor) for sensor in (*plan.inner, *plan.outer)}
    for depth, name in enumerate(plan.names):
        kind = "inner" if depth == len(plan.names) - 1 else "outer"
        text = prompt_text(f"template-{kind}-controller.md")
        made[f"{AGENTS}/loop-controller-{name}.md"] = filled(text, {"{id}": name})
    made[f"{AGENTS}/loop-actuator.md"] = prompt_text("template-actuator.md")
    made[FLOW_FILE] = _flow(plan)
    return list(made.items())


def _sensor(sensor: NewSensor) -> str:
    values = {
        "{name}": sensor.name,
        "{description}": quoted(f"Runs `{sensor.command}` and reports whether it passes."),
        "{target}": quoted(TARGET),
        "{command}": quoted(sensor.command),
        "{plain-command}": sensor.command.replace("\n", "\n    "),
    }
    return filled(prompt_text("template-sensor.md"), values)


def _flow(plan: Plan) -> str:
    """Return the text of flow.yaml, built from the innermost loop outwards."""
    *outer, inner = zip(plan.names, plan.limits, strict=True)
    rows = _node(inner, plan.inner, ["strategy: direct", f"agent: {AGENTS}/loop-actuator.md"])
    for each in reversed(outer):
        rows = _node(each, plan.outer, ["strategy: composite", "child:", *(f"  {row}" for row in rows)])
    head = "# The topology of the flow. `rooda flow check` checks it; every key: docs/flow.md in rooda's sources.\n"
    head += "version: 1\ndefaults:\n  termination:\n    on_error: fail-fast\nflow:\n"
    return head + "".join(f"  {row}\n" for row in rows)


def _node(about: tuple[str, int], new_sensors: list[NewSensor], actuator: list[str]) -> list[str]:
    name, limit = about
    sensors = [f"  - {AGENTS}/loop-sensor-{sensor.name}.md" for sensor in new_sensors]
    return [
        f"id: {quoted(name)}",
        "type: loop",
        f"controller: {AGENTS}/loop-controller-{name}.md",
        "actuator:",
        *(f"  {row}" for row in actuator),
        *(["sensors:", *sensors] if sensors else ["sensors: []"]),
        "termination:",
        f"  max_iterations: {limit}",
    ]


INNER, OUTER = 10, 5  # iterations
KNOWN = (
    ("typecheck", r"mypy|tsc|typecheck|pyright"),
    ("lint", r"ruff|lint|vet|clippy|flake8"),
    ("tests", r"test|pytest|spec|unittest|nox|tox|check"),
)


class Answers(NamedTuple):
    """Answers given as command-line options; their questions are not asked."""

    levels: int | None
    sensors: tuple[str, ...]
    outer: tuple[str, ...]
    yes: bool


def set_up(project: str, answers: Answers) -> int:
    """Write the files of a flow for the project, or only show a flow that already exists."""
    if os.path.lexists(os.path.join(project, FLOW_FILE)):
        topology = flow_topology.load(project)
        say(f"{FLOW_FILE} already exists; nothing was changed.")
        say("\n".join(tree(topology.root)))
        return OK
    plan = make_plan(project, answers)
    for name in write(project, plan):
        say(f"Wrote {name}")
    say("\n".join(tree(flow_topology.load(project).root)))
    if not plan.inner and not plan.outer:
        say("WARNING: the flow has no sensors, so its controllers have no measurements", to_stderr=True)
    say('Review the files, commit them, then: rooda flow run "your task"')
    return OK


def make_plan(project: str, answers: Answers) -> Plan:
    """Build the plan from the options; for anything that they leave open, ask the user, proposing defaults."""
    inner, outer = _parse_all(answers.sensors), _parse_all(answers.outer)
    proposed = [] if inner or outer else proposals(project)
    if proposed:
        say("Commands that check this project:")
        for sensor in proposed:
            say(f"  {sensor.name}: {sensor.command}")
    inner = inner or [sensor for sensor in proposed if _says_yes(answers, f"Sensor {sensor.name} ({sensor.command})?")]
    if not answers.sensors:
        inner += _more(answers, inner)
    levels = answers.levels or (2 if outer else _levels(answers, 2 if len(inner) > 1 else 1))
    if levels == 1:
        return Plan([_named(answers, "Name of the loop", "main")], [INNER], inner, [])
    names = [
        _named(answers, "Name of the outer loop", "delivery"),
        _named(answers, "Name of the inner loop", "implement"),
    ]
    outer = outer or [
        NewSensor(f"all-{sensor.name}" if len(inner) == 1 else sensor.name, sensor.command) for sensor in inner[-1:]
    ]
    kept = [sensor for sensor in inner if sensor not in outer] or inner
    return Plan(names, [OUTER, INNER], kept, outer)


def proposals(project: str) -> list[NewSensor]:
    """Return a sensor for each command that rooda would propose as a quality gate."""
    found: dict[str, NewSensor] = {}
    for command in [command for part in detect.gates(project) for command in part.commands]:
        name = next((name for name, pattern in KNOWN if re.search(pattern, command)), "check")
        number = 1
        while (key := name if number == 1 else f"{name}{number}") in found:
            number += 1
        found[key] = NewSensor(key, command)
    return sorted(found.values(), key=lambda sensor: sensor.name.startswith("tests"))


def _parse_all(words: tuple[str, ...]) -> list[NewSensor]:
    return [_parse(word) for word in words]


def _parse(word: str) -> NewSensor:
    name, equals, command = word.partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name.strip()) or not command.strip():
        raise UsageProblem(f"{word!r} is not of the form NAME=COMMAND.", "For example: --sensor tests='pytest -q'")
    return NewSensor(name.strip(), command.strip())


def _answer(answers: Answers, question: str) -> str:
    """Return the user's answer to the question; "" if it is empty, or if --yes was given."""
    return "" if answers.yes else (questions.typed_answer(f"{question} ") or "").strip()


def _says_yes(answers: Answers, question: str) -> bool:
    return _answer(answers, f"{question} [Y/n]").lower() not in ("n", "no")


def _more(answers: Answers, known: list[NewSensor]) -> list[NewSensor]:
    found: list[NewSensor] = []
    while answer := _answer(answers, "Another sensor, as NAME=COMMAND (empty: none)?"):
        try:
            sensor = _parse(answer)
        except UsageProblem as problem:
            say(problem.what, to_stderr=True)
            continue
        if sensor.name in [each.name for each in (*known, *found)]:
            say(f"A sensor {sensor.name} already exists.", to_stderr=True)
            continue
        found.append(sensor)
    return found


def _levels(answers: Answers, proposed: int) -> int:
    answer = _answer(answers, f"One loop (1), or a loop inside another (2)? [{proposed}]")
    return int(answer) if answer in ("1", "2") else proposed


def _named(answers: Answers, question: str, proposed: str) -> str:
    while (answer := _answer(answers, f"{question}? [{proposed}]")) and not flow_topology.ID.fullmatch(answer):
        say("A name may contain only letters, digits, '.', '_' and '-'.", to_stderr=True)
    return answer or proposed


def write(project: str, plan: Plan) -> list[str]:
    """Create the missing files and return their names; flow.yaml is last, so an interrupted setup can be repeated."""
    made = []
    try:
        files.make_folder(os.path.join(project, RUNS))
        for name, text in files_of(plan):
            path = os.path.join(project, name)
            files.make_folder(os.path.dirname(path))
            try:
                files.create(path, files.to_bytes(text))
            except FileExistsError:
                continue
            made.append(name)
    except OSError as problem:
        raise RoodaError(f"{problem.filename or project} can't be written: {problem.strerror}") from None
    return made
