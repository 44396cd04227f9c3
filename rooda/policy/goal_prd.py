"""A list of tasks in Markdown as a plan: `### T-001: title`, a comment with `blockedBy`, criteria with boxes."""

import re
from typing import NamedTuple

from rooda.policy import goal_words
from rooda.policy.goal_plan import Plan, Step
from rooda.policy.goal_types import ASSUMPTION, EXECUTION, Criterion

_HEAD = re.compile(r"^#{2,4}[ \t]+([A-Za-z]+-\d+)[ \t]*[:.][ \t]*(\S.*?)[ \t]*$", re.MULTILINE)
_COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
_BLOCKED = re.compile(r"blocked[_ ]?by[\"']?\s*[:=]\s*(\[[^\]]*\]|[^,;]*(?:,\s*[A-Za-z]+-\d+)*)", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z]+-\d+")
_BOX = re.compile(r"^[ \t]*[-*+][ \t]+\[[ xX]\][ \t]+(\S.*?)[ \t]*$", re.MULTILINE)
_COMMAND = re.compile(r"[ \t]*[(:—–-]*[ \t]*`([^`]+)`[ \t]*\)?[ \t]*$")


class Task(NamedTuple):
    """One heading and what stands below it."""

    name: str
    title: str
    after: tuple[str, ...]
    criteria: tuple[Criterion, ...]


def is_list(text: str) -> bool:
    return bool(_HEAD.search(text))


def read(text: str) -> Plan:
    """One step per task, each after those that it waits for; every box is a criterion."""
    tasks = _ordered(_tasks(text))
    criteria = {each.name: each for task in tasks for each in task.criteria}
    faults = [f"steps ({', '.join(lost)}: blocked by a task that is not there, or by each other)"] if (
        lost := [task.name for task in _tasks(text) if task not in tasks]) else []  # fmt: skip
    return Plan(
        scores_fault="a list of tasks has no scores",
        reversibility=goal_words.stricter(goal_words.floor(text)),
        criteria=tuple(criteria.values()),
        steps=tuple(Step(f"{task.name}: {task.title}", tuple(each.name for each in task.criteria)) for task in tasks),
        unclear=tuple(faults),
    )


def _tasks(text: str) -> list[Task]:
    parts = _HEAD.split(text)
    return [_task(*part) for part in zip(parts[1::3], parts[2::3], parts[3::3], strict=True)]


def _task(name: str, title: str, body: str) -> Task:
    notes = " ".join(_COMMENT.findall(body))
    blocked = _BLOCKED.search(notes)
    return Task(
        name,
        title,
        tuple(_NAME.findall(blocked[1])) if blocked else (),
        tuple(_criterion(words) for words in _BOX.findall(body)),
    )


def _criterion(words: str) -> Criterion:
    """What stands in backticks at the end is its command."""
    found = _COMMAND.search(words)
    if not found or not words[: found.start()].strip():
        return Criterion(words, EXECUTION, found[1].strip()) if found else Criterion(words, ASSUMPTION)
    return Criterion(words[: found.start()].strip(), EXECUTION, found[1].strip())


def _ordered(tasks: list[Task]) -> list[Task]:
    """In their order, but nobody before those who block it; those who wait for ever are left out."""
    found: list[Task] = []
    while ready := [each for each in tasks if each not in found and {*each.after} <= {task.name for task in found}]:
        found.append(ready[0])
    return found
