"""`rooda flow status [RUN]`: how a run stands, from its files and commits. Starts nothing, changes nothing."""

import os
from typing import TYPE_CHECKING, Any

import click

from rooda.base import files
from rooda.base.json import Json
from rooda.base.text import escape_line
from rooda.errors import OK
from rooda.git.repository import Repo
from rooda.loops.flow import artifacts as flow_artifacts
from rooda.loops.flow import commits, contract, kind, repository
from rooda.loops.flow import runs as flow_runs
from rooda.loops.flow import topology as flow_topology
from rooda.loops.flow.artifacts import CONTROLLER, ORCHESTRATOR, RunFiles
from rooda.loops.flow.commits import Logged
from rooda.loops.flow.model import COMPOSITE, DIRECT, ERROR, RUNNING, Node, artifacts, chain, run_folder
from rooda.loops.flow.runs import Known
from rooda.loops.flow.yaml import front_matter
from rooda.loops.options import items, place_of_tab
from rooda.settings.where import Where, where

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


NONE = "No flow has run here."
LAST = 20  # commits


def tab_runs(ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    runs = flow_runs.known(repository.found(place_of_tab(ctx).workspace))
    return items(((run.id, run.status) for run in runs), incomplete)


@click.command(short_help="How a run stands: nodes, readings, decisions, commits.")
@click.argument("name", required=False, metavar="[RUN]", shell_complete=tab_runs)
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
@click.pass_context
def status(ctx: click.Context, name: str | None, as_json: bool) -> int:
    """The run RUN; without it the one that is at work, the one that is open, or the newest."""
    repo, run = asked_for(ctx, name)
    if run is None:
        click.echo("[]" if as_json else NONE)
        return OK
    facts = of_run(repo, run, kind.pid_of(repo, run.id))
    if as_json:
        import json

        click.echo(json.dumps(facts, indent=2, ensure_ascii=False, default=str))
    else:
        click.echo("\n".join(map(escape_line, lines(facts))))
    return OK


def asked_for(ctx: click.Context, name: str | None) -> tuple[Repo, Known | None]:
    """The repository, and the run RUN of it; without RUN the one that is open, or the newest; None: none at all."""
    repo = repository.found(where(ctx).workspace)
    runs = flow_runs.known(repo)
    if name is not None:
        return repo, flow_runs.named(runs, name)
    return repo, next(iter([*flow_runs.running(runs), *runs]), None)


def of_run(repo: Repo, run: Known, pid: int | None) -> Json:
    """Everything that is to be told of a run."""
    logged = [each for each in commits.history(repo, run.root, run.id, run.tip) if each.boundary]
    latest = {each.boundary.path: each.boundary for each in logged if each.boundary}
    stack = [str(path) for path in run.state["execution-stack"]]
    paths = sorted({*latest, *stack, *_folders(repo, run)}, key=lambda path: path.count("/"))
    return {
        **{key.replace("-", "_"): run.state[key] for key in flow_runs.KEYS},
        "running": pid is not None,
        "pid": pid,
        "active_step": run.state.get("active-step", ""),
        "nodes": [_node(repo, run, path, latest.get(path)) for path in paths],
        "commits": [
            {"commit": each.commit, "subject": _subject(each.boundary)} for each in logged[-LAST:] if each.boundary
        ],
    }


def _folders(repo: Repo, run: Known) -> list[str]:
    """Every node of the run, also those that have not been entered; on another branch git knows only the others."""
    project = _project(repo, run)
    top = os.path.join(project, run_folder(run.id), "nodes")
    return [os.path.relpath(folder, top) for folder, _, _ in os.walk(top) if folder != top] if project else []


def _project(repo: Repo, run: Known) -> str:
    """Below which the run's files are; "" where only git has them."""
    return repo.workspace if run.here else run.aside.root if run.aside else ""


def _subject(boundary: Any) -> str:
    from rooda.loops.flow.boundaries import subject

    return subject(boundary)


def _node(repo: Repo, run: Known, path: str, boundary: Any) -> Json:
    keys, body = front_matter(_file(repo, run, path, ORCHESTRATOR))
    decision, text = front_matter(_file(repo, run, path, CONTROLLER))
    return {
        "node_path": path,
        "iteration": (keys or {}).get("iteration"),
        "max_iterations": (keys or {}).get("max-iterations"),
        "status": (keys or {}).get("status"),
        "task": body.partition("# Task (setpoint)")[2].strip(),
        "label": boundary.label if boundary else None,
        "sensors": {each.sensor: each.status for each in boundary.state.readings} if boundary else {},
        "target_met": (decision or {}).get("target-met"),
        "plan": contract.section(text, "action plan"),
    }


def _file(repo: Repo, run: Known, path: str, name: str) -> str:
    if project := _project(repo, run):
        return flow_artifacts.text(RunFiles(project, run.id).of_node(path, name)) or ""
    data = commits.committed(repo, run.tip, f"{artifacts(run.id, path)}/{name}")
    return files.to_text(data or b"")


def lines(facts: Json) -> list[str]:
    """The same for people."""
    rows = [
        f"{facts['run_id']}: {_word(facts)}",
        f"  task: {facts['task']}",
        f"  branch: {facts['branch']}",
        f"  base branch: {facts['base_branch']}",
        f"  active node: {facts['active_node_path']}" + (f" ({facts['active_step']})" if facts["active_step"] else ""),
        f"  execution stack: {', '.join(map(str, facts['execution_stack']))}",
        f"  files: {run_folder(facts['run_id'])}",
        "  nodes:",
    ]
    for node in facts["nodes"]:
        rows += _lines_of_node(node)
    rows += ["  commits:", *(f"    {each['commit'][:10]} {each['subject']}" for each in facts["commits"])]
    if facts["status"] in (RUNNING, ERROR) and not facts["running"]:
        rows.append(f"  go on with: rooda flow resume {facts['run_id']}")
    return rows


def _lines_of_node(node: Json) -> list[str]:
    margin = "  " * (2 + node["node_path"].count("/"))
    name = node["node_path"].rpartition("/")[2]
    sensors = ", ".join(f"{each}: {status}" for each, status in node["sensors"].items()) or "none"
    met = {True: "target met", False: "target not met"}.get(node["target_met"], "none yet")
    plan = next((row.strip() for row in node["plan"].splitlines() if row.strip()), "")
    if node["iteration"] is None:
        return [f"{margin}{name}: not entered yet"]
    return [
        f"{margin}{name}: iteration {node['iteration']}/{node['max_iterations']}, {node['status']}",
        f"{margin}  last readings: {sensors}",
        f"{margin}  last decision: {met}" + (f"; plan: {plan[:100]}" if plan and node["target_met"] is False else ""),
    ]


def _word(facts: Json) -> str:
    if facts["running"]:
        return f"running (pid {facts['pid']})"
    open_still = facts["status"] == RUNNING
    return str(facts.get("standing", "running (interrupted)") if open_still else facts["status"])


# `rooda flow check`: the topology as a tree, or everything that is wrong with it. Starts nothing.


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
    from rooda.loops import configuration
    from rooda.loops.flow import agents
    from rooda.loops.flow.yaml import lenient
    from rooda.settings.setup import setup

    found = configuration.load(here.workspace, here.config)
    made, look = setup(found, "flow", {})
    if made.agent is None:
        return ["no agent is configured; a run needs one: [flow] agent, or --agent, or --ai-cmd"]
    words: dict[str, Any] = {"haiku": 1, "sonnet": 1}
    for node in chain(root):
        words[str(lenient(files.text(f"{here.workspace}/{node.controller}")).get("model") or "opus")] = 1
    return agents.warnings(look, made.agent, list(words))


# `rooda flow log [RUN]`: the commits of a run as a tree.


@click.command(short_help="The commits of a run as a tree.")
@click.argument("name", required=False, metavar="[RUN]", shell_complete=tab_runs)
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
@click.pass_context
def log(ctx: click.Context, name: str | None, as_json: bool) -> int:
    """Every boundary of RUN, oldest first: inner nodes stand below the iteration of their parent."""
    repo, run = asked_for(ctx, name)
    if run is None:
        click.echo("[]" if as_json else NONE)
        return OK
    logged = commits.history(repo, run.root, run.id, run.tip)
    if as_json:
        import json

        click.echo(
            json.dumps([facts for each in logged if (facts := _boundary_facts(each))], indent=2, ensure_ascii=False)
        )
        return OK
    click.echo(f"{run.id} on {run.branch}: {run.status}")
    for each in logged:
        if each.boundary:
            click.echo(escape_line(_row(each)))
    return OK


def _boundary_facts(logged: Logged) -> Json:
    found = logged.boundary
    if found is None:
        return {}
    return {
        "commit": logged.commit,
        "node_path": found.path,
        "level": found.path.count("/"),
        "iteration": found.label,
        "status": found.state.status,
        "target_met": found.state.status == "complete",
        "sensors": {reading.sensor: reading.status for reading in found.state.readings},
        "summary": found.state.summary,
        "action": found.state.action,
    }


def _row(logged: Logged) -> str:
    facts = _boundary_facts(logged)
    name = facts["node_path"].rpartition("/")[2]
    sensors = ", ".join(f"{each}: {status}" for each, status in facts["sensors"].items())
    end = "" if facts["status"] == "running" else f"  [{facts['status']}]"
    where = "  " * (1 + facts["level"])
    return f"{where}{name} {facts['iteration']} — {facts['summary']}{end}" + (f"  ({sensors})" if sensors else "")
