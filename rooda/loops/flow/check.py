"""`rooda flow check`: the topology as a tree, or everything that is wrong with it. Starts nothing."""

from typing import Any

import click

from rooda.base.json import Json
from rooda.errors import OK
from rooda.loops.flow import topology as flow_topology
from rooda.loops.flow.flow_labels import chain
from rooda.loops.flow.model import COMPOSITE, DIRECT, Node
from rooda.settings.where import Where, where


@click.command(short_help="The topology as a tree, or all that is wrong with it.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
@click.pass_context
def check(ctx: click.Context, as_json: bool) -> int:
    """Read .ai-loop/flow.yaml and the agent files it names; show the tree, or every fault with its line and node."""
    here = where(ctx)
    topology = flow_topology.load(here.workspace)
    warnings = [*topology.warnings, *_of_agent(here, topology.root)]
    if as_json:
        import json

        nodes = [_facts(node) for node in chain(topology.root)]
        click.echo(json.dumps({"flow": nodes, "warnings": warnings}, indent=2, ensure_ascii=False))
        return OK
    for row in tree(topology.root):
        click.echo(row)
    for text in warnings:
        click.echo(f"WARNING: {text}", err=True)
    return OK


def tree(root: Node) -> list[str]:
    """A row per node, and what belongs to it below."""
    rows = []
    for node in chain(root):
        margin = "  " * node.depth
        cycles = f"{node.max_iterations - 1} full {'cycle' if node.max_iterations == 2 else 'cycles'}"
        rows.append(f"{margin}{node.id}  (max_iterations {node.max_iterations}: {cycles})")
        sensors = ", ".join(sensor.name for sensor in node.sensors) or "none"
        rows += [
            f"{margin}  sensors: {sensors}",
            f"{margin}  controller: {node.controller}",
            f"{margin}  {_actuator(node)}",
        ]
    return rows


def _actuator(node: Node) -> str:
    if node.strategy == DIRECT:
        return f"actuator: {node.agent}"
    if node.strategy == COMPOSITE and node.child:
        return f"actuator: the loop {node.child.id} below"
    keys = dict(node.loop)
    return f"actuator: a loop of the kind {keys.get('loop')} ({keys.get('procedure', 'build')})"


def _facts(node: Node) -> Json:
    return {
        "id": node.id,
        "path": node.path,
        "level": node.depth,
        "controller": node.controller,
        "strategy": node.strategy,
        "agent": node.agent or None,
        "sensors": [sensor._asdict() for sensor in node.sensors],
        "max_iterations": node.max_iterations,
    }


def _of_agent(here: Where, root: Node) -> list[str]:
    """What can't be had with the agent that is configured; nothing where none is."""
    from rooda.base import files
    from rooda.loops.flow import agents
    from rooda.loops.flow.yaml import lenient
    from rooda.settings import layers
    from rooda.settings.setup import setup

    found = layers.load(here.workspace, here.config)
    made, look = setup(found, "flow", {})
    if made.agent is None:
        return ["no agent is configured; a run needs one: [flow] agent, or --agent, or --ai-cmd"]
    words: dict[str, Any] = {"haiku": 1, "sonnet": 1}
    for node in chain(root):
        words[str(lenient(files.text(f"{here.workspace}/{node.controller}")).get("model") or "opus")] = 1
    return agents.warnings(look, made.agent, list(words))
