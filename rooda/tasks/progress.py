"""Reads the progress of tasks from their files and, for running tasks, from the loops' logs in the clones."""

import os
from collections.abc import Mapping
from typing import NamedTuple

from rooda.base.json import Json
from rooda.errors import RoodaError
from rooda.loops.overview import Found, Overview
from rooda.run import past_runs
from rooda.run.spending import Spent, plus
from rooda.settings.where import Where
from rooda.tasks import model, orders, results, view
from rooda.tasks.model import Task
from rooda.tasks.outcome import with_facts
from rooda.tasks.store import Store
from rooda.views.status_table import Row


class Board(NamedTuple):
    """All tasks by ID, running ones with their current progress; and the errors of unreadable task files, by ID."""

    tasks: dict[int, Task]
    damaged: dict[int, str]


def board(store: Store, config: str) -> Board:
    """Read all tasks. `config`: the settings file with which tasks run."""
    tasks, damaged = store.read()
    return Board({number: current(store, task, config) for number, task in tasks.items()}, damaged)


def current(store: Store, task: Task, config: str) -> Task:
    """Return a task; if it is running, with the current progress of its loop."""
    workspace = orders.workspace_of(store, task) if task.state == model.RUNNING else ""
    if not workspace:
        return task
    try:
        return with_facts(task, results.facts(workspace, config, running=True))
    except (OSError, RoodaError):
        return task


def as_json(store: Store, task: Task, known: Mapping[int, Task], config: str, conflicts: tuple[int, ...] = ()) -> Json:
    """Return a task as `--json` prints it, with the keys of `rooda status --json`."""
    return Found(_row(store, task, known, config), view.details(task, conflicts)).as_json()


def damaged_json(store: Store, number: int, why: str) -> Json:
    """Return what `--json` prints for a task whose file can't be read."""
    row = Row(store.place.repo.workspace, view.LOOP, str(number), "", "damaged", waits_for=f"you: {why}", reason=why)
    return Found(row, {"id": number}).as_json()


def _row(store: Store, task: Task, known: Mapping[int, Task], config: str) -> Row:
    workspace = orders.workspace_of(store, task) if task.started_at else ""
    now, used = _now(workspace, config) if workspace and task.state == model.RUNNING else None, _used(workspace)
    return Row(
        workspace=workspace or store.place.repo.workspace,
        loop=view.LOOP,
        name=str(task.id),
        run=now.run if now else task.session,
        state=task.state,
        running=task.state == model.RUNNING,
        pid=(now.pid if now else None) or task.process.pid or None,
        phase=now.phase if now else "",
        since=now.since if now else "",
        iteration=task.iteration if task.started_at else None,
        display=now.display if now else task.iteration if task.started_at else None,
        max_iterations=task.limits.iterations or (now.max_iterations if now else None),
        failures=now.failures if now else "",
        elapsed=round(task.seconds, 3),
        calls=used.calls,
        tokens=task.tokens,
        cost=task.cost,
        calls_of_unknown_cost=used.unknown,
        suspended=bool(now and now.suspended),
        waits_for=view.waits_for(task, known) or (now.waits_for if now else ""),
        seconds_left=now.seconds_left if now else None,
        reason=task.reason,
        started_at=task.started_at,
        last=(now.last if now else "") or task.updated_at,
        next=view.command(task),
    )


def _now(workspace: str, config: str) -> Row | None:
    """Return the status of the loop that runs in a clone; None before the loop begins."""
    try:
        found = Overview(Where(workspace, config)).details(workspace, None)
    except (OSError, RoodaError):
        return None
    return next((row for row, _ in found if row.running), None)


def _used(workspace: str) -> Spent:
    """Return what the runs in a clone have used; all zero if there is no clone."""
    used = Spent()
    if workspace and os.path.isdir(workspace):
        for run in past_runs.past_runs(workspace):
            used = plus(used, past_runs.spent(run, False, dict))
    return used
