"""Collects what the STATUS section of a prompt reports: events of the run, outputs of failed gates, changed files."""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rooda.base import files
from rooda.base.json import Json
from rooda.loops.procedure import feedback
from rooda.loops.procedure.feedback import Changed, Facts, Left, Output, Past
from rooda.loops.procedure.model import Procedure
from rooda.run.spending import BudgetUse

if TYPE_CHECKING:
    from rooda.run.session import Session

READ = 65_536  # bytes read from the end of a gate's output


class Status:
    """The STATUS section of a session's prompts."""

    def __init__(self, session: "Session", past: Past) -> None:
        """`past`: the iterations of the run's earlier sessions."""
        self._session, self._past = session, past
        session.subscribe(self._past.add, Past.EVENTS)

    def text(self, procedure: Procedure) -> str:
        """Return the section for the current iteration; "" if there is nothing to report."""
        past, gates = self._past, procedure.gates or ()
        notes = self._session.inbox.notes(past.number)
        if not procedure.feedback:
            return feedback.section(past, (), Facts(notes=notes)) if notes else ""
        remarks = [*feedback.remarks(procedure, past.last), *past.walls]
        if not (gates or past.has_failed or notes or remarks):
            return ""
        workspace, failed = self._session.context.workspace, past.failed(gates)
        return feedback.section(
            past,
            [gate._replace(command=self._session.clean(gate.command)) for gate in gates],
            Facts(
                left=left_of(procedure)._replace(used=self._session.used()),
                notes=notes,
                remarks=remarks,
                outputs=outputs_of(failed, workspace, self._session.clean) if failed else (),
                changed=changed_files(workspace, past.began, past.newest) if past.was_cut_off else None,
            ),
        )


def first(procedure: Procedure) -> str:
    """Return the section of a new run's first prompt."""
    facts = Facts(left_of(procedure), remarks=feedback.remarks(procedure, {}))
    return feedback.section(Past(limit=procedure.max_iterations), procedure.gates or (), facts)


def left_of(procedure: Procedure) -> Left:
    setup = procedure.setup
    used = BudgetUse(setup.budget)
    return Left(used, setup.bounds.iteration_timeout, setup.agent.cap if setup.agent else 0.0)


def outputs_of(failed: Sequence[Json], workspace: str, clean: Callable[[str], str]) -> list[Output]:
    """Return the end of each failed gate's output. `failed`: the `gate.ended` of these gates."""
    room, home = feedback.room_for(len(failed)), os.path.join(workspace, "")
    return [
        Output(record["gate"], _end(record["output"], room, clean), record["output"].removeprefix(home))
        for record in failed
    ]


def _end(path: str, room: int, clean: Callable[[str], str]) -> str:
    try:
        data = files.tail(path, READ)
    except OSError as problem:
        return f"(it can't be read: {problem.strerror})"
    if len(data) == READ:  # drop the beginning, which may be the rest of a secret that was cut in two
        data = data.partition(b"\n")[2] or data[READ // 2 :]
    return feedback.excerpt(data.decode("utf-8", "replace"), room, clean)


def ends_of(path: str) -> str:
    """Return a command's output; if it is long, only its beginning and its end."""
    try:
        data = files.tail(path, READ)
        if len(data) == READ:
            data = files.head(path, READ // 2) + data[READ // 2 :]
    except OSError as problem:
        return f"(its output can't be read: {problem.strerror})"
    return data.decode("utf-8", "replace")


def changed_files(workspace: str, began: str, newest: str) -> Changed | None:
    """Return the files that differ between two snapshots, or, without snapshots, those with uncommitted changes.

    None without a repository.
    """
    from rooda.errors import Interrupted
    from rooda.git.repository import GitProblem, find

    try:
        repo = find(workspace)
        if began and newest:
            found = repo.run_checked("diff", "--name-only", "-z", "--no-renames", began, newest).split(b"\0")
        else:
            entries = repo.run_checked("status", "--porcelain", "-z", "--untracked-files=all", "--no-renames")
            found = [entry[3:] for entry in entries.split(b"\0")]
    except (GitProblem, Interrupted):
        return None
    paths = [os.path.relpath(os.path.join(repo.top, files.to_text(each)), workspace) for each in found if each]
    return Changed(paths, exact=bool(began and newest))
