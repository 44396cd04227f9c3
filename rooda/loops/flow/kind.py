"""The contract of flows (loops/registry.py)."""

from typing import TYPE_CHECKING

from rooda.base.json import Json
from rooda.errors import RoodaError
from rooda.git.repository import Repo
from rooda.loops.flow import repository
from rooda.loops.flow.repository import lock_path, running_name
from rooda.processes import lock
from rooda.views.status_table import Progress

if TYPE_CHECKING:
    import click

    from rooda.loops.flow.runs import Known
    from rooda.run.history import Now
    from rooda.run.setup import Setup
    from rooda.settings.layers import Settings
    from rooda.settings.where import Where

_COUNTS = ("iteration", "max_iterations")


def locks(workspace: str) -> dict[str, str]:
    """One lock for the work tree: it bears the name of the run that holds it."""
    repo = _repo(workspace)
    path = lock_path(repo.folder) if repo else ""
    name = running_name(path) if path and lock.is_held(path) else ""
    return {name: path} if name else {}


def lock_of(workspace: str, name: str) -> str:
    return lock_path(repository.found(workspace).folder)


def resumable(workspace: str) -> list[str]:
    if not (runs := _runs(workspace)):
        return []
    from rooda.loops.flow import runs as flow_runs

    return [run.id for run in flow_runs.running(runs)]


def facts(workspace: str, name: str | None) -> list[Json]:
    """NAME, or all that are open."""
    repo = _repo(workspace)
    runs = _runs(workspace)
    if not repo or not runs:
        return []
    from rooda.loops.flow import runs as flow_runs
    from rooda.loops.flow.inspect import of_run

    wanted = [run for run in runs if run.id == name] if name else flow_runs.running(runs)
    return [of_run(repo, run, pid_of(repo, run.id)) for run in wanted]


def facts_of_running(workspace: str, name: str) -> Json:
    return {}  # its files and commits take git processes to read


def name_of(facts: Json) -> str:
    return str(facts["run_id"])


def progress(facts: Json, now: "Now") -> Progress:
    """The iteration of the top node; of a run at work by its events, since reading its files is slow."""
    top: Json = next(iter(facts.get("nodes") or ()), {})
    iteration, most = (number if isinstance(number := top.get(key), int) else None for key in _COUNTS)
    iteration = now.iteration if facts.get("running") else iteration
    return Progress(iteration, most, iteration)


def lines(facts: Json) -> list[str]:
    from rooda.loops.flow.inspect import lines as of_status

    return of_status(facts)


def options() -> "list[click.Parameter]":
    from rooda.loops.flow.cli import run

    return run.params


def resume_options() -> set[str]:
    return {str(option.name) for option in options()}


def resume(name: str, where: "Where", typed: Json) -> int:
    from rooda.loops.flow.cli import resumed

    return resumed(name, where, typed)


def pid_of(repo: Repo, run: str) -> int | None:
    """Who works at this run now."""
    path = lock_path(repo.folder)
    if not lock.is_held(path) or running_name(path) != run:
        return None
    pid = lock.owner(path).get("pid")
    return pid if isinstance(pid, int) else None


def _runs(workspace: str) -> "list[Known]":
    repo = _repo(workspace)
    if repo is None:
        return []
    from rooda.loops.flow import runs

    return runs.known(repo)


def _repo(workspace: str) -> Repo | None:
    try:
        return repository.found(workspace)
    except RoodaError:
        return None


def is_name(name: str) -> bool:
    from rooda.loops.flow.model import RUN_ID

    return RUN_ID.fullmatch(name) is not None


def close(workspace: str, name: str, reason: str) -> bool:
    return False


def work_paths(workspace: str, name: str) -> list[str]:
    from rooda.loops.flow.model import run_folder

    return [run_folder(name)]


def setup(settings: "Settings", name: str) -> "Setup":
    from rooda.settings.setup import setup as of_kind

    return of_kind(settings, "flow", {})[0]
