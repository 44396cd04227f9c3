"""Changes an existing task, and sends the change to the task's loop, which applies it in the next iteration."""

import os
from typing import NamedTuple

from rooda.base import secrets, signing
from rooda.base.json import Json
from rooda.errors import RoodaError, UsageProblem
from rooda.loops import registry
from rooda.run import folder as run_folder
from rooda.run import messages
from rooda.tasks import model, orders
from rooda.tasks.model import PRIORITIES, PROCEDURE, Limits, Task
from rooda.tasks.store import Store

HEAD = "# Task {0.id}, {0.state}. The task's text begins below the first empty line. `gate:` may be repeated.\n"


class Edit(NamedTuple):
    """Changes to a task; None = unchanged."""

    text: str | None = None
    gates: tuple[str, ...] | None = None
    after: tuple[int, ...] | None = None
    priority: str | None = None
    limits: Limits = Limits()  # 0 = unchanged
    agent: str | None = None
    target: str | None = None
    options: tuple[str, ...] | None = None  # of the loop


def edit(store: Store, number: int, change: Edit) -> Task:
    """Change a task. Raises UsageProblem if it has landed, was cancelled, or would wait for itself."""

    def changed(task: Task) -> Task:
        if task.is_over:
            raise UsageProblem(f"Task {number} is {task.state}; it can't be changed.", "Add another: rooda tasks add")
        if task.branch and change.target not in (None, task.target):
            what = f"Task {number} has begun on {task.target}; its target can't change."
            raise UsageProblem(what, f"Cancel it (rooda tasks cancel {number}), and add another with --target.")
        if ring := model.cycle(number, change.after or (), store.look):
            what = f"Tasks would wait for each other: {model.shown_ring(ring, 'after')}."
            raise UsageProblem(what, "Nothing was changed.")
        return _with(task, change)

    for each in change.after or ():
        store.get(each)
    after = store.change(number, changed, "edited")
    _deliver(store, after, change)
    return after


def _with(task: Task, change: Edit) -> Task:
    facts: Json = {key: value for key, value in change._asdict().items() if value is not None}
    facts["limits"] = task.limits._replace(**{key: value for key, value in change.limits._asdict().items() if value})
    if change.text is not None:
        facts["title"] = model.title_of(change.text)
    return task._replace(**facts)


def _deliver(store: Store, task: Task, change: Edit) -> None:
    """Send a note and new limits to a loop that runs or will be resumed. A loop that starts later reads the task."""
    note, limits = note_of(change), limits_of(change)
    workspace = orders.workspace_of(store, task)
    newest = run_folder.latest(workspace, None) if workspace and (note or limits) else None
    if not newest or os.path.basename(newest) == task.turnings.ended:
        return
    kind, run = registry.OODA if task.kind == PROCEDURE else task.kind, os.path.basename(newest)
    if not signing.has_key():
        raise RoodaError("The task was changed, but rooda can't sign the message to its loop.", signing.problem())
    try:
        if note and registry.KINDS[kind].hears_notes:
            note = secrets.hide(note, secrets.forms(os.environ, (workspace,)))
            messages.leave(workspace, run, kind, messages.NOTE, note)
        if limits:
            messages.leave(workspace, run, kind, messages.LIMITS, limits=limits)
    except OSError as problem:
        raise RoodaError(
            f"{problem.filename} can't be written: {problem.strerror}", "The task was changed, but its loop was not."
        ) from None


def note_of(change: Edit) -> str:
    """Return the note that tells a running loop's agent about a change."""
    parts = [f"The task has changed. It is now:\n\n{change.text}"] if change.text is not None else []
    if change.gates:
        parts.append(f"These commands must also succeed: {', '.join(f'`{gate}`' for gate in change.gates)}")
    return "\n\n".join(parts)[: messages.LONGEST]


def limits_of(change: Edit) -> dict[str, float]:
    """Return the limits that a change sets, in the form used by messages to running loops."""
    return {key: float(value) for key, value in change.limits._asdict().items() if value}


# What $EDITOR shows


def form(task: Task) -> str:
    """Return the text that $EDITOR shows for a task."""
    gates = "".join(f"gate: {gate}\n" for gate in task.gates) or "gate:\n"
    after = ",".join(map(str, task.after))
    return f"{HEAD.format(task)}{gates}after: {after}\npriority: {task.priority}\n\n{task.text}\n"


def parsed(text: str) -> Edit:
    """Parse an edited form into a change. Raises UsageProblem for an invalid line."""
    head, _, body = text.lstrip("\n").partition("\n\n")
    gates: list[str] = []
    found = Edit(text=body.strip(), after=())
    if not model.title_of(body):
        raise UsageProblem("The task's text is empty; nothing was changed.", "Write it below the first empty line.")
    for row in head.splitlines():
        key, colon, value = (part.strip() for part in row.partition(":"))
        if row.startswith("#") or (key == "gate" and colon and not value):
            continue
        if key == "gate" and colon:
            gates.append(value)
        elif key == "after" and colon:
            found = found._replace(after=_ids(value))
        elif key == "priority" and value in PRIORITIES:
            found = found._replace(priority=value)
        else:
            raise UsageProblem(
                f"Unknown line: {row}", "Nothing was changed. A line must begin with gate:, after: or priority:."
            )
    return found._replace(gates=tuple(gates))


def _ids(text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not all(word.isascii() and word.isdecimal() and len(word) < 10 for word in words):
        raise UsageProblem(f"after: must be ids of tasks such as 3,4, got {text}.", "Nothing was changed.")
    return tuple(dict.fromkeys(map(int, words)))
