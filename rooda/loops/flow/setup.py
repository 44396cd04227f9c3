"""`rooda flow setup`: asks a few questions and writes flow.yaml and the agent files. What is there stays."""

import os
import re
from typing import NamedTuple

import click

from rooda.base import files
from rooda.errors import OK, RoodaError, UsageProblem
from rooda.loops.flow import topology as flow_topology
from rooda.loops.flow.effects import prompt_text
from rooda.loops.flow.inspect import tree
from rooda.loops.flow.model import FLOW_FILE, RUNS
from rooda.loops.flow.prompts import TARGET, filled
from rooda.loops.flow.yaml import quoted
from rooda.run import questions
from rooda.settings import detect
from rooda.settings.where import where

# The files that `rooda flow setup` writes, as texts.
AGENTS = ".claude/agents"


class Probe(NamedTuple):
    """A sensor to be made."""

    name: str
    command: str


class Plan(NamedTuple):
    """What is to be set up: loops from the outside in."""

    names: list[str]
    limits: list[int]
    inner: list[Probe]
    outer: list[Probe]


def files_of(plan: Plan) -> list[tuple[str, str]]:
    """Paths and texts; flow.yaml is the last."""
    made = {f"{AGENTS}/loop-sensor-{probe.name}.md": _sensor(probe) for probe in (*plan.inner, *plan.outer)}
    for depth, name in enumerate(plan.names):
        kind = "inner" if depth == len(plan.names) - 1 else "outer"
        text = prompt_text(f"template-{kind}-controller.md")
        made[f"{AGENTS}/loop-controller-{name}.md"] = filled(text, {"{id}": name})
    made[f"{AGENTS}/loop-actuator.md"] = prompt_text("template-actuator.md")
    made[FLOW_FILE] = _flow(plan)
    return list(made.items())


def _sensor(probe: Probe) -> str:
    values = {
        "{name}": probe.name,
        "{description}": quoted(f"Runs `{probe.command}` and reports whether it passes."),
        "{target}": quoted(TARGET),
        "{command}": quoted(probe.command),
        "{plain-command}": probe.command.replace("\n", "\n    "),
    }
    return filled(prompt_text("template-sensor.md"), values)


def _flow(plan: Plan) -> str:
    """The topology, nested from the inside out."""
    *outer, inner = zip(plan.names, plan.limits, strict=True)
    rows = _node(inner, plan.inner, ["strategy: direct", f"agent: {AGENTS}/loop-actuator.md"])
    for each in reversed(outer):
        rows = _node(each, plan.outer, ["strategy: composite", "child:", *(f"  {row}" for row in rows)])
    head = "# The topology of the flow; docs/flow.md of rooda describes every key. `rooda flow check` checks it.\n"
    head += "version: 1\ndefaults:\n  termination:\n    on_error: fail-fast\nflow:\n"
    return head + "".join(f"  {row}\n" for row in rows)


def _node(about: tuple[str, int], probes: list[Probe], actuator: list[str]) -> list[str]:
    name, limit = about
    sensors = [f"  - {AGENTS}/loop-sensor-{probe.name}.md" for probe in probes]
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


class Typed(NamedTuple):
    """What was said on the command line; then nothing is asked of it."""

    levels: int | None
    sensors: tuple[str, ...]
    outer: tuple[str, ...]
    yes: bool


@click.command(short_help="Write flow.yaml and its agent files for this project.")
@click.option("--levels", type=click.IntRange(1, 2), metavar="N", help="One loop, or a loop inside another.")
@click.option("--sensor", "sensors", multiple=True, metavar="NAME=COMMAND", help="A sensor; repeatable.")
@click.option("--outer", multiple=True, metavar="NAME=COMMAND", help="A sensor of the outer loop; repeatable.")
@click.option("--demo", metavar="DIR", help="Make a small project with a flow to try, agents included.")
@click.option("-y", "--yes", is_flag=True, help="Ask nothing; take what is proposed.")
@click.pass_context
def setup(
    ctx: click.Context,
    levels: int | None,
    sensors: tuple[str, ...],
    outer: tuple[str, ...],
    demo: str | None,
    yes: bool,
) -> int:
    """Propose sensors for the project in this folder, and write .ai-loop/flow.yaml and .claude/agents/loop-*.md.

    Safe to repeat: a file that is there is never changed. A sensor's name is best without a hyphen: some viewers of the
    commits split it there.
    """
    if demo is not None:
        from rooda.loops.registry import demo_of

        return demo_of("flow")(demo)
    project = where(ctx).workspace
    if os.path.lexists(os.path.join(project, FLOW_FILE)):
        return _there(project)
    plan = asked(project, Typed(levels, sensors, outer, yes))
    made = write(project, plan)
    for name in made:
        click.echo(f"Wrote {name}")
    click.echo("\n".join(tree(flow_topology.load(project).root)))
    if not any(probe for probe in (*plan.inner, *plan.outer)):
        click.echo("WARNING: the flow has no sensors; add some, or it judges blindly", err=True)
    click.echo('Look through the files, commit them, then: rooda flow run "what is to be done"')
    return OK


def _there(project: str) -> int:
    topology = flow_topology.load(project)
    click.echo(f"{FLOW_FILE} is there already; nothing was changed.")
    click.echo("\n".join(tree(topology.root)))
    return OK


def asked(project: str, typed: Typed) -> Plan:
    """What the person says; what is proposed, where nobody does."""
    inner, outer = _probes(typed.sensors), _probes(typed.outer)
    proposed = [] if inner or outer else proposals(project)
    if proposed:
        click.echo("Commands that check this project:")
        for probe in proposed:
            click.echo(f"  {probe.name}: {probe.command}")
    inner = inner or [probe for probe in proposed if _says_yes(typed, f"Sensor {probe.name} ({probe.command})?")]
    if not typed.sensors:
        inner += _more(typed, inner)
    levels = typed.levels or (2 if outer else _levels(typed, 2 if len(inner) > 1 else 1))
    if levels == 1:
        return Plan([_named(typed, "Name of the loop", "main")], [INNER], inner, [])
    names = [_named(typed, "Name of the outer loop", "delivery"), _named(typed, "Name of the inner loop", "implement")]
    outer = outer or [
        Probe(f"all-{probe.name}" if len(inner) == 1 else probe.name, probe.command) for probe in inner[-1:]
    ]
    kept = [probe for probe in inner if probe not in outer] or inner
    return Plan(names, [OUTER, INNER], kept, outer)


def proposals(project: str) -> list[Probe]:
    """A sensor for each command that would be a quality gate."""
    found: dict[str, Probe] = {}
    for command in [command for project_ in detect.gates(project) for command in project_.commands]:
        name = next((name for name, pattern in KNOWN if re.search(pattern, command)), "check")
        number = 1
        while (key := name if number == 1 else f"{name}{number}") in found:
            number += 1
        found[key] = Probe(key, command)
    return sorted(found.values(), key=lambda probe: probe.name.startswith("tests"))


def _probes(words: tuple[str, ...]) -> list[Probe]:
    return [_probe(word) for word in words]


def _probe(word: str) -> Probe:
    name, equals, command = word.partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name.strip()) or not command.strip():
        raise UsageProblem(f"{word!r} is not of the form NAME=COMMAND.", "For example: --sensor tests='pytest -q'")
    return Probe(name.strip(), command.strip())


def _answer(typed: Typed, question: str) -> str:
    """Empty when nobody answers, or nobody is to be asked."""
    return "" if typed.yes else (questions.typed_answer(f"{question} ") or "").strip()


def _says_yes(typed: Typed, question: str) -> bool:
    return _answer(typed, f"{question} [Y/n]").lower() not in ("n", "no")


def _more(typed: Typed, known: list[Probe]) -> list[Probe]:
    found: list[Probe] = []
    while answer := _answer(typed, "Another sensor, as NAME=COMMAND (empty: none)?"):
        try:
            probe = _probe(answer)
        except UsageProblem as problem:
            click.echo(problem.what, err=True)
            continue
        if probe.name in [each.name for each in (*known, *found)]:
            click.echo(f"There is a sensor {probe.name} already.", err=True)
            continue
        found.append(probe)
    return found


def _levels(typed: Typed, proposed: int) -> int:
    answer = _answer(typed, f"One loop (1), or a loop inside another (2)? [{proposed}]")
    return int(answer) if answer in ("1", "2") else proposed


def _named(typed: Typed, question: str, proposed: str) -> str:
    while (answer := _answer(typed, f"{question}? [{proposed}]")) and not flow_topology.ID.fullmatch(answer):
        click.echo("A name is made of letters, digits, '.', '_', '-'.", err=True)
    return answer or proposed


def write(project: str, plan: Plan) -> list[str]:
    """The files that were not there; flow.yaml last, so that a setup that was cut short is simply repeated."""
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
