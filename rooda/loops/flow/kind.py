"""Implements the loop kind contract (loops/registry.py) for flows. Git code is imported only when needed."""

from typing import TYPE_CHECKING

from rooda.base.json import Json
from rooda.errors import RoodaError
from rooda.views.status_table import Progress

if TYPE_CHECKING:
    import click

    from rooda.git.repository import Repo
    from rooda.loops.flow.runs import FlowRun
    from rooda.run.history import Now
    from rooda.run.seal import Doubt
    from rooda.run.setup import Setup
    from rooda.settings.layers import Settings
    from rooda.settings.where import Where

_COUNTS = ("iteration", "max_iterations")


def locks(workspace: str) -> dict[str, str]:
    """Return the work tree's lock, keyed by the name of the run that holds it; {} if it is free."""
    from rooda.processes import lock

    repo = _repo(workspace)
    if repo is None:
        return {}
    from rooda.loops.flow import repository

    path = repository.lock_path(repo.folder)
    name = repository.running_name(path) if lock.is_held(path) else ""
    return {name: path} if name else {}


def lock_of(workspace: str, name: str) -> str:
    from rooda.loops.flow import repository

    return repository.lock_path(repository.find(workspace).folder)


def resumable(workspace: str) -> list[str]:
    if not (found := _runs(workspace)):
        return []
    from rooda.loops.flow import runs

    return [run.id for run in runs.open_runs(found)]


def facts(workspace: str, name: str | None) -> list[Json]:
    """Return the status of the run NAME, or of all open runs."""
    repo = _repo(workspace)
    found = _runs(workspace)
    if not repo or not found:
        return []
    from rooda.loops.flow import runs
    from rooda.loops.flow.status import run_facts

    wanted = [run for run in found if run.id == name] if name else runs.open_runs(found)
    return [run_facts(repo, run, pid_of(repo, run.id)) for run in wanted]


def facts_of_running(workspace: str, name: str) -> Json:
    return {}  # reading the run's files and commits would start git


def name_of(facts: Json) -> str:
    return str(facts["run_id"])


def progress(facts: Json, now: "Now") -> Progress:
    """Return the top node's iteration; for a running flow it comes from events, because reading files is slow."""
    top: Json = next(iter(facts.get("nodes") or ()), {})
    iteration, most = (number if isinstance(number := top.get(key), int) else None for key in _COUNTS)
    from rooda.loops.flow.model import COMPLETE

    iteration = now.iteration if facts.get("running") else iteration
    return Progress(iteration, most, iteration, over=facts.get("status") == COMPLETE)


def lines(facts: Json) -> list[str]:
    from rooda.loops.flow.status import lines as of_status

    return of_status(facts)


def options() -> "list[click.Parameter]":
    from rooda.loops.flow.cli import run

    return run.params


def resume_options() -> set[str]:
    return {str(option.name) for option in options()}


def resume(name: str, where: "Where", typed: Json) -> int:
    from rooda.loops.flow import start

    return start.resume(name, where, typed)


def doubt(workspace: str, name: str) -> "Doubt | None":
    """Return a Doubt if the run's task has changed since the run was started here; None if it was started elsewhere."""
    from rooda.base.secrets import hide_references
    from rooda.run import folder, history
    from rooda.run.seal import Doubt

    task = next((str(run.state["task"]) for run in _runs(workspace) if run.id == name), None)
    session = history.newest(workspace, name, "flow")
    origin = folder.origin_of(session.folder) if session else {}
    if session is None or task is None or not origin or hide_references(origin["task"]) == task:
        return None
    place, said = session.folder, {**origin, "task": task}
    why = f"The task of {name} is not the one that you started it with"
    return Doubt(why, [f"task: {task}"], lambda: folder.sign_origin(place, said))


def is_name(name: str) -> bool:
    from rooda.loops.flow.model import RUN_ID

    return RUN_ID.fullmatch(name) is not None


def cancel(workspace: str, name: str, reason: str) -> str:
    from rooda.loops.flow import cancel

    return cancel.cancel(workspace, name)


def work_paths(workspace: str, name: str) -> list[str]:
    from rooda.loops.flow.model import run_folder

    return [run_folder(name)]


def setup(settings: "Settings", name: str) -> "Setup":
    from rooda.settings.setup import setup as of_kind

    return of_kind(settings, "flow", {})[0]


def pid_of(repo: "Repo", run: str) -> int | None:
    """Return the PID of the process that is working on this run; None if there is none."""
    from rooda.loops.flow import repository
    from rooda.processes import lock

    path = repository.lock_path(repo.folder)
    if not lock.is_held(path) or repository.running_name(path) != run:
        return None
    pid = lock.owner(path).get("pid")
    return pid if isinstance(pid, int) else None


def _runs(workspace: str) -> "list[FlowRun]":
    repo = _repo(workspace)
    if repo is None:
        return []
    from rooda.loops.flow import runs

    return runs.find_all(repo)


def _repo(workspace: str) -> "Repo | None":
    """Return the repository of the workspace; None if there is none."""
    from rooda.loops.flow import repository

    try:
        return repository.find(workspace)
    except RoodaError:
        return None


if TYPE_CHECKING:  # mypy checks that this module keeps the contract
    from rooda.loops import registry
    from rooda.loops.flow import kind  # noqa: PLW0406 - the module itself, for mypy

    _CONTRACT: registry.Kind = kind
