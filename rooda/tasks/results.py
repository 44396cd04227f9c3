"""Reads the state and usage of a task's loop from the runs in the task's clone, and fetches the task's work."""

import os
from typing import NamedTuple

from rooda.base import clock, files
from rooda.base.json import Json
from rooda.errors import Cause, RoodaError
from rooda.git import clones, command, traces
from rooda.git.clones import Loan
from rooda.git.repository import Repo, find_at, read_head
from rooda.loops import registry
from rooda.loops.configuration import prices
from rooda.run import history, messages
from rooda.run.ended import at_limit
from rooda.run.history import seconds_of
from rooda.run.past_runs import past_runs, spent
from rooda.run.spending import Spent, cause_of, plus
from rooda.settings.where import Where
from rooda.tasks.outcome import Facts

LAST = 8_000  # bytes at the end of a program's output that are searched for its last error


def facts(workspace: str, config: str, running: bool = False) -> Facts:
    """Return the state and usage of the loop from the runs in a clone; all empty if no run has begun."""
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
        question="" if messages.has_note(newest.last.folder) else str(ended.get("question", "")),
    )


def higher_limit(workspace: str, name: str) -> int:
    """Return the iteration limit that lets a procedure repeat an iteration cut off by a signal; 0 if none was cut off.

    The procedure counts the iteration that was cut off, because its call was paid for, but a task repeats it. A resume
    that was killed before its first call changes nothing.
    """
    cut_off: Json | None = None
    for event in history.events_of_run(workspace, name, registry.OODA, {"iteration.ended"}):
        cut_off = event if event.get("outcome") == "interrupted" else None
    limit = int(cut_off.get("max_iterations") or 0) if cut_off else 0
    return limit + 1 if limit else 0


def _in_utc(cause: Cause | None) -> Cause | None:
    return cause._replace(until=clock.rfc3339(seconds_of(cause.until))) if cause and cause.until else cause


class Said(NamedTuple):
    """The last error or warning of a program, or else its last line; and the text from that error or warning on."""

    line: str = ""
    text: str = ""


def said(path: str, since: int = 0) -> Said:
    """Return the end of a program's output. Skips the first `since` bytes, which are from an earlier start."""
    most = min(LAST, files.size(path) - since)
    try:
        rows = files.to_text(files.tail(path, most)).splitlines() if most > 0 else []
    except OSError:
        rows = []
    rows = [row.strip() for row in rows if row.strip()]
    begins = [place for place, row in enumerate(rows) if row.startswith(("Error: ", "WARNING: "))]
    if not begins:
        return Said(rows[-1] if rows else "")
    text = [rows[begins[-1]].partition(": ")[2], *rows[begins[-1] + 1 :]]
    return Said(
        text[0], "".join(f"{row} " if row.endswith((".", ":")) else f"{row}; " for row in text)[:-1].rstrip(";")
    )


def commit_rest(root: str, message: str) -> str:
    """Commit all changes that a loop left uncommitted in its clone; return git's error, "" if there was none."""
    try:
        repo = find_at(root)
        repo = repo._replace(env=command.with_identity(repo.top, os.environ))
        if not repo.text("status", "--porcelain", "--ignore-submodules=all"):
            return ""
        repo.run_checked("add", "-A")
        repo.run_checked(
            "commit", "-q", "--no-verify", "--cleanup=whitespace", "-F", "-", stdin=files.to_bytes(message)
        )
    except (RoodaError, OSError) as problem:
        return problem.what if isinstance(problem, RoodaError) else str(problem)
    return ""


def publish(root: str, loan: Loan) -> tuple[str, str]:
    """Fetch the clone's HEAD into the repository; return the commit, and git's error, "" if there was none."""
    try:
        top, folder, _ = traces.folders(root)
        commit = traces.head_commit(root) if folder and top == os.path.realpath(root) else ""
        if not (commit := commit or read_head(find_at(root)).commit):
            return "", f"{root} has no commit"
        return commit, clones.publish(loan, root, commit)
    except (RoodaError, OSError) as problem:
        return "", problem.what if isinstance(problem, RoodaError) else str(problem)


def set_branch(repo: Repo, branch: str, commit: str) -> str:
    """Set the branch of a task to a commit; return git's error, "" if there was none."""
    done = repo.run("update-ref", f"refs/heads/{branch}", commit)
    return command.error_text(done) if done.code else ""


def facts_or_none(workspace: str, config: str) -> Facts:
    """Return the facts of the loop; all empty if the runs can't be read, for example because an agent damaged them."""
    try:
        return facts(workspace, config)
    except (RoodaError, OSError, ValueError):
        return Facts()
