"""Formats the tasks of the fleet for the board, one task's page, and --json. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from rooda.base.json import Json
from rooda.base.text import escape_line
from rooda.loops.overview import Found
from rooda.tasks import model, view
from rooda.tasks.model import Task
from rooda.views.status_table import Row


class Known(NamedTuple):
    """A task as the fleet's engine, Temporal, knows it."""

    workflow: str
    task: Task
    fleet: Json
    open: bool
    ticket: Json


def shown(known: Known) -> Task:
    """Return the task for the board; if its agent asked a question, the reason is the command that answers it."""
    task = known.task
    return task._replace(question="", reason=f"an answer: {_command(task)}") if task.question else task


def waits_for(known: Known, others: Mapping[int, Known]) -> str:
    """Return what a task waits for; "" while a worker runs it."""
    worker = known.fleet.get("worker")
    if known.task.state == model.RUNNING and worker:
        return ""
    return view.waits_for(shown(known), {number: each.task for number, each in others.items()})


def as_json(known: Known, others: Mapping[int, Known]) -> Json:
    """Return a task as `--json` prints it, with the keys of `rooda tasks --json`."""
    task, fleet = known.task, known.fleet
    row = Row(
        workspace="",
        loop=view.LOOP,
        name=str(task.id),
        run=task.session,
        state=task.state,
        running=task.state == model.RUNNING,
        iteration=task.iteration if task.started_at else None,
        display=task.iteration if task.started_at else None,
        max_iterations=task.limits.iterations or None,
        elapsed=round(task.seconds, 3),
        tokens=task.tokens,
        cost=task.cost,
        waits_for=waits_for(known, others),
        reason=task.reason,
        started_at=task.started_at,
        last=task.updated_at,
        next=_command(task),
    )
    own = {key: fleet.get(key) or None for key in ("worker", "pool", "batch", "ref", "repository")}
    own |= {"legs": fleet.get("legs", 0), "turns": fleet.get("turn", 0), "refusals": fleet.get("refusals") or {}}
    return Found(row, {**view.details(task), **own}).as_json()


def page(known: Known, others: Mapping[int, Known]) -> list[str]:
    """Return the lines of `rooda tasks show`."""
    fleet = known.fleet
    rows = [
        ("worker", fleet.get("worker", "")),
        ("pool", fleet.get("pool", "")),
        ("batch", fleet.get("batch", "")),
        ("legs", f"{fleet.get('legs', 0)}, {fleet.get('turn', 0)} turns published"),
        ("ref", f"{fleet.get('ref', '')} in {known.ticket.get('state', '')}"),
    ]
    lines = view.page(known.task, {number: each.task for number, each in others.items()})
    end = lines.index("") if "" in lines else len(lines)
    return [*lines[:end], *(escape_line(f"{name:<10} {text}") for name, text in rows if text), *lines[end:]]


def reasons(known: Known) -> Iterator[str]:
    """Yield sentences about a task's state, its agent's question, and the workers that refused it, with the reasons."""
    task, fleet = known.task, known.fleet
    why = task.reason
    if task.state == model.WAITING and not why:
        awaited = [*map(str, task.after)] if fleet.get("after") else []
        why = f"until task {', '.join(awaited)} has landed" if awaited else ""
        why = why or (f"until {task.until}" if task.until else f"for a worker of the pool {fleet.get('pool')}")
    yield f"Task {task.id} is {task.state}{f': {why}' if why else ''}."
    if task.question:
        yield f"Its agent asks: {task.question}"
        yield f"Answer it: {_command(task)}"
    for worker, why in (fleet.get("refusals") or {}).items():
        yield f"{worker} refused it: {why}."


def changes(text: str | None, no_gates: bool, typed: Mapping[str, Any]) -> Json:
    """Return the task's fields that the options of `edit` change."""
    found: Json = {}
    if text is not None:
        found |= {"text": text.strip(), "title": model.title_of(text)}
    if typed["gates"] or no_gates:
        found["gates"] = [] if no_gates else [*typed["gates"]]
    if typed["after"] is not None:
        found["after"] = [*typed["after"]]
    limits = {key: typed[key] for key in ("iterations", "cost", "seconds") if typed[key]}
    if limits:
        found["limits"] = limits
    return found | {key: typed[key] for key in ("priority", "agent", "target") if typed[key]}


def _command(task: Task) -> str:
    """Return the user's next command for a task, such as `answer`, `retry` or `land`; "" if there is none."""
    if task.question:
        return f'rooda tasks answer {task.id} "…" --fleet'
    words = {model.PARKED: f"continue {task.id}", model.FAILED: f"retry {task.id}", model.COMPLETED: "land"}
    return f"rooda tasks {words[task.state]} --fleet" if task.state in words else ""
