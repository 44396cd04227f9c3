"""Decides the state of a task after its loop has ended. Pure."""

from typing import NamedTuple

from rooda.errors import FAILED, INTERRUPTED, OK, TERMINATED, UNDECIDED, UNFINISHED, USAGE, Cause
from rooda.run.budgets import RUN
from rooda.run.spending import in_words, remedy
from rooda.tasks import model
from rooda.tasks.model import Process, Task

UNPUBLISHED = "its work could not be brought into the repository"
GENERAL = 78  # exit code of a process of `start` for an error that affects every task
KILLS = 5  # kills in a row, without an iteration in between, after which a task fails


class Facts(NamedTuple):
    """State and usage of a task's loop, read from the runs in the task's clone."""

    state: str = ""  # state of the newest run, a word of run/ended.py
    session: str = ""
    iteration: int = 0
    cost: float | None = None
    tokens: int = 0
    seconds: float = 0.0
    cause: Cause | None = None
    reason: str = ""
    question: str = ""  # the agent's question that has no answer yet


class Ended(NamedTuple):
    """How a task's loop ended, and what became of its work."""

    code: int  # exit code; negative: a signal killed it
    facts: Facts = Facts()
    said: str = ""  # the loop's last error, or the last line of its output
    head: str = ""  # commit of the task's work in the repository
    problem: str = ""  # why the work could not be fetched into the repository
    text: str = ""  # the last error or warning, and all lines after it


def with_facts(task: Task, facts: Facts) -> Task:
    if not facts.session:  # no loop has begun, or its logs can't be read
        return task
    return task._replace(
        loop_state=facts.state,
        session=facts.session,
        iteration=facts.iteration,
        cost=facts.cost,
        tokens=facts.tokens,
        seconds=facts.seconds,
    )


def settled(task: Task, ended: Ended, now: str, tomorrow: str, retries: int) -> Task:
    """Return the task after its loop has ended. A task that is no longer running keeps its state."""
    task = with_facts(task, ended.facts)._replace(process=Process(), head=ended.head or task.head)
    if task.state != model.RUNNING:
        return task
    if ended.facts.question and (ended.code == UNFINISHED or not task.prompt):  # a prompt: it was answered
        return _asks(task, ended.facts, now)
    if ended.code == OK and ended.problem:
        return task._replace(state=model.PARKED, parked_by="clone", reason=f"{UNPUBLISHED}: {ended.problem}")
    if ended.code == OK:
        return task._replace(state=model.COMPLETED, reason="", until="", prompt="", parked_by="")
    if ended.code == FAILED:
        return _failed(task, ended, retries)
    if ended.code == UNFINISHED:
        return _unfinished(task, ended.facts, tomorrow)
    if ended.code in (UNDECIDED, USAGE):
        by = "trust" if ended.code == UNDECIDED else "setup"
        why = ended.text or ended.said or "its loop did not start"
        return task._replace(state=model.PARKED, parked_by=by, reason=why)
    if ended.code == GENERAL:
        return task._replace(state=model.WAITING, reason=ended.said)
    if ended.code in (INTERRUPTED, TERMINATED):
        return task._replace(state=model.WAITING, reason="stopped")
    return _killed(task)


def _failed(task: Task, ended: Ended, retries: int) -> Task:
    turnings, reason = task.turnings, ended.facts.reason or ended.said or "its loop failed"
    if turnings.tries >= retries:
        return task._replace(state=model.FAILED, reason=reason)
    turnings = turnings._replace(tries=turnings.tries + 1, loop=turnings.loop + 1, ended=task.session)
    return task._replace(state=model.WAITING, reason=f"tried again: {reason}", turnings=turnings)


def _asks(task: Task, facts: Facts, now: str) -> Task:
    """Return the task, now parked until the user answers its agent's question."""
    return task._replace(
        state=model.PARKED, parked_by="question", question=facts.question, asked_at=now, reason="", until="", account=""
    )


def _unfinished(task: Task, facts: Facts, tomorrow: str) -> Task:
    cause = facts.cause
    if cause and cause.kind == "account":
        return task._replace(state=model.WAITING, until=cause.until, account=cause.account, reason=in_words(cause))
    if cause and cause.budget in ("day", "agent"):
        return task._replace(state=model.WAITING, until=tomorrow, account=cause.account, reason=in_words(cause))
    if cause and cause.budget == RUN:
        return task._replace(state=model.WAITING, reason=in_words(cause))
    reason = "; ".join(filter(None, (in_words(cause), remedy(cause)))) if cause else facts.reason
    return task._replace(state=model.PARKED, parked_by="limit", reason=reason or "its loop is paused")


def _killed(task: Task) -> Task:
    """Return the task after its loop was killed: it waits for a resume, or fails after too many kills in a row."""
    kills = task.turnings.kills + 1 if task.turnings.killed_at == task.iteration else 1
    turnings = task.turnings._replace(kills=kills, killed_at=task.iteration)
    if kills > KILLS:
        reason = f"its loop was killed {kills} times in iteration {task.iteration + 1}"
        return task._replace(state=model.FAILED, reason=reason, turnings=turnings)
    return task._replace(state=model.WAITING, reason="its loop was killed", turnings=turnings)
