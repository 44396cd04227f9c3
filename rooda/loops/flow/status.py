"""Prints the output of `rooda flow status`, `log` and `check`, as text or JSON."""

import os

from rooda.base import files
from rooda.base.json import Json
from rooda.base.text import escape_line
from rooda.base.yaml import front_matter
from rooda.errors import OK
from rooda.git.repository import Repo
from rooda.loops.flow import agents, artifacts, commits, contract, kind, repository, runs, topology
from rooda.loops.flow.artifacts import CONTROLLER, ORCHESTRATOR, RunFiles
from rooda.loops.flow.boundaries import Boundary, subject
from rooda.loops.flow.commits import LoggedCommit
from rooda.loops.flow.events import KIND
from rooda.loops.flow.model import COMPOSITE, DIRECT, ERROR, LIMIT, RUNNING, Node, chain, node_folder, run_folder
from rooda.loops.flow.runs import FlowRun
from rooda.loops.overview import Overview, for_people
from rooda.loops.overview import as_json as as_objects
from rooda.run.ended import of_file
from rooda.run.history import state_of
from rooda.settings.where import Where
from rooda.views.say import say

NONE = "No flow has run here."
LAST = 20  # commits


def show_run(where: Where, name: str | None, as_json: bool) -> int:
    repo, run = _find_run(where, name)
    if run is None:
        say("[]" if as_json else NONE)
        return OK
    facts = run_facts(repo, run, kind.pid_of(repo, run.id))
    if as_json:
        _say_json(as_objects(where, KIND.name, [facts]))
    else:
        say("\n".join(map(escape_line, lines(for_people(*Overview(where).found(KIND.name, facts))))))
    return OK


def _state(where: Where, facts: Json) -> str:
    return state_of(where.workspace, facts["run_id"], KIND.name, facts)


def show_log(where: Where, name: str | None, as_json: bool) -> int:
    repo, run = _find_run(where, name)
    if run is None:
        say("[]" if as_json else NONE)
        return OK
    boundaries = [each for each in commits.history(repo, run.root, run.id, run.tip) if each.boundary]
    if as_json:
        _say_json([commit_facts(each) for each in boundaries])
        return OK
    pid = kind.pid_of(repo, run.id)
    facts = {"run_id": run.id, "status": run.status, "running": pid is not None, "pid": pid}
    say(f"{run.id} on {run.branch}: {_state(where, facts)}")
    for each in boundaries:
        say(escape_line(_commit_line(each)))
    return OK


def show_topology(where: Where, as_json: bool) -> int:
    flow = topology.load(where.workspace)
    warnings = [*flow.warnings, *agents.check(where, flow.root)]
    if as_json:
        _say_json({"flow": [_topology_facts(node) for node in chain(flow.root)], "warnings": warnings})
        return OK
    for row in tree(flow.root):
        say(row)
    for text in warnings:
        say(f"WARNING: {text}", to_stderr=True)
    return OK


def _say_json(value: object) -> None:
    import json

    say(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def _find_run(where: Where, name: str | None) -> tuple[Repo, FlowRun | None]:
    """Return the repository and the run NAME, else the open run, else the newest; None if there is no run."""
    repo = repository.find(where.workspace)
    known = runs.find_all(repo)
    if name is not None:
        return repo, runs.find(known, name)
    return repo, next(iter([*runs.open_runs(known), *known]), None)


def run_facts(repo: Repo, run: FlowRun, pid: int | None) -> Json:
    """Return a run's status as JSON, from its files and commits; `pid` is the process that is working on it."""
    logged = [each for each in commits.history(repo, run.root, run.id, run.tip) if each.boundary]
    latest = {each.boundary.path: each.boundary for each in logged if each.boundary}
    stack = [str(path) for path in run.state["execution-stack"]]
    paths = sorted({*latest, *stack, *_folders(repo, run)}, key=lambda path: path.count("/"))
    return {
        **{key.replace("-", "_"): run.state[key] for key in runs.KEYS},
        "running": pid is not None,
        "pid": pid,
        "active_step": run.state.get("active-step", ""),
        "nodes": [_node_facts(repo, run, path, latest.get(path)) for path in paths],
        "commits": [
            {"commit": each.commit, "subject": subject(each.boundary)} for each in logged[-LAST:] if each.boundary
        ],
    }


def _folders(repo: Repo, run: FlowRun) -> list[str]:
    """Return the paths of all nodes that have a folder, entered or not; [] if only git has the run's files."""
    project = _project(repo, run)
    top = os.path.join(project, run_folder(run.id), "nodes")
    return [os.path.relpath(folder, top) for folder, _, _ in os.walk(top) if folder != top] if project else []


def _project(repo: Repo, run: FlowRun) -> str:
    """Return the folder that contains the run's `.ai-loop`; "" if only git has its files."""
    return repo.workspace if run.in_work_tree else run.parked.root if run.parked else ""


def _node_facts(repo: Repo, run: FlowRun, path: str, boundary: Boundary | None) -> Json:
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


def _file(repo: Repo, run: FlowRun, path: str, name: str) -> str:
    if project := _project(repo, run):
        return artifacts.text(RunFiles(project, run.id).of_node(path, name)) or ""
    data = commits.committed(repo, run.tip, f"{node_folder(run.id, path)}/{name}")
    return files.to_text(data or b"")


def lines(facts: Json) -> list[str]:
    """Format a run's status as lines of text."""
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
    if facts["status"] in (RUNNING, ERROR, LIMIT) and not facts["running"]:
        resume = facts.get("resume") or f"rooda flow resume {facts['run_id']}"
        rows.append(f"  resume with: {resume}")
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
    word = str(facts.get("shown_status") or of_file(facts["status"]))
    return f"{word} (pid {facts['pid']})" if facts["running"] else word


def tree(root: Node) -> list[str]:
    """Format the topology as lines: each node with its sensors, controller and actuator."""
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


def _topology_facts(node: Node) -> Json:
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


def commit_facts(logged: LoggedCommit) -> Json:
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


def _commit_line(logged: LoggedCommit) -> str:
    facts = commit_facts(logged)
    name = facts["node_path"].rpartition("/")[2]
    sensors = ", ".join(f"{each}: {status}" for each, status in facts["sensors"].items())
    end = "" if facts["status"] == "running" else f"  [{facts['status']}]"
    margin = "  " * (1 + facts["level"])
    return f"{margin}{name} {facts['iteration']} — {facts['summary']}{end}" + (f"  ({sensors})" if sensors else "")
