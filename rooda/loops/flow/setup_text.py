"""The files that `rooda flow setup` writes, as texts."""

from typing import NamedTuple

from rooda.loops.flow.effects import prompt_text
from rooda.loops.flow.flow_labels import FLOW_FILE
from rooda.loops.flow.prompts import TARGET, filled
from rooda.loops.flow.yaml import quoted

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
