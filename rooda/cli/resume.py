"""`rooda resume [NAME]` resumes a run; `rooda resume --all` resumes every run that was cut off."""

import os
import shlex
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import click
from click.core import ParameterSource

from rooda.base import files
from rooda.base.dirs import shipped
from rooda.cli import common
from rooda.cli.exits import ERROR, WARNING
from rooda.errors import FAILED, OK, UNDECIDED, Interrupted, RoodaError, Undecided, UsageProblem
from rooda.git import traces
from rooda.loops import launch, options, registry, signed, trusting
from rooda.loops.registry import Loop
from rooda.processes import capture, detach, lock
from rooda.processes.guardian import MANAGER_VARIABLES
from rooda.processes.signals import StopRequest
from rooda.run import folder, history, workspaces
from rooda.run.ended import cut_off
from rooda.run.events import VERSION
from rooda.settings.where import Where, parent_hint, where, with_typed


@click.pass_context
def _resume(ctx: click.Context, /, name: str | None, everything: bool, wait: bool, **typed: object) -> int:
    here = with_typed(where(ctx), typed)
    if everything or wait:
        return _everything(ctx, here, name, everything, wait)
    loop = _named(here, common.loop_of(here, name)) if name is not None else _only_candidate(here)
    _require_its_own(ctx, loop)
    return registry.kind(loop.kind).resume(loop.name, here, typed)


def _require_its_own(ctx: click.Context, loop: Loop) -> None:
    """Raise UsageProblem if an option was given that loops of this kind don't have."""
    if loop.kind == registry.OODA:
        return
    own = {*registry.kind(loop.kind).resume_options(), "warn_unknown"}
    for option in ctx.command.params:
        if isinstance(option, click.Option) and option.name not in own and _is_typed(ctx, str(option.name)):
            flag = max(option.opts, key=len)
            raise UsageProblem(f"{flag} is not an option of '{loop.name}', a {loop.kind} loop; nothing was started.")


def _is_typed(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) == ParameterSource.COMMANDLINE


def _everything(ctx: click.Context, here: Where, name: str | None, everything: bool, wait: bool) -> int:
    if not everything:
        raise UsageProblem("--wait requires --all.")
    given = [key for key in ctx.params if _is_typed(ctx, key)]
    if name is not None or {*given} - {"everything", "wait", "directory", "config"}:
        raise UsageProblem(
            "--all takes neither NAME nor run options: each run keeps the options that it was started with."
        )
    if wait:
        from rooda.cli.service import supervised

        return supervised(here)

    return resume_all(here)[0]


def _named(here: Where, name: str) -> Loop:
    """Return the resumable loop with this name; if there is none, a loop whose `resume` reports the reason.

    Raises Undecided if several loops have the name, and UsageProblem if it is unknown.
    """
    found = [loop for loop in registry.resumable(here.workspace) if loop.name == name]
    if found:
        return _one(found)
    for loop in registry.known(here.workspace):  # a running loop whose files were deleted
        if loop.name == name and lock.is_held(loop.lock):
            raise launch.already_running(loop.lock, f"{registry.noun(loop.kind)} '{name}'", name)
    kind = common.kind_of(here, name)
    nothing = kind == registry.OODA and not registry.kind(kind).facts(here.workspace, name)
    if nothing and (unknown := common.hint(here, name)):
        raise UsageProblem(f"No saved state for procedure '{name}'.", unknown)
    return Loop(kind, name)


def _only_candidate(here: Where) -> Loop:
    """Return the only loop that can be resumed. Raises Undecided if there are several, UsageProblem if none."""
    found = [*registry.resumable(here.workspace)] or _damaged(here)
    if not found:
        otherwise = "Start with `rooda build`, or see `rooda list`."
        raise UsageProblem("Nothing to resume here.", parent_hint(here.workspace) or common.of_tasks(here) or otherwise)
    idle = [loop for loop in found if not _runs(here, loop)]
    return _one(idle or found)


def _damaged(here: Where) -> list[Loop]:
    """Return this workspace's loops whose state files are damaged. Resuming one reports the damage."""
    return [Loop(kind, name) for kind in registry.kinds_in(here.workspace) for name in damaged(here.workspace, kind)]


def _runs(here: Where, loop: Loop) -> bool:
    path = registry.kind(loop.kind).locks(here.workspace).get(loop.name)
    return path is not None and lock.is_held(path)


def _one(found: list[Loop]) -> Loop:
    if len(found) > 1:
        rows = "\n".join(f"  {_command(loop)}" for loop in found)
        raise Undecided("Several runs can be resumed; name one.", rows)
    return found[0]


def _command(loop: Loop) -> str:
    return registry.KINDS[loop.kind].resume.format(name=loop.name)


resume = click.Command(
    "resume",
    callback=_resume,
    params=[
        click.Argument(["name"], required=False, shell_complete=common.tab_resumable),
        click.Option(["--all", "everything"], is_flag=True, help="Resume every cut-off run, in all workspaces."),
        click.Option(["--warn-unknown"], is_flag=True, hidden=True),  # for the runs that --all resumes
        click.Option(["--wait"], is_flag=True, help="With --all: wait until the runs end; Ctrl+C or TERM ends them."),
        *options.for_resume(),
    ],
    help="Resume a run that was interrupted or aborted, or that crashed. Options given here override the saved ones.",
)


# `rooda resume --all`: resume every run that was cut off, in all workspaces, in the background
PATIENCE = 120.0  # seconds to wait for a run to start


class CutOff(NamedTuple):
    """A run that was cut off, and the folder of its newest session."""

    workspace: str
    loop: Loop
    folder: str
    doubt: str = ""  # why rooda must not resume it: unsigned, or of another version


def resume_all(here: Where) -> tuple[int, list[CutOff]]:
    """Resume every run that was cut off, until a signal arrives. Return the exit code and the resumed runs."""
    codes: dict[CutOff, int] = {}
    haste = StopRequest(0)
    try:
        for each in (each for workspace in _everywhere(here) for each in _of(workspace)):
            if each.doubt:
                codes[each] = _skipped(each)
                continue
            codes[each] = FAILED
            codes[each] = _resume_in_background(each, haste)
        for run in _runs_of_tasks(_everywhere(here)):
            codes[run] = FAILED
            codes[run] = _resume_tasks(run, haste)
    except Interrupted:
        click.echo(
            f"Interrupted before {each.loop.name} in {each.workspace} was resumed; the others were not resumed either.",
            err=True,
        )
    if not codes:
        click.echo("No run was cut off; there is nothing to resume.")
    good = all(code in (OK, UNDECIDED) for code in codes.values())
    return OK if good else FAILED, [each for each, code in codes.items() if code == OK]


def _skipped(each: CutOff) -> int:
    hint = f"Check and accept it: rooda -C {shlex.quote(each.workspace)} resume {each.loop.name}"
    click.echo(f"Not resumed: {each.loop.name} in {each.workspace}: {each.doubt}. {hint}", err=True)
    return UNDECIDED


def _everywhere(here: Where) -> list[str]:
    known = workspaces.known()
    own = os.path.realpath(here.workspace)
    return known if own in known else [*known, own]


def _of(workspace: str) -> Iterator[CutOff]:
    """Yield the runs of a workspace that were cut off. Errors in its files are reported and skipped."""
    try:
        trusting.refuse_tracked(workspace)
        kinds = registry.kinds_in(workspace)
    except RoodaError as problem:
        click.echo(f"Not resumed: {problem.what} {problem.hint}", err=True)
        return
    for kind in kinds:
        try:
            names = [*registry.kind(kind).resumable(workspace), *damaged(workspace, kind)]
            paths = registry.kind(kind).locks(workspace)
        except (RoodaError, OSError) as problem:
            click.echo(f"{workspace}: {kind} loops can't be read: {problem}", err=True)
            continue
        for name in names:
            sessions = history.sessions(workspace, name, kind)
            held = name in paths and lock.is_held(paths[name])
            if sessions and not held and _is_cut_off(sessions[-1]):
                why = _of_another_version(sessions[-1]) or signed.why_not(workspace, kind, name, sessions[-1])
                yield CutOff(workspace, Loop(kind, name, paths.get(name, "")), sessions[-1].folder, why)


def _of_another_version(session: history.SessionLog) -> str:
    """Return an error if the log's first or last event lacks a field that this version of rooda requires; else ""."""
    for event in filter(None, (session.opening, session.ended)):
        if event.get("v") != VERSION or not _required_fields(session.loop, event["event"]) <= {*event}:
            return f"{session.path} was written by another version of rooda"
    return ""


@cache
def _required_fields(loop: str, event: str) -> frozenset[str]:
    import json

    schema = json.loads(files.text(shipped("config", "events.schema.json")))
    own = schema["$defs"].get(f"{loop}:{event}") or schema["$defs"].get(f"any:{event}") or {}
    return frozenset((*schema["required"], *own.get("required", ())))


def damaged(workspace: str, kind: str) -> list[str]:
    """Return the names of this kind's loops whose state files are damaged. Resuming one reports the damage."""
    of_kind = registry.kind(kind)
    return [of_kind.name_of(each) for each in of_kind.facts(workspace, None) if each.get("status") == "damaged"]


def _is_cut_off(session: history.SessionLog) -> bool:
    """True if the run was cut off. A run inside another run doesn't count, because the outer run restarts it."""
    if not session.first or folder.origin_of(session.folder).get("inside"):
        return False
    return cut_off(session.ended, session.question_open, folder.order_of(session.folder).get("order", ""))


def _runs_of_tasks(folders: list[str]) -> Iterator[CutOff]:
    """Yield each `rooda tasks run` that was cut off.

    Once restarted, it resumes its loops itself, because rooda doesn't record their clones.
    """
    seen = set[str]()
    for workspace in folders:
        common = traces.folders(workspace)[2]
        if not common or common in seen or not os.path.exists(os.path.join(common, "rooda", "tasks", "run.json")):
            continue
        seen.add(common)
        from rooda.tasks import started, store

        place = store.place_of(workspace)
        if record := started.cut_off(place):
            yield CutOff(str(record["workspace"]), Loop("tasks", "tasks run", place.runner), place.folder)


def _resume_tasks(each: CutOff, haste: StopRequest) -> int:
    """Start a `rooda tasks run` again, with the options that it was started with."""
    from rooda.tasks import started, store

    record = started.cut_off(store.place_of(each.workspace))
    config = ["--config", str(record["config"])] if record.get("config") else []
    words = ["-C", each.workspace, *config, *store.TASKS, "run", *map(str, record.get("words", ())), "--detach"]
    return _started(each, words, haste)


def _resume_in_background(each: CutOff, haste: StopRequest) -> int:
    """Resume a run in the background. Return OK, UNDECIDED if it is already running, or FAILED."""
    return _started(each, ["-C", each.workspace, "resume", each.loop.name, "--detach", "--warn-unknown"], haste)


def _lock_of(each: CutOff) -> str:
    if each.loop.kind not in registry.KINDS:
        return each.loop.lock
    return registry.kind(each.loop.kind).lock_of(each.workspace, each.loop.name)


def _started(each: CutOff, words: list[str], haste: StopRequest) -> int:
    if haste.signal:
        raise Interrupted(haste.signal)
    env = {key: value for key, value in os.environ.items() if key not in MANAGER_VARIABLES}
    done = capture.capture([*detach.rooda_command(), *words], timeout=PATIENCE, env=env, cwd=each.workspace)
    who = f"{each.loop.name} in {each.workspace}"
    said = files.to_text(done.err).strip().splitlines() or [f"exit {done.code}"]
    if done.code == OK:
        click.echo(f"Resumed {who}")
        for line in said:
            if line.startswith(WARNING):  # a warning about the run's settings
                click.echo(line, err=True)
        return OK
    why = next((line for line in said if line.startswith((ERROR, WARNING))), said[0])
    if done.code == UNDECIDED and lock.is_held(_lock_of(each)):
        click.echo(f"Already running: {who}")
        return UNDECIDED
    click.echo(f"Not resumed: {who}: {why}", err=True)
    return FAILED
