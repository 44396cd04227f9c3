"""Implements the loop kind contract (loops/registry.py) for goals."""

import os
from typing import TYPE_CHECKING

from rooda.base.json import Json
from rooda.errors import StateDamaged
from rooda.loops.goal.files import NAME, Place
from rooda.processes import lock
from rooda.views.status_table import Progress

if TYPE_CHECKING:
    import click

    from rooda.loops.goal.state import GoalState
    from rooda.run.history import Now
    from rooda.run.seal import Doubt
    from rooda.run.setup import Setup
    from rooda.settings.layers import Settings
    from rooda.settings.where import Where


_LOCK = os.path.join("locks", f"{NAME}-{NAME}.lock")


def locks(workspace: str) -> dict[str, str]:
    path = Place(workspace).lock
    return {NAME: path} if os.path.exists(path) or _LOCK in lock.recorded(workspace) else {}


def lock_of(workspace: str, name: str) -> str:
    return Place(workspace).lock


def running(workspace: str) -> dict[str, str]:
    return {name: path for name, path in locks(workspace).items() if lock.is_held(path)}


def resumable(workspace: str) -> list[str]:
    try:
        return [NAME] if _is_unfinished(_state(Place(workspace))) else []
    except StateDamaged:
        return []


def facts(workspace: str, name: str | None) -> list[Json]:
    """Return the status of the workspace's goal as a list of one entry, or [] if there is none."""
    place = Place(workspace)
    held = bool(running(workspace))
    pid = lock.owner(place.lock).get("pid") if held else None
    if name not in (None, NAME):
        return []
    try:
        state = _state(place)
    except StateDamaged as problem:
        from rooda.loops.goal import foreign

        what = "" if held else foreign.shown(place)
        word, why = ("foreign", what) if what else ("damaged", problem.why)
        return [{"name": NAME, "loop": NAME, "status": word, "problem": why, "running": held, "pid": pid}]
    if state is None or (held and not _is_unfinished(state)):  # files of an ended goal
        return [{"name": NAME, "loop": NAME, "status": "planning", "running": True, "pid": pid}] if held else []
    from rooda.loops.goal import table

    return [table.facts(state, held, pid)]


def _state(place: Place) -> "GoalState | None":
    """Load the goal's state; the store is imported only if a goal exists."""
    if not os.path.lexists(os.path.dirname(place.run)):
        return None
    from rooda.loops.goal.store import load

    return load(place)


def _is_unfinished(state: "GoalState | None") -> bool:
    if state is None:
        return False
    from rooda.loops.goal.state import UNFINISHED

    return state.status in UNFINISHED


def _is_open(status: str) -> bool:
    from rooda.loops.goal.state import UNFINISHED

    return status in UNFINISHED


def facts_of_running(workspace: str, name: str) -> Json:
    return next(iter(facts(workspace, name)), {})


def name_of(facts: Json) -> str:
    return str(facts["name"])


def progress(facts: Json, now: "Now") -> Progress:
    iteration = facts.get("iteration")
    failures = str(facts.get("stuckCount", ""))
    over = "iteration" in facts and not _is_open(facts["status"])
    return Progress(
        iteration,
        facts.get("max_iterations"),
        now.iteration or iteration,
        failures,
        started_at=facts.get("started_at", ""),
        last=facts.get("updated_at", ""),
        over=over,
    )


def lines(facts: Json) -> list[str]:
    if facts["status"] == "damaged":
        return [f"goal: its files are damaged ({facts['problem']}); start over with: rooda goal run --fresh SPEC"]
    if facts["status"] == "foreign":
        return [f"goal: not written by rooda: {facts['problem']}", "  start with: rooda goal run SPEC; it asks first"]
    from rooda.loops.goal import table

    return [f"goal: planning (pid {facts['pid']})"] if facts["status"] == "planning" else table.lines(facts)


def options() -> "list[click.Parameter]":
    from rooda.loops.goal.cli import VERBS

    return VERBS["run"][2]()


def resume_options() -> set[str]:
    return {str(option.name) for option in options()} | {"max_iterations"}


def resume(name: str, where: "Where", typed: Json) -> int:
    from rooda.loops.goal import resume as goal_resume

    return goal_resume.continue_(where, typed)


def doubt(workspace: str, name: str) -> "Doubt | None":
    place = Place(workspace)
    if not os.path.lexists(os.path.dirname(place.run)):
        return None
    from rooda.loops.goal import store

    return store.doubt(place)


def is_name(name: str) -> bool:
    return name == NAME


def cancel(workspace: str, name: str, reason: str) -> str:
    from rooda.loops.goal import commands

    return commands.end(Place(workspace), keep=False)


def work_paths(workspace: str, name: str) -> list[str]:
    return []


def setup(settings: "Settings", name: str) -> "Setup":
    from rooda.settings.setup import setup as of_kind

    return of_kind(settings, "goal", {}, price_raw=True)[0]


if TYPE_CHECKING:  # mypy checks that this module keeps the contract
    from rooda.loops import registry
    from rooda.loops.goal import kind  # noqa: PLW0406 - the module itself, for mypy

    _CONTRACT: registry.Kind = kind
