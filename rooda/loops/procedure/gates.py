"""Finds the quality gates in force for a procedure, and checks before a run that their programs exist."""

import os
from typing import TYPE_CHECKING

from rooda.base import workspace_files
from rooda.errors import ConfigProblem
from rooda.loops.procedure.model import Procedure
from rooda.run.records import Gate
from rooda.settings.layers import Settings

if TYPE_CHECKING:
    from rooda.run import gates_md


def with_gates(found: Settings, procedure: Procedure) -> Procedure:
    """Return the procedure with the gates of AGENTS.md, unless settings define its gates."""
    if procedure.gates is None:
        read = None if found.untrusted else _of_project(found.workspace, procedure.gates_from_commands)
        procedure = procedure._replace(gates=read.gates, gates_left=read.left) if read else procedure._replace(gates=())
    known = {gate.command for gate in procedure.gates or ()}
    more = tuple(gate for gate in procedure.more_gates if gate.command not in known)
    return procedure._replace(gates=(*(procedure.gates or ()), *more), more_gates=())


def _of_project(workspace: str, commands: bool) -> "gates_md.Found | None":
    path = os.path.join(workspace, "AGENTS.md")
    if not os.path.lexists(path):
        return None
    try:
        text = workspace_files.text(workspace, path)
    except OSError as problem:
        raise ConfigProblem(
            f"{path} can't be read, so its quality gates are unknown: {problem.strerror}",
            "Repair it, or run without its gates: --no-gates",
        ) from None
    from rooda.run import gate_programs, gates_md

    programs = gate_programs.programs(workspace)
    found = gates_md.read(text, path, programs)
    return gates_md.read_commands(text, path, programs) if commands and not found.gates else found


def problem(gate: Gate, workspace: str, baseline: bool = False) -> ConfigProblem | None:
    """Return an error if the gate's program does not exist; with `baseline`, a relative path may still be missing."""
    from rooda.run import gate_programs

    name = gate_programs.missing(gate.command, workspace)
    if not name or (baseline and gate_programs.is_relative(name)):
        return None
    place = f"{gate.origin}: " if gate.origin else ""
    where = f"there is no file {os.path.join(workspace, name)}" if os.sep in name else "it is not on PATH"
    return ConfigProblem(
        f"{place}the quality gate {gate.name!r} can't run: {name}: {where}",
        "Install the program, correct the command, or run without gates: --no-gates",
    )


def problems(procedure: Procedure, workspace: str, before_worktree: bool = False) -> list[ConfigProblem]:
    """Return an error for each gate whose program does not exist.

    `before_worktree`: the gates will run in a worktree that does not exist yet, so relative paths are checked later.
    """
    may_come = procedure.baseline or before_worktree
    found = [(gate, fault) for gate in procedure.gates or () if (fault := problem(gate, workspace, may_come))]
    return [ConfigProblem(each.what, _OF_TASK) if _is_of_task(procedure, gate) else each for gate, each in found]


_OF_TASK = "Install the program, or correct the task's gates: rooda tasks edit ID --gate COMMAND"


def _is_of_task(procedure: Procedure, gate: Gate) -> bool:
    """True for a gate that the user gave to a task, not to this command."""
    return procedure.in_task and gate.origin == "--gate"


def require_in_worktree(procedure: Procedure, worktree: str) -> None:
    """Raise ConfigProblem for the first gate whose program is missing in a new worktree."""
    for found in problems(procedure, worktree):
        hint = "Provide it with setup, copy or link in [worktree], or run without gates: --no-gates"
        raise ConfigProblem(found.what, hint)


def without_secrets(procedure: Procedure, workspace: str) -> Procedure:
    """Return the procedure with the secrets in its gates masked, for display."""
    if not (procedure.gates or procedure.gates_left):
        return procedure
    from rooda.base import secrets

    hidden = secrets.forms(os.environ, (workspace,))
    gates = tuple(gate._replace(command=secrets.hide(gate.command, hidden)) for gate in procedure.gates or ())
    left = tuple(each._replace(text=secrets.hide(each.text, hidden)) for each in procedure.gates_left)
    return procedure._replace(gates=gates, gates_left=left)


def left_out(procedure: Procedure) -> list[str]:
    """Return a message for each line of AGENTS.md that looks like a quality gate but is not used as one."""
    left = procedure.gates_left
    return [f"{each.origin}: not taken as a quality gate, because {each.why}: {each.text}" for each in left]


def first_status(procedure: Procedure) -> str:
    """Return the STATUS section of a new run's first prompt; "" if there is nothing to report."""
    if not procedure.feedback or not (procedure.gates or procedure.commit == "green" or procedure.in_task):
        return ""
    from rooda.loops.procedure import status

    return status.first(procedure)


def described(gate: Gate) -> str:
    """Return the gate's name, command and origin in one line."""
    command = " ".join(gate.command.split())
    named = command if gate.name == gate.command else f"{' '.join(gate.name.split())}: {command}"
    return f"{named} ({gate.origin})" if gate.origin else named
