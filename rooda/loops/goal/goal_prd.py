"""A list of tasks in Markdown as a plan: `### T-001: title`, a comment with `blockedBy`, criteria with boxes."""

import re
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from rooda.loops.goal import wording
from rooda.loops.goal.goal_types import ASSUMPTION, EXECUTION, Criterion
from rooda.loops.goal.plan import Plan, Step, check_names

_HEAD = re.compile(r"^(#{2,4})[ \t]++([A-Za-z]++-\d++)[ \t]*+[:.][ \t]*+(\S.*)$", re.MULTILINE)
_HEADING = re.compile(r"^(#{1,6})[ \t]", re.MULTILINE)
_BLOCKED = re.compile(r"blocked[_ ]?by[\"']?\s*[:=]\s*(\[[^\]]*\]|[^,;]*(?:,\s*[A-Za-z]+-\d+)*)", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z]+-\d+")
_BOX = re.compile(r"^[ \t]*+[-*+][ \t]++\[[ xX]\][ \t]++(\S.*)$", re.MULTILINE)


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
    written = _tasks(text)
    tasks = _ordered(written)
    there = set(tasks)
    faults: list[str] = []
    if lost := [task.name for task in written if task not in there]:
        faults.append(f"steps ({', '.join(lost)}: blocked by a task that is not there, or by each other)")
    check_names("steps", [task.name for task in written], faults)
    criteria = _boxes(tasks, faults)
    return Plan(
        scores_fault="a list of tasks has no scores",
        reversibility=wording.stricter(wording.floor(text)),
        criteria=criteria,
        steps=tuple(Step(f"{task.name}: {task.title}", tuple(each.name for each in task.criteria)) for task in tasks),
        unclear=tuple(faults),
    )


def _tasks(text: str) -> list[Task]:
    text = text.replace("\r\n", "\n")
    return [_task(found[2], found[3], _below(text, found)) for found in _HEAD.finditer(text)]


def _below(text: str, head: "re.Match[str]") -> str:
    """What belongs to a heading: up to the next one of its rank, or the next task."""
    for found in _HEADING.finditer(text, head.end()):
        if len(found[1]) <= len(head[1]) or _HEAD.match(text, found.start()):
            return text[head.end() : found.start()]
    return text[head.end() :]


def _boxes(tasks: list[Task], faults: list[str]) -> tuple[Criterion, ...]:
    """Each name once: a box may stand in several tasks, but it has one command."""
    written = [each for task in tasks for each in task.criteria]
    commands = {(each.name, each.command) for each in written if each.command}
    check_names("criteria", [name for name, _ in commands], faults)
    found: dict[str, Criterion] = {}
    for each in written:
        if each.command or each.name not in found:
            found[each.name] = each
    return tuple(found.values())


def _task(name: str, title: str, body: str) -> Task:
    blocked = _BLOCKED.search(" ".join(_comments(body)))
    return Task(
        name,
        " ".join(title.split()),
        tuple(_NAME.findall(blocked[1])) if blocked else (),
        tuple(_criterion(words.rstrip(" \t")) for words in _BOX.findall(body)),
    )


def _comments(text: str) -> Iterator[str]:
    place = 0
    while (begin := text.find("<!--", place)) >= 0 and (end := text.find("-->", begin)) >= 0:
        yield text[begin + 4 : end]
        place = end


def _criterion(words: str) -> Criterion:
    """What stands in backticks at the end is its command."""
    text = words.removesuffix(")").rstrip(" \t")
    begin = text.rfind("`", 0, -1) if text.endswith("`") else -1
    command = text[begin + 1 : -1]
    if begin < 0 or not command:
        return Criterion(words, ASSUMPTION)
    name = words[:begin].rstrip(" \t").rstrip("(:—–-").strip()
    return Criterion(name or words, EXECUTION, command.strip())


def _ordered(tasks: list[Task]) -> list[Task]:
    """In their order, but nobody before those who block it; those who wait for ever are left out."""
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
