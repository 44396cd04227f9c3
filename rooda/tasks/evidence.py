"""Writes the body of a pull request, with evidence from the task's loop: gates, criteria, iterations, cost and run."""

from typing import NamedTuple

from rooda.base.text import format_seconds
from rooda.run import history, past_runs
from rooda.run.spending import dollars
from rooda.tasks import orders
from rooda.tasks.model import Task
from rooda.tasks.store import Store

LONGEST = 50_000  # characters of the task's text


class Evidence(NamedTuple):
    """The newest verdict of each gate and criterion of a task's last run, by name."""

    gates: dict[str, str]
    criteria: dict[str, str]


def of_task(store: Store, task: Task) -> Evidence:
    """Read the evidence from the runs in the task's clone. It is empty if there is no clone."""
    workspace = orders.workspace_of(store, task)
    newest = past_runs.newest_run(workspace) if workspace else None
    if newest is None:
        return Evidence({}, {})
    found = Evidence({}, {})
    for event in history.events_of_run(workspace, newest.name, newest.loop, {"gate.ended", "criterion.verified"}):
        if event["event"] == "gate.ended":
            found.gates[str(event.get("gate"))] = str(event.get("verdict"))
        else:
            found.criteria[str(event.get("criterion"))] = str(event.get("verdict"))
    return found


def body(task: Task, found: Evidence) -> str:
    """Return the body of a pull request."""
    cost = "unknown" if task.cost is None else dollars(task.cost)
    rows = [
        ("Task", str(task.id)),
        ("Run", task.session or "-"),
        ("Iterations", str(task.iteration)),
        ("Time", format_seconds(task.seconds)),
        ("Cost", cost),
        *((f"Gate {name}", verdict) for name, verdict in found.gates.items()),
        *((f"Criterion {name}", verdict) for name, verdict in found.criteria.items()),
    ]
    cells = (f"| {_cell(name)} | {_cell(text)} |" for name, text in rows)
    return "\n".join([task.text[:LONGEST], "", "## Evidence", "", "| | |", "| --- | --- |", *cells, ""])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
