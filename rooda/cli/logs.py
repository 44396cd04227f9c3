"""`rooda logs [NAME]` and `rooda events [NAME]`: print the events of runs as readable lines or as JSON lines."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import click

from rooda.base import clock, files
from rooda.base.dirs import shipped
from rooda.base.json import Json
from rooda.base.text import escape_text
from rooda.cli.common import keys, say_if_unsigned, say_no_runs, tab_loops
from rooda.cli.usage import start_of
from rooda.errors import OK, UsageProblem
from rooda.loops import registry
from rooda.processes import lock
from rooda.run import events as run_events
from rooda.run import folder as run_folder
from rooda.run import history
from rooda.run.ended import CANCELLED
from rooda.run.events import NAME
from rooda.run.history import following
from rooda.settings.where import where
from rooda.views.agent_output import AT_ONCE, Tail, readable
from rooda.views.lines import LEVELS, PEOPLE, PROGRAMS, is_for, lines
from rooda.views.live import is_terminal
from rooda.views.why import CUT_OFF

END = 262_144  # bytes; --tail first reads this much of the end of a transcript


@click.command(short_help="Show what the latest run did, iteration by iteration.")
@click.argument("name", required=False, shell_complete=tab_loops)
@click.option("--json", "as_json", is_flag=True, help="Print the events as they are on disk.")
@click.option("--agent", is_flag=True, help="Show what the agent said and which tools it used.")
@click.option("--iteration", type=click.IntRange(min=1), metavar="N", help="Only this iteration.")
@click.option("--tail", type=click.IntRange(min=1), metavar="N", help="With --agent: only the last N lines.")
@click.option("-v", "--verbose", is_flag=True, help="Show details too.")
@click.option("-f", "--follow", "following", is_flag=True, help="Follow the log until the run ends.")
@click.pass_context
def logs(ctx: click.Context, /, name: str | None, following: bool, **how: Any) -> int:
    """Print the lines of the latest run, or of NAME's latest run, and the folder of its transcripts.

    After a resume, these are the lines since the resume; `rooda why` explains the whole run.
    """
    workspace, tail = where(ctx).workspace, how.pop("tail")
    if tail and (following or how["as_json"] or not how["agent"]):
        raise UsageProblem("--tail requires --agent, and excludes --follow and --json.")
    folder = run_folder.latest(workspace, name)
    if folder is None:
        say_no_runs(where(ctx), name)
        return OK
    if following:
        return _follow(workspace, folder, **how)
    if how["iteration"]:
        folder = session_with(workspace, folder, how["iteration"], alone=os.path.basename(folder) == name)
    live, events = is_live(workspace, folder), recorded(folder)
    if not live:
        say_if_unsigned(folder)
    _show(folder, events, tail, **how)
    if how["iteration"] is None and not live and all(record["event"] != "run.ended" for record in events):
        say_cut_off(folder)
    return OK


def _show(
    folder: str,
    events: list[Json],
    tail: int | None,
    as_json: bool,
    agent: bool,
    iteration: int | None,
    verbose: bool,
) -> None:
    records = [record for record in events if iteration in (None, record.get("display"))]
    if as_json:
        for record in records:
            click.echo(json.dumps(record, ensure_ascii=False))
        return
    if agent:
        calls = [history.located(record, folder) for record in records if record["event"] == "agent.started"]
        _show_end(calls, tail) if tail else _show_agent(calls)
    else:
        because = run_folder.cancelled(folder)
        for record in records:
            is_cancelled = because is not None and record["event"] == run_events.END
            later = {"state": CANCELLED, "cancelled": because} if is_cancelled else {}
            show(record | later, LEVELS["debug" if verbose else "info"])
    click.echo(f"Prompts, transcripts and gate outputs: {folder}", err=True)


def session_with(workspace: str, folder: str, iteration: int, alone: bool) -> str:
    """Return the folder of the newest session with this iteration; with `alone`, check only the session in `folder`.

    Raises UsageProblem if there is none.
    """
    name = run_folder.loop_of(os.path.basename(folder))
    newest = history.SessionLog(os.path.join(folder, run_events.NAME)).refresh()
    last = 0
    for session in [newest] if alone else reversed(history.sessions(workspace, name, newest.loop)):
        if iteration in session.called_iterations:
            return session.folder
        last = max([last, *session.called_iterations])
    what = f"The latest run of '{name}' has no iteration {iteration}; the last one is {last or 'none'}."
    raise UsageProblem(what, f"See the iterations with: rooda logs {name}")


def _follow(workspace: str, folder: str, as_json: bool, agent: bool, iteration: int | None, verbose: bool) -> int:
    """Follow the log. Ctrl+C ends this command, not the loop."""
    if iteration is not None:
        raise UsageProblem("--follow and --iteration are mutually exclusive.")
    try:
        if as_json:
            for record in records(folder, lambda: is_live(workspace, folder)):
                click.echo(json.dumps(record, ensure_ascii=False))
        else:
            follow(folder, LEVELS["debug" if verbose else "info"], agent, lambda: is_live(workspace, folder))
    except KeyboardInterrupt:
        pass
    return OK


def is_live(workspace: str, folder: str) -> bool:
    """True if a process is running that may add events to this run."""
    run = os.path.basename(folder)
    return any(
        lock.is_held(loop.lock) and lock.owner(loop.lock).get("run") == run for loop in registry.known(workspace)
    )


def _show_agent(records: list[Json]) -> None:
    """Print the transcripts in readable form."""
    for record in records:
        click.echo(f"--- Iteration {record['display']} ---")
        _print(readable(record.get("output", "text"), record["transcript"], keys()))


def _print(texts: Iterable[str]) -> None:
    """Print many lines with each call of echo, because each call flushes."""
    rest = iter(texts)
    while found := [*islice(rest, AT_ONCE)]:
        click.echo("\n".join(found))


def _show_end(records: list[Json], count: int) -> None:
    """Print the last lines of the transcripts, reading only their ends."""
    shown: list[str] = []
    left = count
    for record in reversed(records):
        found = _end(record.get("output", "text"), record["transcript"], left)
        shown[:0] = [f"--- Iteration {record['display']} ---", *found]
        left -= len(found)
        if left <= 0:
            break
    _print(shown)


def _end(output: str, path: str, count: int) -> list[str]:
    """Return the last `count` lines of a transcript. Reads more and more of its end until there are enough lines."""
    limit = END
    while True:
        found = list(readable(output, path, keys(), limit))
        if len(found) >= count or limit >= history.LARGEST or not _is_longer(path, limit):
            return found[-count:]
        limit *= 16


def _is_longer(path: str, size: int) -> bool:
    try:
        return os.path.getsize(path) > size
    except OSError:
        return False


def recorded(folder: str) -> list[Json]:
    """Return the events of a run. An incomplete last line is skipped."""
    return list(history.records(os.path.join(folder, run_events.NAME)))


@click.command(short_help="Print the events of the latest run as JSON lines; -f follows.")
@click.argument("name", required=False, shell_complete=tab_loops)
@click.option("-f", "--follow", "following", is_flag=True, help="Follow the log until the run ends.")
@click.option("--iteration", type=click.IntRange(min=1), metavar="N", help="Only this iteration.")
@click.option("--since", metavar="WHEN", help="In all runs, since WHEN: 2026-03-01, 2026-03-01T12:00 (UTC), 7d, 12h.")
@click.option("--schema", is_flag=True, help="Print the JSON schema of an event.")
@click.pass_context
def events(ctx: click.Context, /, name: str | None, since: str | None, schema: bool, **how: Any) -> int:
    """Print the events of the latest run, or of NAME's latest run. docs/events.md describes each event."""
    if schema:
        click.echo(files.text(shipped("config", "events.schema.json")), nl=False)
        return OK
    if since is None:
        code: int = ctx.invoke(logs, name=name, as_json=True, agent=False, tail=None, verbose=False, **how)
        return code
    if how["following"]:
        raise UsageProblem("--follow and --since are mutually exclusive.")
    _from(start_of(since), where(ctx).workspace, name, how["iteration"])
    return OK


def _from(moment: str, workspace: str, name: str | None, iteration: int | None) -> None:
    for folder in run_folder.all_of(workspace, name):
        for record in _recorded_if_readable(folder):
            if record["ts"][:19] >= moment[:19] and iteration in (None, record.get("display")):
                click.echo(json.dumps(record, ensure_ascii=False))


def _recorded_if_readable(folder: str) -> list[Json]:
    try:
        return recorded(folder)
    except OSError:
        return []


def follow(folder: str, least: int, agent: bool, alive: Callable[[], bool]) -> None:
    """Print a run's events as lines, and with `agent` the agent's output, until the run ends or its process exits."""
    tail = Tail(lambda text: click.echo(text, nl=False)) if agent else None
    if tail:
        tail.hidden = keys()
    for record in records(folder, alive, tail.read if tail else None):
        if tail:
            tail.update({"output": "text", **history.located(record, folder)})
        show(record, least)
        sys.stdout.flush()


def say_cut_off(folder: str) -> None:
    """Print that a run was cut off, and how to resume it."""
    name = run_folder.loop_of(os.path.basename(folder))
    click.echo(f"The run was cut off: {CUT_OFF}. Resume with: rooda resume {name}", err=True)


def show(record: Json, least: int) -> None:
    try:
        found = lines(record, registry.view(record.get("loop")).LINES)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError):
        return  # the log was edited
    audience = PEOPLE if least > LEVELS["debug"] and is_terminal(sys.stdout) else PROGRAMS
    for line in found:
        if LEVELS[line.level] >= least and is_for(line, audience):
            click.echo(f"[{clock.local(str(record['ts']))}] {escape_text(line.text)}")


def records(folder: str, alive: Callable[[], bool], between_looks: Callable[[], None] | None = None) -> Iterator[Json]:
    """Yield a run's recorded and future events. If the last one isn't `run.ended`, print that the run was cut off."""
    last: Json = {}
    for last in following(os.path.join(folder, NAME), alive, between_looks):
        yield last
    if last.get("event") != "run.ended":
        say_cut_off(folder)
