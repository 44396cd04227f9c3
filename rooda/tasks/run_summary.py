"""Formats the lines at the end of `rooda tasks run --land`: what landed, what was sent back, and what is still open."""

from collections.abc import Mapping, Sequence

from rooda.base.text import escape_line, format_seconds
from rooda.run.spending import dollars
from rooda.tasks import model, view
from rooda.tasks.model import Task
from rooda.views.summary import WIDTH, row


def summary(before: Mapping[int, Task], tasks: Mapping[int, Task], seconds: float) -> list[str]:
    """Return the lines at the end of `rooda tasks run --land`. `before`: the tasks at its start."""
    every, earlier = [task for _, task in sorted(tasks.items())], {n for n, t in before.items() if t.is_over}
    landed = [task for task in every if task.state == model.LANDED and task.id not in earlier]
    refused = [task for task in every if not task.is_over and _is_refused(task, before.get(task.id))]
    again = [task for task in landed if task.turnings.reopened > _reopened(before.get(task.id))]
    still = [task for task in every if not task.is_over and task not in refused]
    cost = sum(task.cost or 0.0 for task in every) - sum(task.cost or 0.0 for task in before.values())
    steps = [view.command(task) for task in (*refused, *still) if not model.lost(task, tasks)]
    step = next(iter(steps), "")
    after = f" ({len(again)} after {'it was' if len(again) == 1 else 'they were'} sent back)" if again else ""
    counts = f"{len(landed)} landed{after}, {len(refused)} sent back, {len(still)} open"
    rows = [
        f"tasks: {counts} in {format_seconds(seconds)}",
        row("landed", ", ".join(str(task.id) for task in landed)),
        row("sent back", _with_reasons(refused)),
        row("open", _with_reasons(still)),
        row("cost", dollars(cost) if cost > 0 else ""),
        row("next", f"{step} --land" if step == "rooda tasks run" else step, whole=True),
    ]
    return [escape_line(line) for line in rows if line]


def _reopened(task: Task | None) -> int:
    return task.turnings.reopened if task else 0


def _is_refused(task: Task, before: Task | None) -> bool:
    """True if a landing has sent the task back or parked it since the state `before`."""
    earlier = before or task._replace(parked_by="", turnings=model.Turnings())
    parked = task.parked_by == "landing" and earlier.parked_by != "landing"
    return parked or task.turnings.reopened > earlier.turnings.reopened


def _with_reasons(tasks: Sequence[Task]) -> str:
    """List tasks with their states and reasons; omit the reasons if the list is too long for a row."""
    whole = ", ".join(f"{task.id} ({task.state}{f': {task.reason}' if task.reason else ''})" for task in tasks)
    return whole if len(row("", whole, whole=True)) <= WIDTH else ", ".join(f"{t.id} ({t.state})" for t in tasks)
