"""`rooda runs [NAME]`: lists the past runs of this workspace, newest first."""

import json
import sys
from collections.abc import Sequence

import click

from rooda.base import clock
from rooda.base.json import Json
from rooda.base.text import columns, escape_line, truncate, width
from rooda.cli.common import other_runs, require_known, say_no_runs, tab_loops
from rooda.errors import OK
from rooda.loops import registry
from rooda.loops.past import facts, facts_of_deleted, live_runs
from rooda.run.cost_ledger import deleted_calls
from rooda.run.history import seconds_of
from rooda.run.past_runs import is_running, newest_run, past_runs, with_deleted
from rooda.run.spending import Used, dollars
from rooda.settings.where import Where, where
from rooda.views.live import is_terminal, size

HEAD = ("WHEN", "WHAT", "STATE", "ITER", "COMMITS", "COST", "CAUSE")
WHAT, NUMBERS = 1, (3, 4, 5)
NAME_ROOM, CAUSE_ROOM = 12, 16  # columns of a terminal that WHAT and CAUSE keep
NOTHING = "-"


@click.command(short_help="List past runs, newest first: when, what, outcome, cost.")
@click.argument("name", required=False, shell_complete=tab_loops)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def runs(ctx: click.Context, name: str | None, as_json: bool) -> int:
    """List the runs of this workspace, or of NAME, newest first. A run includes all its resumes.

    If a run's log was deleted, only its calls and their cost are known.
    `rooda logs NAME` and `rooda why NAME` show more about the last one.
    """
    here = where(ctx)
    rows = _rows(here, name)
    if name and not rows:
        require_known(here, name)
    if as_json:
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    elif not rows:
        say_no_runs(here, name)
    else:
        _say_table(rows)
    if not as_json and not name and (others := other_runs(here)):
        click.echo(others, err=True)
    return OK


def _rows(here: Where, name: str | None) -> list[Json]:
    """Return the facts of all runs, newest first."""
    deleted, live = deleted_calls(here.workspace, name), live_runs(here.workspace)
    found = with_deleted(past_runs(here.workspace, name), deleted)
    rows = {run.last.run: facts(run, here, is_running(run, live)) for run in found}
    of_known_runs = {call.run for run in found for call in run.deleted}
    sessions: dict[str, list[Used]] = {}
    for call in deleted:
        if call.run not in of_known_runs:
            sessions.setdefault(call.run, []).append(call)
    rows |= {session: facts_of_deleted(calls) for session, calls in sessions.items()}
    return [rows[session] for session in sorted(rows, reverse=True)]


def _say_table(rows: list[Json]) -> None:
    """Print the runs as a table, cut to the width of a terminal."""
    cells = [[*map(escape_line, each)] for each in (HEAD, *map(_cells, rows))]
    if not is_terminal(sys.stdout):
        lines = columns(cells, NUMBERS)
    else:
        room = size(sys.stdout)[0]
        lines = [truncate(line, room) for line in _fitting(cells, room)]
    click.echo("\n".join(lines))


def _fitting(cells: Sequence[Sequence[str]], room: int) -> list[str]:
    """Format rows as a table for a terminal with `room` columns.

    If the terminal is too narrow, leave out COMMITS, and if that is not enough, shorten the names in WHAT, so that COST
    and the beginning of CAUSE remain visible.
    """
    for kept in (HEAD, [name for name in HEAD if name != "COMMITS"]):
        table = [[row[HEAD.index(name)] for name in kept] for row in cells]
        widths = [max(map(width, column)) for column in zip(*table, strict=True)]
        name, cause = widths[WHAT], widths[-1]
        left = room - (sum(widths) - name - cause + 2 * (len(kept) - 1) + min(cause, CAUSE_ROOM))
        if left >= name:
            break
    for row in table:
        row[WHAT] = truncate(row[WHAT], max(left, NAME_ROOM))
    return columns(table, [at for at, each in enumerate(kept) if HEAD.index(each) in NUMBERS])


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
        row["state"] or NOTHING,
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
