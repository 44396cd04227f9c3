"""Implements the interface of a loop kind (Kind in loops/registry.py) for reflex loops."""

import os
from typing import TYPE_CHECKING

from rooda.base.json import Json
from rooda.loops.reflex import files, status
from rooda.loops.reflex.files import Place
from rooda.loops.reflex.rules import is_alias
from rooda.loops.reflex.state import RUNNING
from rooda.processes import lock
from rooda.views.status_table import Progress

if TYPE_CHECKING:
    import click

    from rooda.run.history import Now
    from rooda.run.seal import Doubt
    from rooda.run.setup import Setup
    from rooda.settings.layers import Settings
    from rooda.settings.where import Where


_LOCKS = "locks/reflex-"


def locks(workspace: str) -> dict[str, str]:
    return {alias: Place(workspace, alias).lock for alias in sorted({*files.aliases(workspace), *_recorded(workspace)})}


def _recorded(workspace: str) -> list[str]:
    """Return the names of running or killed loops, even of those whose files an agent has deleted."""
    left = (name.removeprefix(_LOCKS) for name in lock.recorded(workspace) if name.startswith(_LOCKS))
    return [alias for name in left if is_alias(alias := name.removesuffix(".lock"))]


def _cleaned_away(workspace: str) -> list[str]:
    """Return the names of running loops, even of those whose files an agent has deleted."""
    return [alias for alias in _recorded(workspace) if lock.is_held(Place(workspace, alias).lock)]


def lock_of(workspace: str, name: str) -> str:
    return Place(workspace, name).lock


def resumable(workspace: str) -> list[str]:
    return files.running(workspace)


def facts(workspace: str, name: str | None) -> list[Json]:
    """Return the details of the loop NAME; without a name, of all loops that run or can be resumed."""
    known = locks(workspace) if name else sorted({*files.running(workspace), *_cleaned_away(workspace)})
    return [status.facts_of(Place(workspace, alias)) for alias in known if name in (None, alias)]


def facts_of_running(workspace: str, name: str) -> Json:
    return next(iter(facts(workspace, name)), {})


def name_of(facts: Json) -> str:
    return str(facts["task_alias"])


def progress(facts: Json, now: "Now") -> Progress:
    iteration = facts.get("iteration")
    return Progress(
        iteration,
        facts.get("max_iterations"),
        iteration,
        str(facts.get("stagnation_count", "")),
        started_at=facts.get("created_at", ""),
        last=facts.get("updated_at", ""),
        over=facts["status"] != RUNNING,
    )


def lines(facts: Json) -> list[str]:
    return status.lines(facts)


def options() -> "list[click.Parameter]":
    from rooda.loops.reflex.cli import new

    return new.params


def resume_options() -> set[str]:
    return {str(option.name) for option in options()} | {"max_iterations"}


def resume(name: str, where: "Where", typed: Json) -> int:
    from rooda.loops.reflex.start import resume_loop

    assert is_alias(name)
    return resume_loop(Place(where.workspace, name), where, typed)


def doubt(workspace: str, name: str) -> "Doubt | None":
    return files.doubt(Place(workspace, name))


def is_name(name: str) -> bool:
    return False  # any word can be a loop's name


def cancel(workspace: str, name: str, reason: str) -> str:
    from rooda.loops.reflex import store

    place = Place(workspace, name)
    if store.close(place, reason or "cancelled") is None:
        return ""
    return f"Its files are kept: {os.path.dirname(place.shown_artifact)}. Remove them with: rooda reflex clean {name}"


def work_paths(workspace: str, name: str) -> list[str]:
    """Return the path of the loop's folder, and of the pointer file unless that names another loop."""
    pointer = [f"{files.HOME}/current.json"] if files.active(workspace) in (None, name) else []
    return [f"{files.HOME}/{name}", *pointer]


def setup(settings: "Settings", name: str) -> "Setup":
    from rooda.settings.setup import setup as of_kind

    return of_kind(settings, "reflex", {})[0]


if TYPE_CHECKING:  # mypy checks that this module implements the interface
    from rooda.loops import registry
    from rooda.loops.reflex import kind  # noqa: PLW0406 - the module itself, for mypy

    _CONTRACT: registry.Kind = kind
