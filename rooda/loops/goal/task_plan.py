"""Turns a user's task list into a plan: one step per task, each after the tasks that block it, and their criteria."""

from heapq import heappop, heappush
from typing import NamedTuple

from rooda.loops.goal import scoring
from rooda.loops.goal.criteria import ASSUMPTION, EXECUTION, REVIEW, Criterion
from rooda.loops.goal.plan import Plan, Step, check_names, text_of
from rooda.run.task_lists import HEADINGS, STORIES, Check, Item, TaskList


class Task(NamedTuple):
    """One task of a user's list, with its blockers and criteria."""

    name: str
    title: str
    after: tuple[str, ...]
    criteria: tuple[Criterion, ...]
    done: bool = False

    @property
    def step(self) -> str:
        return f"{self.name}: {self.title}" if self.name and self.title else self.name or self.title


def read_tasks(listed: TaskList, text: str = "") -> Plan:
    """Return the plan for a task list: a step per task, after the tasks that block it; each check becomes a criterion.

    A task without checks is its own criterion, except in a list of headings or user stories. A done task gets no step,
    and only its checks with a command become criteria. `text`: the text whose words decide how reversible the work is;
    by default, the tasks' own text.
    """
    written = [_task(item, listed.form) for item in listed.items]
    tasks = _ordered(written)
    there = set(tasks)
    faults: list[str] = []
    if lost := [task.name for task in written if task not in there]:
        faults.append(f"steps ({', '.join(lost)}: blocked by a missing task, or by each other)")
    check_names("steps", [task.name or task.title for task in written], faults)
    criteria = _boxes(tasks, faults)
    known = {each.name for each in criteria}
    open_ = [task for task in tasks if not task.done]
    if not open_:
        faults.append("steps (all tasks are marked as done)" if tasks else "steps")
    return Plan(
        scores_fault="a task list has no scores",
        reversibility=scoring.stricter(scoring.least_class(text or _words(listed))),
        criteria=criteria,
        steps=tuple(
            Step(task.step, tuple(each.name for each in task.criteria if each.name in known)) for task in open_
        ),
        unclear=tuple(faults),
        finished=tuple(task.step for task in tasks if task.done),
    )


def _words(listed: TaskList) -> str:
    return "\n".join(f"{item.title}\n{item.text}" for item in listed.items)


def _task(item: Item, form: str) -> Task:
    """Return a task with its criteria.

    A check without a command is an assumption under a heading such as `T-010`; otherwise an agent reviews it.
    """
    prose = ASSUMPTION if form == HEADINGS and not item.id.lower().startswith("task") else REVIEW
    checks = item.acceptance or (() if form in (HEADINGS, STORIES) else (Check(item.title, "", item.done),))
    criteria = tuple(
        Criterion(text_of(each.name), EXECUTION if each.command else prose, each.command)
        for each in checks
        if each.command or not each.done
    )
    return Task(item.id, text_of(item.title), item.after, criteria, item.done)


def _boxes(tasks: list[Task], faults: list[str]) -> tuple[Criterion, ...]:
    """Merge the tasks' criteria by name. Tasks may share a criterion, but it may have only one command."""
    written = [each for task in tasks for each in task.criteria if each.command or not task.done]
    commands = {(each.name, each.command) for each in written if each.command}
    check_names("criteria", [name for name, _ in commands], faults)
    found: dict[str, Criterion] = {}
    for each in written:
        if each.command or each.name not in found:
            found[each.name] = each
    return tuple(found.values())


def _ordered(tasks: list[Task]) -> list[Task]:
    """Sort tasks so that each task follows its blockers; otherwise keep the user's order.

    Omit tasks that are in a cycle or whose blocker is missing.
    """
    found: dict[Task, None] = {}  # an ordered set
    waiting: dict[str, list[int]] = {}
    open_ = [len({*task.after}) for task in tasks]
    for place, task in enumerate(tasks):
        for name in {*task.after}:
            waiting.setdefault(name, []).append(place)
    ready = [place for place, count in enumerate(open_) if not count]
    while ready:
        task = tasks[heappop(ready)]
        found[task] = None
        for place in waiting.pop(task.name, ()):
            open_[place] -= 1
            if not open_[place]:
                heappush(ready, place)
    return list(found)
