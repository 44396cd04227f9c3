"""`rooda runs [NAME]`: list the past runs of this workspace, newest first."""

import json
import sys
from functools import partial

import click

from rooda.base import clock
from rooda.base.json import Json
from rooda.base.text import columns, escape_line, truncate
from rooda.cli.common import require_known, say_no_runs, tab_loops
from rooda.errors import OK
from rooda.loops import registry
from rooda.loops.configuration import prices
from rooda.processes import lock
from rooda.run.cost_ledger import deleted_calls
from rooda.run.history import seconds_of
from rooda.run.past_runs import PastRun, is_running, newest_run, past_runs, spent, with_deleted
from rooda.run.spending import dollars
from rooda.settings.where import Where, where
from rooda.views.live import is_terminal, size
from rooda.views.summary import cause_text

HEAD = ("WHEN", "WHAT", "STATE", "ITER", "COMMITS", "COST", "CAUSE")
NUMBERS = (3, 4, 5)
NOTHING = "-"
VERSION = 2  # of the objects printed by --json: keys may be added, but not changed


@click.command(short_help="List past runs, newest first: when, what, outcome, cost.")
@click.argument("name", required=False, shell_complete=tab_loops)
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
@click.pass_context
def runs(ctx: click.Context, name: str | None, as_json: bool) -> int:
    """List the runs of this workspace, or of NAME, newest first. A run includes all its resumes.

    `rooda logs NAME` and `rooda why NAME` show more about the last one.
    """
    here = where(ctx)
    found = with_deleted(past_runs(here.workspace, name), deleted_calls(here.workspace, name))
    if name and not found:
        require_known(here, name)
    live = live_runs(here.workspace)
    rows = [facts(run, here, is_running(run, live)) for run in found]
    if as_json:
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    elif not rows:
        say_no_runs(here, name)
    else:
        _say_table(rows)
    return OK


def _say_table(rows: list[Json]) -> None:
    """Print the runs as a table, cut to the width of a terminal."""
    lines = [*map(escape_line, columns([HEAD, *map(_cells, rows)], NUMBERS))]
    if is_terminal(sys.stdout):
        room = size(sys.stdout)[0]
        lines = [truncate(line, room) for line in lines]
    click.echo("\n".join(lines))


def live_runs(workspace: str) -> set[str]:
    """Return the IDs of the sessions that are running."""
    held = [loop.lock for loop in registry.known(workspace) if lock.is_held(loop.lock)]
    return {str(lock.owner(path).get("run")) for path in held}


def facts(run: PastRun, here: Where, running: bool) -> Json:
    """Return the object that --json prints for a run."""
    used, summary = spent(run, running, partial(prices, here)), run.summary
    done = {key: summary.get(key) for key in ("failed", "cut_off", "commits", "files", "added", "removed")}
    return {
        "v": VERSION,
        "run": run.sessions[0].run,
        "loop": run.loop,
        "name": run.name,
        "state": run.state(running),
        "cause": cause(run, running),
        "started_at": run.started_at,
        "last": str(run.last.last.get("ts", "")),
        "elapsed": round(run.elapsed(running), 3),
        "sessions": len(run.sessions),
        "exit_code": (run.last.ended or {}).get("exit_code"),
        "iterations": run.iterations,
        **done,
        "calls": used.calls,
        "tokens": used.tokens,
        "cost": None if used.unknown == used.calls else round(used.cost, 6),
        "calls_of_unknown_cost": used.unknown,
    }


def cause(run: PastRun, running: bool) -> str:
    """Return why a run ended, in a few words; "" while it runs."""
    if running:
        return ""
    if run.last.ended is None:
        return "no end in its log: it was killed, or the machine stopped"
    try:
        return cause_text(run.last.ended, registry.view(run.loop).WORDS.cause)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        return ""  # the log was edited


def last_run(here: Where) -> str:
    """Return one line about the newest run of a workspace; "" if there is none."""
    run = newest_run(here.workspace)
    if run is None:
        return ""
    row = facts(run, here, running=False)
    why = f": {row['cause']}" if row["cause"] else ""
    return f"Last run: {_title(row)}, {_when(row['last'])}, {row['state']}{why}"


def _when(ts: str) -> str:
    """Format a time as local date and time, without seconds."""
    seconds = seconds_of(ts)
    return clock.rfc3339_local(seconds)[:16].replace("T", " ") if seconds else NOTHING


def _cells(row: Json) -> tuple[str, ...]:
    return (
        _when(row["started_at"]),
        _title(row),
        row["state"],
        f"{row['iterations']:,}",
        NOTHING if row["commits"] is None else f"{row['commits']:,}",
        _cost(row),
        row["cause"] or NOTHING,
    )


def _title(row: Json) -> str:
    return registry.title(row["loop"], row["name"]) if row["loop"] != row["name"] else str(row["name"])


def _cost(row: Json) -> str:
    if row["cost"] is None:
        return "unknown" if row["calls"] else NOTHING
    return f"{dollars(row['cost'])}{'+' if row['calls_of_unknown_cost'] else ''}"
