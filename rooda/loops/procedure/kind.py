"""Implements the interface of a loop kind (Kind in loops/registry.py) for procedures."""

import os
from typing import TYPE_CHECKING

from rooda.base import files
from rooda.base.json import Json
from rooda.base.text import counted, format_seconds, parse_seconds, timing_text
from rooda.errors import StateDamaged
from rooda.loops.procedure import state as procedure_state
from rooda.loops.procedure import store
from rooda.loops.procedure.state import COMPLETED, timing
from rooda.loops.procedure.store import Place
from rooda.processes import lock
from rooda.run.ended import of_file
from rooda.views.status_table import Progress

if TYPE_CHECKING:
    import click

    from rooda.errors import ConfigProblem
    from rooda.loops.procedure.model import Procedure
    from rooda.run.history import Now
    from rooda.run.records import Gate
    from rooda.run.seal import Doubt
    from rooda.run.setup import Setup
    from rooda.settings.layers import Settings
    from rooda.settings.where import Where


def locks(workspace: str) -> dict[str, str]:
    return {name: Place(workspace, name).lock for name in store.locks(workspace)}


def lock_of(workspace: str, name: str) -> str:
    return Place(workspace, name).lock


def resumable(workspace: str) -> list[str]:
    return [name for name in store.names(workspace) if can_resume(Place(workspace, name))]


def can_resume(place: Place) -> bool:
    try:
        state = store.load_state(place)
    except StateDamaged:
        return False
    return state is not None and procedure_state.can_resume(state.status)


def facts(workspace: str, name: str | None) -> list[Json]:
    names = [name] if name else sorted({*store.names(workspace), *store.with_deleted_files(workspace)})
    return [found for each in names if (found := _facts(Place(workspace, each)))]


def _facts(place: Place) -> Json:
    """Return a procedure's details from its state file and lock; {} if it has neither."""
    running = lock.is_held(place.lock)
    pid = lock.owner(place.lock).get("pid") if running else None
    try:
        state = store.load_state(place)
    except StateDamaged as problem:
        return {"procedure_name": place.procedure, "status": "damaged", "problem": problem.why, "running": running}
    if state is None:
        return {"procedure_name": place.procedure, "status": "running", "running": True, "pid": pid} if running else {}
    durations = map(parse_seconds, state.elapsed_per_iteration)
    return {**state._asdict(), "running": running, "pid": pid, "timing": timing(durations)}


def facts_of_running(workspace: str, name: str) -> Json:
    return next(iter(facts(workspace, name)), {})


def name_of(facts: Json) -> str:
    return str(facts["procedure_name"])


def progress(facts: Json, now: "Now") -> Progress:
    iteration = facts.get("iteration")
    failures = f"{facts['consecutive_failures']}/{facts['failure_threshold']}" if "iteration" in facts else ""
    return Progress(
        iteration,
        facts.get("max_iterations"),
        now.iteration or iteration,
        failures,
        started_at=facts.get("started_at") or "",
        last=facts.get("last_iteration_at") or "",
        over=not (facts["running"] or procedure_state.can_resume(facts["status"])),
    )


def lines(facts: Json) -> list[str]:
    name, status = facts["procedure_name"], facts["status"]
    if status == "damaged":
        return [f"{name}: state file is damaged ({facts['problem']}); start over with: rooda {name}"]
    if "iteration" not in facts:
        return [f"{name}: running (pid {facts['pid']})"]
    bound = f"/{facts['max_iterations']}" if facts["max_iterations"] else ""
    spent = format_seconds(sum(map(parse_seconds, facts["elapsed_per_iteration"])))
    done = f"{facts['iteration']}{bound} iterations" if bound else counted(facts["iteration"], "iteration")
    rows = [f"{name}: {_word(facts)}, {done} completed in {spent}"]
    rows.append(f"  failures in a row: {facts['consecutive_failures']}/{facts['failure_threshold']}")
    rows.append(f"  started {facts['started_at']}, last iteration {facts['last_iteration_at'] or 'none yet'}")
    if facts["timing"]:
        rows.append(f"  Iteration timing: {timing_text(facts['timing'])}")
    if not facts["running"] and status != COMPLETED:
        resume = procedure_state.resume_command(name, facts["iteration"], facts["max_iterations"])
        rows.append(f"  resume with: {facts.get('resume') or resume}")
    return rows


def _word(facts: Json) -> str:
    word = str(facts.get("shown_status") or of_file(facts["status"]))
    return f"{word} (pid {facts['pid']})" if facts["running"] else word


def options() -> "list[click.Parameter]":
    from rooda.loops.options import for_start

    return for_start()


def resume_options() -> set[str]:
    return {str(option.name) for option in options()}


def resume(name: str, where: "Where", typed: Json) -> int:
    from rooda.loops.procedure.start import resume as go_on

    return go_on(name, where, typed)


def doubt(workspace: str, name: str) -> "Doubt | None":
    return None  # the state file contains no commands


def is_name(name: str) -> bool:
    return False  # any word can be a procedure's name


def cancel(workspace: str, name: str, reason: str) -> str:
    place = Place(workspace, name)
    if not os.path.lexists(place.state):
        return ""
    files.remove(place.state)
    return f"Its state file was deleted; its run is kept. See: rooda logs {name}"


def work_paths(workspace: str, name: str) -> list[str]:
    return []


def setup(settings: "Settings", name: str) -> "Setup":
    from rooda.loops.procedure import settings as procedure_settings

    return procedure_settings.procedure(settings, name, {}).setup


def first_prompt(settings: "Settings", name: str) -> str:
    """Return the prompt for the first iteration."""
    from rooda.loops.procedure import effects, gates

    procedure = _with_gates(settings, name)
    return effects.prompt_text(settings.workspace, procedure, 1, gates.first_status(procedure))


def gates_in_force(settings: "Settings", name: str) -> "list[tuple[str, str, ConfigProblem | None]]":
    """Return the name and description of each quality gate, and an error if its program does not exist."""
    from rooda.loops.procedure import gates

    procedure, place = _with_gates(settings, name), settings.workspace
    baseline = procedure.baseline
    problems = [gates.problem(gate, place, baseline) for gate in procedure.gates or ()]
    shown = gates.without_secrets(procedure, place).gates or ()
    return [(gate.name, gates.described(gate), each) for gate, each in zip(shown, problems, strict=True)]


def gates_to_run(settings: "Settings", name: str) -> "tuple[Gate, ...]":
    return _with_gates(settings, name).gates or ()


def gates_left(settings: "Settings", name: str) -> list[str]:
    """Return a message for each line of AGENTS.md that looks like a quality gate but is not used as one."""
    from rooda.loops.procedure import gates

    return gates.left_out(gates.without_secrets(_with_gates(settings, name), settings.workspace))


def _with_gates(settings: "Settings", name: str) -> "Procedure":
    from rooda.loops.procedure import gates
    from rooda.loops.procedure import settings as procedure_settings

    return gates.with_gates(settings, procedure_settings.procedure(settings, name, {}))


if TYPE_CHECKING:  # mypy checks that this module implements the interface
    from rooda.loops import registry
    from rooda.loops.procedure import kind  # noqa: PLW0406 - this module, so that mypy checks its type

    _CONTRACT: registry.Kind = kind
