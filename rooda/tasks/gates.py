"""Runs the gates of a landing on the commit that would land: the gates of the target's tip, and the task's own."""

import os
from contextlib import nullcontext
from typing import NamedTuple

from rooda.agents.command import base_environment
from rooda.base import files
from rooda.errors import Interrupted
from rooda.git.repository import Repo
from rooda.loops import registry
from rooda.processes import supervise
from rooda.processes.signals import Signals
from rooda.run import gates_md
from rooda.run.commands import verdict
from rooda.run.records import CommandResult, Gate
from rooda.run.setup import is_walled
from rooda.settings.layers import Settings
from rooda.tasks.model import PROCEDURE, Task

CAP = 10_000_000  # bytes of output that are kept
SHOWN = 16_000  # bytes of the output's end for the next prompt
AGENTS_MD = "AGENTS.md"


class Result(NamedTuple):
    """The result of one gate; `verdict` is "" if it passed."""

    verdict: str
    output: str


def of_target(found: Settings, task: Task) -> list[Gate]:
    """Return the task's own gates, and those of `found`, the settings of a checkout of the target's tip."""
    theirs = registry.gates_to_run(found, _procedure(task))
    known = {gate.command for gate in theirs}
    return [*theirs, *(Gate(text, text, origin=f"task {task.id}") for text in task.gates if text not in known)]


def _procedure(task: Task) -> str:
    return task.name if task.kind == PROCEDURE else "build"


def run(found: Settings, task: Task, gate: Gate, clone: Repo, output: str) -> Result:
    """Run a gate in the clone, with a sandbox if the settings require one. Raises Interrupted if a signal arrives."""
    files.remove(output)
    argv = ["/bin/sh", "-c", gate.command]
    spec = supervise.Spec(argv, clone.workspace, base_environment(), output, timeout=gate.timeout, cap=CAP)
    setup = registry.kind(registry.OODA).setup(found._replace(workspace=clone.workspace), _procedure(task))
    walls = None
    if is_walled(setup):
        from rooda.run.walls import SessionWalls

        walls = SessionWalls(clone.workspace, setup, spec.env)
        spec = walls.around(spec)
    with Signals() as signals:
        with walls.watched(os.path.dirname(output), lambda event: None) if walls else nullcontext():
            done = supervise.run(spec, signals)
        if walls:
            walls.close()
        if done.ended == "interrupted":
            raise Interrupted(signals.first)
    result = CommandResult(done.code, done.seconds, done.ended, output, done.size, done.note)
    return Result(verdict(result, gate, clone.workspace), files.to_text(files.tail(output, SHOWN)))


def decides(clone: Repo, name: str, tip: str, commit: str) -> bool:
    """True if a change to a watched file affects what is run or checked. In AGENTS.md only the commands count."""
    if os.path.basename(name) != AGENTS_MD:
        return True
    before, after = (clone.run("cat-file", "blob", f"{each}:{name}") for each in (tip, commit))
    return _commands(before.out) != _commands(after.out)


def _commands(data: bytes) -> list[tuple[str, float]]:
    text = files.to_text(data)
    found = (*gates_md.gates(text), *gates_md.commands(text))
    return [(gate.command, gate.timeout) for gate in found]
