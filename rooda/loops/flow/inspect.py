"""`rooda flow status [RUN]`: how a run stands, from its files and commits. Starts nothing, changes nothing."""

import os
from typing import TYPE_CHECKING, Any

import click

from rooda.base import files
from rooda.base.json import Json
from rooda.base.text import visible
from rooda.errors import OK
from rooda.git.repository import Repo
from rooda.loops.flow import artifacts as flow_artifacts
from rooda.loops.flow import commits, contract, kind, repository
from rooda.loops.flow import runs as flow_runs
from rooda.loops.flow.artifacts import CONTROLLER, ORCHESTRATOR, Files
from rooda.loops.flow.flow_labels import artifacts, run_folder
from rooda.loops.flow.model import ERROR, RUNNING
from rooda.loops.flow.runs import Known
from rooda.loops.flow.yaml import front_matter
from rooda.loops.options import items, place_of_tab
from rooda.settings.where import where

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
        click.echo("\n".join(map(visible, lines(facts))))
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
        return flow_artifacts.text(Files(project, run.id).of_node(path, name)) or ""
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
