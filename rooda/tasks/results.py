"""Reads what the loop of a task has done so far, from the runs in the task's clone."""

import os

from rooda.base import clock, files
from rooda.errors import Cause
from rooda.git import clones
from rooda.git.repository import find, read_head
from rooda.loops import registry
from rooda.loops.configuration import prices
from rooda.run import history
from rooda.run.ended import at_limit
from rooda.run.history import seconds_of
from rooda.run.past_runs import past_runs, spent
from rooda.run.spending import Spent, cause_of, plus
from rooda.settings.where import Where
from rooda.tasks.outcome import Facts

LAST = 2_000  # bytes of a program's output that may hold its last line


def facts(workspace: str, config: str, running: bool = False) -> Facts:
    """Return what the runs in a clone say; all empty if none has begun."""
    runs = past_runs(workspace)
    if not runs:
        return Facts()
    newest, used = runs[0], Spent()
    there = Where(workspace, config)
    for run in runs:
        used = plus(used, spent(run, running and run is newest, lambda: prices(there)))
    ended = newest.last.ended or {}
    return Facts(
        state=newest.state(running),
        session=newest.last.run,
        iteration=newest.iterations,
        cost=None if used.unknown == used.calls else round(used.cost, 6),
        tokens=used.tokens,
        seconds=round(sum(run.elapsed(running and run is newest) for run in runs), 3),
        cause=_in_utc(cause_of(ended)),
        reason=at_limit(ended) or str(ended.get("note") or ended.get("reason") or ""),
        question=str(ended.get("question", "")),
    )


def higher_limit(workspace: str, name: str) -> int:
    """Return the iteration limit with which a procedure repeats an iteration that a signal cut off; 0 if none was.

    A procedure counts such an iteration, since its call was paid for; a task has it done once more.
    """
    wanted = {"iteration.ended", "run.started", "run.resumed"}
    ended = [*history.events_of_run(workspace, name, registry.OODA, wanted)]
    if not ended or ended[-1].get("event") != "iteration.ended" or ended[-1].get("outcome") != "interrupted":
        return 0
    limits = [each.get("max_iterations") for each in ended if each.get("max_iterations") is not None]
    return int(limits[-1]) + 1 if limits and limits[-1] else 0


def _in_utc(cause: Cause | None) -> Cause | None:
    return cause._replace(until=clock.rfc3339(seconds_of(cause.until))) if cause and cause.until else cause


def last_line(path: str) -> str:
    """Return the last line of a program's output that is not a hint."""
    try:
        text = files.to_text(files.tail(path, LAST))
    except OSError:
        return ""
    rows = [row.strip() for row in text.splitlines() if row.strip()]
    errors = [row.removeprefix("Error: ") for row in rows if row.startswith("Error: ")]
    return (errors or rows or [""])[-1]


def publish(root: str) -> tuple[str, str]:
    """Bring the clone's HEAD into its repository; return the commit, and an error if that failed."""
    loan = clones.loan_of(root)
    if loan is None or not os.path.isdir(root):
        return "", ""
    commit = read_head(find(root)).commit
    return commit, clones.publish(loan, root, commit)
