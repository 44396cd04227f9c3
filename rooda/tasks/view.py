"""Formats the board of `rooda tasks`, the page of one task, and a task's details for `--json`. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from rooda.base.json import Json
from rooda.base.text import columns, counted, escape_line, format_seconds, truncate, width
from rooda.run.spending import dollars
from rooda.tasks import model
from rooda.tasks.model import Task

HEAD = ("ID", "STATE", "ITER", "ELAPSED", "COST", "TASK", "WAITS FOR")
NUMBERS = (0, 2, 3, 4)
TASK, WAITS = 5, 6  # columns whose text is cut if the terminal is narrow
NOTHING = "-"
LOOP = "task"
NARROWEST = 13  # characters that remain of a task's branch, which `rooda tasks show` has whole


def board(
    tasks: Sequence[Task],
    known: Mapping[int, Task],
    room: int = 0,
    conflicts: Mapping[int, Sequence[int]] = {},
    damaged: Mapping[int, str] = {},
) -> list[str]:
    """Return a header and a line for each task; `room`: the width of the terminal, 0 = unlimited."""
    rows = {task.id: _cells(task, known, conflicts.get(task.id, ())) for task in tasks}
    rows |= {number: (str(number), "damaged", *([NOTHING] * 4), why) for number, why in damaged.items()}
    cells = [HEAD, *(tuple(map(escape_line, rows[number])) for number in sorted(rows))]
    lines = columns(cells, NUMBERS)
    for place, least in ((TASK, NARROWEST), (WAITS, 2 * NARROWEST)):
        over = max(map(width, lines)) - room if room else 0
        if over > 0:
            longest = max(least, max(width(row[place]) for row in cells) - over)
            cells = [(*row[:place], truncate(row[place], longest), *row[place + 1 :]) for row in cells]
            lines = columns(cells, NUMBERS)
    return [truncate(line, room) if room else line for line in lines]


def _cells(task: Task, known: Mapping[int, Task], conflicts: Sequence[int]) -> tuple[str, ...]:
    most = f"/{task.limits.iterations}" if task.limits.iterations else ""
    return (
        str(task.id),
        task.state,
        f"{task.iteration}{most}" if task.started_at else NOTHING,
        format_seconds(task.seconds) if task.started_at else NOTHING,
        NOTHING if task.cost is None else dollars(task.cost),
        task.branch or task.title,
        waits_for(task, known, conflicts) or NOTHING,
    )


def waits_for(task: Task, known: Mapping[int, Task], conflicts: Sequence[int] = ()) -> str:
    """Return what a task waits for, such as other tasks, a time, or the user; "" if it waits for nothing."""
    if task.state == model.PARKED:
        return _person(task)
    if task.state == model.WAITING and (lost := model.lost(task, known)):
        return f"{_tasks(lost)}, cancelled: rooda tasks edit {task.id}"
    if task.state == model.WAITING and (missing := model.unmet(task, known)):
        return f"{_tasks(missing)} to land"
    if task.state == model.WAITING and task.until:
        who = f" (limit of {task.account})" if task.account else ""
        return f"{task.until}{who}"
    if task.state == model.FAILED:
        return f"rooda tasks retry {task.id}"
    return f"conflicts with {_tasks(conflicts)}" if conflicts and not task.is_over else ""


def _tasks(numbers: Sequence[int]) -> str:
    return f"task{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def _person(task: Task) -> str:
    if task.question:
        return f'rooda answer {task.id} "…"'
    if task.parked_by == "limit":
        return f"you: {task.reason}" if task.reason else f"rooda tasks retry {task.id}"
    return f"you: {task.reason}" if task.reason else "you"


def page(task: Task, known: Mapping[int, Task], conflicts: Sequence[int] = (), left: str = "") -> list[str]:
    """Return the lines of `rooda tasks show`. `left`: work that only the clone has."""
    limits, waits = task.limits, waits_for(task, known, conflicts)
    rows = [
        ("task", f"{task.id}: {task.title}"),
        ("state", f"{task.state}{f', {task.reason}' if task.reason else ''}"),
        ("waits for", "" if waits == f"you: {task.reason}" else waits),
        ("loop", _loop(task)),
        ("progress", _progress(task)),
        ("gates", "; ".join(task.gates)),
        ("after", ", ".join(map(str, task.after))),
        ("priority", task.priority if task.priority != "normal" else ""),
        ("limits", ", ".join(_limits(limits))),
        ("target", task.target),
        ("branch", task.branch),
        ("pull request", task.pull.url),
        ("clone", task.clone),
        ("clone has", left),
        ("source", f"{task.source.place}{f':{task.source.line}' if task.source.line else ''}"),
        ("question", task.question),
    ]
    lines = [escape_line(f"{name:<10} {text}") for name, text in rows if text]
    return [*lines, "", *map(escape_line, task.text.splitlines())]


def _loop(task: Task) -> str:
    word = task.name if task.kind == model.PROCEDURE else task.kind
    return " ".join([word, *task.options, *([f"--agent {task.agent}"] if task.agent else [])])


def _progress(task: Task) -> str:
    if not task.started_at:
        return "not started"
    count = f"{counted(task.iteration, 'iteration')}"
    cost = "cost unknown" if task.cost is None else dollars(task.cost)
    state = f", its loop {task.loop_state}" if task.loop_state else ""
    return f"{count}, {format_seconds(task.seconds)}, {cost}{state}"


def _limits(limits: model.Limits) -> Iterable[str]:
    if limits.iterations:
        yield f"{counted(limits.iterations, 'iteration')}"
    if limits.cost:
        yield dollars(limits.cost)
    if limits.seconds:
        yield format_seconds(limits.seconds)


def command(task: Task) -> str:
    """Return the command that the user can type to continue with a task; "" if there is none."""
    if task.question:
        return f'rooda answer {task.id} "…"'
    words = {
        model.WAITING: "rooda tasks run",
        model.PARKED: f"rooda tasks retry {task.id}",
        model.FAILED: f"rooda tasks retry {task.id}",
        model.COMPLETED: "rooda tasks land",
    }
    return words.get(task.state, "")


def details(task: Task, conflicts: Sequence[int] = ()) -> Json:
    """Return the object under `details` in `--json`, a key that only tasks have."""
    return {
        "id": task.id,
        "title": task.title,
        "text": task.text,
        "kind": task.kind,
        "procedure": task.name if task.kind == model.PROCEDURE else None,
        "agent": task.agent or None,
        "gates": [*task.gates],
        "after": [*task.after],
        "priority": task.priority,
        "target": task.target,
        "branch": task.branch or None,
        "clone": task.clone or None,
        "head": task.head or None,
        "until": task.until or None,
        "account": task.account or None,
        "question": task.question or None,
        "conflicts": [*conflicts],
        "loop_state": task.loop_state or None,
        "parked_by": task.parked_by or None,
        "source": task.source.place or None,
        "line": task.source.line or None,
    }
