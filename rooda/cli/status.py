"""`rooda status [NAME]`: shows the loops that run here, their progress, and the loops that can be resumed."""

import json
import os
import sys
from collections.abc import Iterator
from typing import NamedTuple

import click

from rooda.base import clock
from rooda.base.json import Json
from rooda.base.text import counted, escape_line, format_seconds
from rooda.cli.common import loop_of, of_tasks, require_known, say_parent_hint, tab_loops, warn_of_settings
from rooda.errors import OK, UsageProblem
from rooda.loops import registry
from rooda.loops.overview import Found, Overview, for_people
from rooda.run import folder as run_folder
from rooda.run.folder import folder_of
from rooda.run.history import seconds_of
from rooda.run.spending import dollars
from rooda.settings.where import Where, where
from rooda.views.live import is_terminal, size
from rooda.views.status_table import Row, table

FEW = 3  # on a terminal, more loops than this are shown as a table
NOTHING = "Nothing is running here, and nothing can be resumed."
NO_LOOP = "No loop is running in this folder, and none can be resumed."  # but there are tasks


@click.command(short_help="Show what is running here, its progress, and what can be resumed.")
@click.argument("name", required=False, shell_complete=tab_loops)
@click.option("--json", "as_json", is_flag=True, help="Print JSON; with --watch, one line per refresh.")
@click.option("--watch", is_flag=True, help="Refresh every second, until Ctrl+C.")
@click.option("--all", "everywhere", is_flag=True, help="Show every workspace in which you ran loops.")
@click.pass_context
def status(ctx: click.Context, name: str | None, as_json: bool, watch: bool, everywhere: bool) -> int:
    """Show the state of NAME, or of every loop that runs here or can be resumed; --watch and --all show a table.

    NAME is a procedure, a reflex alias, a flow's run, `goal`, or the name that --detach printed. Tokens and cost are
    those of the current run, with all its resumes.
    """
    if name and everywhere:
        raise UsageProblem("NAME and --all are mutually exclusive.")
    here = where(ctx)
    query = Query(here, loop_of(here, name) if name else None, everywhere, watch)
    warn_of_settings(here)
    overview = Overview(here)
    found = _find(query, overview)
    if query.name and not found:
        require_known(here, query.name)
    if watch:
        from rooda.views.watching import watching

        return watching(_pictures(query, overview, found, as_json), as_json)
    tasks = "" if as_json or query.name else of_tasks(here)
    lines = [json.dumps(_rows(found), indent=2)] if as_json else _lines(query, found)
    lines = [*(lines if lines != [NOTHING] or not tasks else [NO_LOOP]), *filter(None, [tasks])]
    click.echo("\n".join(lines))
    if not as_json and not query.is_table and not query.name and not any(row.running for row, _ in found):
        _say_last_run(here, found)
    if lines == [NOTHING]:
        say_parent_hint(here.workspace)
    return OK


def _say_last_run(here: Where, found: list[Found]) -> None:
    """Print one line about the newest run, unless its loop is in `found`."""
    latest = run_folder.latest(here.workspace, None)
    if latest is None or run_folder.loop_of(os.path.basename(latest)) in {row.name for row, _ in found}:
        return
    from rooda.cli.runs import last_run

    if line := last_run(here):
        click.echo(f"{escape_line(line)}\nTo see all runs: rooda runs")


class Query(NamedTuple):
    """The loops to show, and how to show them."""

    here: Where
    name: str | None
    everywhere: bool
    watch: bool

    @property
    def is_table(self) -> bool:
        return not self.name and (self.everywhere or self.watch)

    @property
    def workspaces(self) -> list[str]:
        """The workspaces to show, the current one first."""
        others: list[str] = []
        if self.everywhere:
            from rooda.run import workspaces

            others = workspaces.known()
        return [self.here.workspace, *(path for path in others if not _same(path, self.here.workspace))]


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _find(query: Query, overview: Overview) -> list[Found]:
    if query.is_table:
        return [Found(row, {}) for row in overview.rows(query.workspaces)]
    return overview.details(query.here.workspace, query.name)


def _pictures(query: Query, overview: Overview, found: list[Found], as_json: bool) -> Iterator[list[str]]:
    """Yield the lines that show `found`, and then, endlessly, the lines of each refresh."""
    while True:
        yield [json.dumps(_rows(found))] if as_json else _lines(query, found)
        found = _find(query, overview)


def _rows(found: list[Found]) -> list[Json]:
    return [each.as_json() for each in found]


def _lines(query: Query, found: list[Found]) -> list[str]:
    if not found:
        return [f"No saved state for procedure '{query.name}'." if query.name else NOTHING]
    rows, room = [row for row, _ in found], size(sys.stdout)[0] - 1 if is_terminal(sys.stdout) else 0
    if query.is_table:
        return [*map(escape_line, table(rows, registry.noun, query.everywhere, room))]
    if len(found) > FEW and room:
        return [*map(escape_line, table(rows, registry.noun, False, room)), "To see details: rooda status NAME"]
    return [escape_line(text) for row, facts in found for text in _lines_of(row, facts)]


def _lines_of(row: Row, facts: Json) -> list[str]:
    return [*registry.kind(row.loop).lines(for_people(row, facts)), *_now_lines(row)]


def _now_lines(row: Row) -> list[str]:
    """Return the last lines of a loop's details: what it is doing now, or why it is not running."""
    if not row.running:
        paused = [f"  paused: {row.reason}"] if row.reason and not registry.KINDS[row.loop].explains_pause else []
        return [*paused, *(_ordered(folder_of(row.workspace, row.run)) if row.run else [])]
    parts = ["suspended; continue with: rooda continue"] if row.suspended else []
    if row.seconds_left is not None:
        parts.append(f"waits for {row.waits_for}, {format_seconds(row.seconds_left)} left")
    elif row.phase:
        parts.append(f"{row.phase} for {format_seconds(clock.now() - (seconds_of(row.since) or clock.now()))}")
    doubt = "+" if row.calls_of_unknown_cost else ""
    cost = "cost unknown" if row.cost is None else f"{dollars(row.cost)}{doubt}"
    calls = f"{counted(row.calls, 'call')}"
    return ["  " + ", ".join([*parts, calls, f"{row.tokens:,} tokens", cost])]


def _ordered(folder: str) -> list[str]:
    order = run_folder.order_of(folder)
    if order.get("order") != run_folder.STOP:
        return []
    why = " ".join(order["reason"].split())
    return [f"  stopped by the user at {order['at']}{f': {why}' if why else ''}"]
