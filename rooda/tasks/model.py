"""Defines a task of `rooda tasks`: its fields, its states, and which task runs next. Pure."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rooda.base import json
from rooda.base.json import Json
from rooda.errors import FAILED as FAILED_CODE
from rooda.errors import OK, UNFINISHED
from rooda.run import ended

WAITING, RUNNING, COMPLETED = ended.WAITING, ended.RUNNING, ended.COMPLETED
FAILED, CANCELLED = ended.FAILED_STATE, ended.CANCELLED
PARKED, LANDED = "parked", "landed"
STATES = (WAITING, RUNNING, PARKED, COMPLETED, FAILED, LANDED, CANCELLED)
OVER = (LANDED, CANCELLED)  # states in which a task no longer changes

PRIORITIES = ("high", "normal", "low")
PROCEDURE = "procedure"  # the kind of a task whose loop is a procedure; other kinds are named as in the registry
VERSION = 1  # version of the format of a task's file
LONGEST_TITLE = 72  # characters
LONGEST_RING = 8  # number of names in a message about tasks that wait for each other
SLUG = 40  # characters of the title in a branch name
_NO_ARGUMENT = re.compile("[\0\ud800-\udc7f\udd00-\udfff]")


class Limits(NamedTuple):
    """Limits of a task over all its sessions; 0 = the limit from the settings."""

    iterations: int = 0
    cost: float = 0.0  # dollars
    seconds: float = 0.0


class Source(NamedTuple):
    """Where a task was imported from."""

    kind: str = ""  # file | gh | glab; "" for a text that was typed
    key: str = ""  # the item's identity at the source, by which a second import recognizes it
    place: str = ""  # file relative to the top of the repository, or the URL of an issue
    line: int = 0
    sync: bool = False  # tick the box or close the issue after the landing
    synced: bool = False  # the box was ticked or the issue closed
    digest: str = ""  # hash of the text at the import, by which rooda detects a later edit


class Pull(NamedTuple):
    """The pull request of a task (`land --pr`)."""

    url: str = ""
    head: str = ""  # commit that was pushed
    forge: str = ""  # gh | glab


class Turnings(NamedTuple):
    """Counts of a task's restarts, the number of its current loop, and the base of its branch."""

    tries: int = 0  # automatic retries after a failure
    reopened: int = 0  # returns to the agent after a refused landing, since the user's last retry
    kills: int = 0  # number of kills in a row of its loop in iteration `killed_at`
    killed_at: int = -1
    loop: int = 1  # number of its loop; a task that is reopened or tried again begins a new one
    ended: str = ""  # last session of the loop before; a newer session belongs to this loop
    base: str = ""  # commit of the target at which the branch begins, or onto which it was rebased last


class Process(NamedTuple):
    """The process that works on a task. Start time and boot id detect a reused PID."""

    pid: int = 0
    start: Any = None
    boot: str = ""


class Task(NamedTuple):
    """One task. Every change is a new record with the next `rev`."""

    id: int
    title: str
    text: str
    target: str  # branch to land on, such as main or origin/main
    state: str = WAITING
    kind: str = PROCEDURE
    name: str = "build"  # of the procedure; "" for other kinds
    options: tuple[str, ...] = ()  # further options of the loop's command
    agent: str = ""  # "" = the agent of the settings
    gates: tuple[str, ...] = ()  # the task's own commands, besides the target's gates
    after: tuple[int, ...] = ()  # ids of tasks that must have landed before it starts
    priority: str = "normal"
    limits: Limits = Limits()
    source: Source = Source()
    rev: int = 1
    created_at: str = ""
    updated_at: str = ""
    started_at: str = ""
    branch: str = ""
    clone: str = ""  # folder of its clone; "" before the first start and after `clean`
    head: str = ""  # commit of its work, which the repository keeps as refs/rooda/task/<id>
    session: str = ""  # id of the loop's newest session
    loop_state: str = ""  # the loop's own state, a word of run/ended.py
    iteration: int = 0
    cost: float | None = None
    tokens: int = 0
    seconds: float = 0.0
    until: str = ""  # time before which it can't continue: the reset of a usage limit
    account: str = ""  # the account with that usage limit
    question: str = ""  # the agent's question to the user
    asked_at: str = ""
    prompt: str = ""  # text for the next prompt: an answer, or why a landing was refused
    reason: str = ""  # why it is parked, waits, or failed
    parked_by: str = ""  # question | limit | landing | trust | setup | clone
    turnings: Turnings = Turnings()
    pull: Pull = Pull()
    process: Process = Process()  # only while it is running

    @property
    def is_over(self) -> bool:
        return self.state in OVER

    @property
    def slug(self) -> str:
        return slug_of(self.title)


def encode(task: Task) -> Json:
    return {"v": VERSION, **json.encode(task)}


def decode(data: Json) -> Task:
    """Return the task from a file's content. Raises Mismatch if the content is invalid, or of another version."""
    if data.get("v") != VERSION:
        raise json.Mismatch(f"its version is {data.get('v')!r}; this rooda reads version {VERSION}")
    task = json.decode(Task, data)
    for value, known, what in ((task.state, STATES, "state"), (task.priority, PRIORITIES, "priority")):
        if value not in known:
            raise json.Mismatch(f"{what} {value!r} is unknown")
    return task


def clean(text: str) -> str:
    """Return a text without NUL characters and invalid surrogates, which no program accepts as an argument."""
    return _NO_ARGUMENT.sub("", text)


def title_of(text: str) -> str:
    """Return the title of a task's text: the first line that is not empty, cut at a word if it is long."""
    row = next((" ".join(line.lstrip("#-*>").split()) for line in text.splitlines() if line.strip("#-*> \t")), "")
    if len(row) <= LONGEST_TITLE:
        return row
    cut = row[: LONGEST_TITLE - 1]
    return f"{cut.rpartition(' ')[0] or cut}…"


def slug_of(title: str) -> str:
    """Return the title as part of a branch name: words of ASCII letters and digits, joined by hyphens."""
    words = "".join(sign if sign.isascii() and sign.isalnum() else " " for sign in title.lower()).split()
    found = ""
    for word in words:
        if len(found) + len(word) + 1 > SLUG and found:
            break
        found = f"{found}-{word}"[: SLUG + 1] if found else word[:SLUG]
    return found or "task"


# What may happen next


def unmet(task: Task, tasks: Mapping[int, Task]) -> list[int]:
    """Return the tasks that this one still waits for, including deleted and cancelled ones, which never land."""
    return [number for number in task.after if number not in tasks or tasks[number].state != LANDED]


def lost(task: Task, tasks: Mapping[int, Task]) -> list[int]:
    """Return the cancelled tasks among those that this one waits for."""
    return [number for number in task.after if number in tasks and tasks[number].state == CANCELLED]


def waiting_for_landing(tasks: Mapping[int, Task]) -> list[Task]:
    """Return the waiting tasks whose unmet dependencies are all completed but not landed yet."""
    waiting = (task for task in tasks.values() if task.state == WAITING)
    return [
        task
        for task in waiting
        if (left := unmet(task, tasks)) and all(each in tasks and tasks[each].state == COMPLETED for each in left)
    ]


def ready(tasks: Mapping[int, Task], now: str, busy: Collection[str] = ()) -> list[Task]:
    """Return the tasks that may start now, in the order in which they start.

    `busy`: accounts at their usage limit. Times are compared as text, because all are in UTC and have the same form.
    """
    found = [
        task
        for task in tasks.values()
        if task.state == WAITING
        and not unmet(task, tasks)
        and (not task.until or task.until <= now)
        and (not task.account or task.account not in busy)
    ]
    return sorted(found, key=order)


def order(task: Task) -> tuple[int, bool, int]:
    """Return the sort key of waiting tasks: by priority, then tasks that were started before, then the oldest."""
    return PRIORITIES.index(task.priority), not task.started_at, task.id


def next_time(tasks: Iterable[Task]) -> str:
    """Return the earliest time at which a waiting task may continue; "" if no task waits for a time."""
    return min((task.until for task in tasks if task.state == WAITING and task.until), default="")


def same_agent(one: Task, other: Task) -> bool:
    """True if two tasks certainly call the same agent, because their agent, kind, procedure and options are equal."""
    return (one.agent, one.kind, one.name, one.options) == (other.agent, other.kind, other.name, other.options)


def cycle(number: int, after: Sequence[int], task_of: Callable[[int], Task | None]) -> list[int]:
    """Return the cycle that would arise if task `number` waited for the tasks `after`; [] if there would be none."""
    before = dict.fromkeys(after, number)  # for each task, the one that waits for it
    open_ = [*after]
    while open_:
        each = open_.pop()
        if each == number:
            found = [each]
            while (each := before[each]) != number:
                found.append(each)
            return [number, *reversed(found)]
        for further in task.after if (task := task_of(each)) else ():
            if further not in before:
                before[further] = each
                open_.append(further)
    return []


def shown_ring(names: Sequence[object], word: str) -> str:
    """Return the names in a cycle, joined by `word`; the middle of a long cycle is left out."""
    shown = [*names] if len(names) <= LONGEST_RING else [*names[:4], "…", *names[-2:]]
    return f" {word} ".join(map(str, shown))


def exit_code(tasks: Iterable[Task]) -> int:
    """Return the exit code of a run: 1 if a task failed, 0 if all tasks are completed, landed or cancelled, else 4."""
    states = {task.state for task in tasks}
    if FAILED in states:
        return FAILED_CODE
    return OK if states <= {COMPLETED, *OVER} else UNFINISHED
