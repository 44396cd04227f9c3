"""Resolves names of loops, runs and procedures on the command line; finds the secrets to hide in output."""

import os
from typing import TYPE_CHECKING

import click

from rooda.base import files
from rooda.base.text import escape_line
from rooda.errors import RoodaError, UsageProblem
from rooda.git import traces
from rooda.loops import registry
from rooda.loops.options import items, place_of_tab
from rooda.processes import lock
from rooda.run import folder, history
from rooda.run.events import NAME
from rooda.settings.where import Where, parent_hint, valid_name, where

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

TASKS_RUN = "rooda tasks run"


def loop_of(here: Where, word: str) -> str:
    """Return the name of a loop, given that name or the ID of one of its runs."""
    name = valid_name(word)
    is_run = folder.is_id(name) and os.path.isdir(os.path.join(here.workspace, folder.RUNS, name))
    return folder.loop_of(name) if is_run else name


def warn_of_settings(here: Where) -> None:
    """Print the warnings about settings, such as misspelled keys, on stderr; errors don't stop the command."""
    from rooda.settings import layers

    files = (here.config or layers.workspace_file(here.workspace), layers.user_file(os.environ))
    if not any(map(os.path.lexists, files)):
        return
    from rooda.loops import configuration

    try:
        found = configuration.load(here.workspace, here.config).warnings
    except RoodaError as problem:
        found = (problem.what,)
    for text in found:
        click.echo(f"WARNING: {escape_line(text)}", err=True)


def kind_of(here: Where, name: str) -> str:
    """Return the kind of the loop with this name, running or not. An unknown name counts as a procedure."""
    known = (loop.kind for loop in registry.known(here.workspace) if loop.name == name)
    formed = (kind for kind in registry.KINDS if registry.kind(kind).is_name(name))
    return next(known, next(formed, registry.OODA))


def require_known(here: Where, name: str) -> None:
    """Raise UsageProblem if no procedure, loop or run has this name."""
    if unknown := hint(here, valid_name(name)):
        raise UsageProblem(f"No runs of '{name}' recorded here. No procedure has this name either.", unknown)


def hint(here: Where, name: str) -> str:
    """Return advice about an unknown name, such as the nearest known one; "" for a known name."""
    known = _known(here)
    if name in known:
        return ""
    from rooda.settings.types import nearest

    near = nearest(name, known)
    return f"Did you mean '{near}'?" if near else "See the names with: rooda list, rooda status"


def say_no_runs(here: Where, name: str | None) -> None:
    """Print that there are no runs, or none with this name. Raises UsageProblem if the name is unknown."""
    if name:
        require_known(here, name)
    click.echo(f"No runs of '{name}' recorded here." if name else "No runs recorded here.", err=True)
    say_parent_hint(here.workspace)


def say_parent_hint(workspace: str) -> None:
    if there := parent_hint(workspace):
        click.echo(there, err=True)


def of_tasks(here: Where) -> str:
    """Return a line about `rooda tasks run` if it is active here, else about open tasks; "" if there is neither."""
    if not _has_tasks(here):
        return ""
    from rooda.tasks import store, view

    command = ""
    try:
        place = store.place_of(here.workspace)
        if lock.is_held(place.runner):
            return f"`{TASKS_RUN}` is running here (pid {lock.owner(place.runner).get('pid', 'unknown')}): rooda tasks"
        tasks = store.Store(place)
        for number in reversed(tasks.ids()):
            task = tasks.look(number)
            command = (view.command(task) if task else "") or command
            if command == TASKS_RUN:
                break
    except (OSError, RoodaError):  # git can't read the repository
        return ""
    return f"There are open tasks (rooda tasks). To continue: {command}" if command else ""


def _has_tasks(here: Where) -> bool:
    """True if the repository has ever had a task. Does not run git, because `rooda status` must be fast."""
    common = traces.folders(here.workspace)[2]
    return bool(common) and os.path.exists(os.path.join(common, "rooda", "tasks", "log.jsonl"))


def other_runs(here: Where) -> str:
    """Return a line that says where the runs of tasks and worktrees are listed; "" if there are none."""
    from rooda.git import worktrees

    has_worktrees = bool(files.list_folder(worktrees.folder_of(here.workspace)))
    found = ["runs of tasks (rooda tasks)"] if _has_tasks(here) else []
    found += ["runs in worktrees (rooda -C .rooda/worktrees/NAME runs)"] if has_worktrees else []
    return f"Not listed: {' and '.join(found)}" if found else ""


def say_if_unsigned(run: str) -> bool:
    """Warn, and return True, if this user has not signed the log of a run: someone else may have written it."""
    path = os.path.join(run, NAME)
    doubtful = not history.is_signed(path) and (history.has_end(path) or not folder.origin_of(run).get("signed"))
    if doubtful:
        click.echo(f"WARNING: {path}: this record is not signed by you; someone else may have written it.", err=True)
    return doubtful


def _known(here: Where) -> list[str]:
    loops = [loop.name for loop in (*registry.known(here.workspace), *registry.resumable(here.workspace))]
    runs, only_names = _runs(here), [row.only_name for row in registry.KINDS.values() if row.only_name]
    return list(dict.fromkeys([*_procedures(here), *only_names, *loops, *map(folder.loop_of, runs), *runs]))


def _runs(here: Where) -> list[str]:
    return [os.path.basename(path) for path in folder.all_of(here.workspace, None)]


def _procedures(here: Where) -> list[str]:
    from rooda.loops import configuration
    from rooda.settings import procedures

    try:
        return procedures.names(configuration.load(here.workspace, here.config))
    except RoodaError:
        return []


def tab_loops(ctx: click.Context, _: click.Parameter, incomplete: str) -> list["CompletionItem"]:
    """Complete names of loops; if the word begins with a digit, also IDs of runs."""
    here = place_of_tab(ctx)
    runs = _runs(here)
    loops = dict.fromkeys(map(folder.loop_of, runs), "a loop")
    for loop in (*registry.known(here.workspace), *registry.resumable(here.workspace)):
        loops[loop.name] = _noun(loop)
    return items(sorted(loops.items()) + [(run, "a run") for run in runs if incomplete[:1].isdigit()], incomplete)


def tab_resumable(ctx: click.Context, _: click.Parameter, incomplete: str) -> list["CompletionItem"]:
    loops = registry.resumable(place_of_tab(ctx).workspace)
    return items(((loop.name, _noun(loop)) for loop in loops), incomplete)


def tab_open(ctx: click.Context, _: click.Parameter, incomplete: str) -> list["CompletionItem"]:
    """Complete names of loops that run or can be resumed."""
    workspace = place_of_tab(ctx).workspace
    running = (loop for loop in registry.known(workspace) if lock.is_held(loop.lock))
    return items(((loop.name, _noun(loop)) for loop in (*running, *registry.resumable(workspace))), incomplete)


def _noun(loop: registry.Loop) -> str:
    return "a procedure" if loop.kind == registry.OODA else f"a {loop.kind} loop"


def keys() -> tuple[str, ...]:
    """Return the secrets that a command masks in its output."""
    from rooda.loops import masking

    return masking.keys(where(click.get_current_context()))
