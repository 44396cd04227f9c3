"""The gates of a landing: those of the target's tip, and the task's own, each run on the result."""

from typing import NamedTuple

from rooda.agents.command import base_environment
from rooda.base import files
from rooda.errors import Interrupted
from rooda.git.repository import Repo
from rooda.loops import registry
from rooda.processes import supervise
from rooda.processes.signals import Signals
from rooda.run.commands import verdict
from rooda.run.records import CommandResult, Gate
from rooda.settings.layers import Settings
from rooda.tasks.model import PROCEDURE, Task

CAP = 10_000_000  # bytes of output kept


class Result(NamedTuple):
    """The result of one gate; `verdict` is "" if it passed."""

    verdict: str
    output: str


def of_target(found: Settings, clone: Repo, task: Task) -> list[Gate]:
    """Return the gates in force at the target's tip, which is checked out in the clone, and the task's own."""
    name = task.name if task.kind == PROCEDURE else "build"
    theirs = registry.gates_to_run(found._replace(workspace=clone.workspace), name)
    known = {gate.command for gate in theirs}
    return [*theirs, *(Gate(text, text, origin=f"task {task.id}") for text in task.gates if text not in known)]


def run(gate: Gate, clone: Repo, output: str) -> Result:
    """Run a gate in the clone. Raises Interrupted at a signal."""
    files.remove(output)
    spec = supervise.Spec(
        ["/bin/sh", "-c", gate.command], clone.workspace, base_environment(), output, timeout=gate.timeout, cap=CAP
    )
    with Signals() as signals:
        done = supervise.run(spec, signals)
        if done.ended == "interrupted":
            raise Interrupted(signals.first)
    result = CommandResult(done.code, done.seconds, done.ended, output, done.size)
    return Result(verdict(result, gate, clone.workspace), files.to_text(files.tail(output, 16_000)))
