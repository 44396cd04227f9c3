"""`rooda status [NAME]`: what runs here, how far it is, what waits for a resume."""

import json
import os
import sys
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import click

from rooda.base import clock
from rooda.base.json import Json
from rooda.base.text import escape_line, format_seconds
from rooda.cli.common import loop_of, require_known, say_above, tab_loops
from rooda.errors import INTERRUPTED, OK, UsageProblem, code_of_signal
from rooda.loops import registry
from rooda.loops.overview import Board
from rooda.processes.signals import Signals
from rooda.run import folder as run_folder
from rooda.run import workspaces
from rooda.run.folder import folder_of
from rooda.run.history import seconds_of
from rooda.run.spending import dollars
from rooda.settings.where import Where, where
from rooda.views.live import Repaint, is_terminal
from rooda.views.status_table import Row, table

PAUSE = 1.0  # seconds between two looks of --watch
FEW = 3  # as many are told of in detail on a terminal
NOTHING = "Nothing runs here, and nothing waits."
Details: TypeAlias = list[tuple[str, Json, Row]]  # a loop's kind, what its files say, and its row


@click.command(short_help="What runs here, how far it is, what waits for a resume.")
@click.argument("name", required=False, shell_complete=tab_loops)
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs; with --watch one line per look.")
@click.option("--watch", is_flag=True, help="Again every second, until Ctrl+C.")
@click.option("--all", "everywhere", is_flag=True, help="Of every workspace in which you ran loops.")
@click.pass_context
def status(ctx: click.Context, name: str | None, as_json: bool, watch: bool, everywhere: bool) -> int:
    """The state of NAME, or of every loop that runs here or can go on: in detail, with --watch or --all as a table.

    NAME is a procedure, a reflex alias, a flow's run, `goal`, or the name that --detach printed. Tokens and cost are
    those of the present run, with all its resumes.
    """
    if name and everywhere:
        raise UsageProblem("NAME and --all are mutually exclusive.")
    here = where(ctx)
    asked = Asked(here, loop_of(here, name) if name else None, everywhere, everywhere or watch)
    board = Board(here)
    found = _detailed(asked, board) if asked.name else None
    if asked.name and not found:
        require_known(here, asked.name)
    if watch:
        return _watch(lambda: [json.dumps(_rows(asked, board))] if as_json else _lines(asked, board), as_json)
    lines = [json.dumps(_rows(asked, board, found), indent=2)] if as_json else _lines(asked, board, found)
    click.echo("\n".join(lines))
    if lines == [NOTHING]:
        say_above(here.workspace)
    return OK


class Asked(NamedTuple):
    """Of whom, and how."""

    here: Where
    name: str | None
    everywhere: bool
    table: bool

    @property
    def workspaces(self) -> list[str]:
        """Ours first."""
        others = workspaces.known() if self.everywhere else []
        return [self.here.workspace, *(path for path in others if not _same(path, self.here.workspace))]


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _detailed(asked: Asked, board: Board) -> Details:
    """Each loop's kind, what its files say, and its row."""
    return [
        (kind, facts, board.row(asked.here.workspace, kind, facts))
        for kind in registry.KINDS
        for facts in registry.tenant(kind).facts(asked.here.workspace, asked.name)
    ]


def _rows(asked: Asked, board: Board, found: Details | None = None) -> list[Json]:
    if asked.table and not asked.name:
        return [row._asdict() for row in board.look(asked.workspaces)]
    found = _detailed(asked, board) if found is None else found
    return [{**row._asdict(), **facts, "loop": kind, "now": now(row)} for kind, facts, row in found]


def _lines(asked: Asked, board: Board, found: Details | None = None) -> list[str]:
    if asked.table and not asked.name:
        rows = board.look(asked.workspaces)
        return [*map(escape_line, table(rows, asked.everywhere))] if rows else [NOTHING]
    found = _detailed(asked, board) if found is None else found
    if not found:
        return [f"No saved state for procedure '{asked.name}'." if asked.name else NOTHING]
    if len(found) > FEW and is_terminal(sys.stdout):
        return [*map(escape_line, table([row for _, _, row in found], False)), "In detail: rooda status NAME"]
    told = (text for kind, facts, row in found for text in _told(kind, facts, row))
    return [*map(escape_line, told)]


def _told(kind: str, facts: Json, row: Row) -> list[str]:
    return [*registry.tenant(kind).lines({**facts, "standing": row.status}), *line(row)]


def _watch(look: Callable[[], list[str]], as_json: bool) -> int:
    """One picture a second: on a terminal each in the place of the one before, else one after the other."""
    with Signals() as signals:
        if as_json or not is_terminal(sys.stdout):
            while not signals.first:
                signals.suspend_if_asked()
                click.echo("\n".join(look()) + ("" if as_json else "\n"))
                signals.pause(PAUSE)
        else:
            with Repaint(sys.stdout) as page:
                while not signals.first:
                    if signals.suspended:
                        page.leave()
                        signals.stop_self()
                        page.enter()
                    page.paint(look())
                    signals.pause(PAUSE)
        code = code_of_signal(signals.first)
    return OK if code == INTERRUPTED else code


# What a running loop is doing at this moment, in one line, and what a person has ordered of one that does not run.
NOW = ("phase", "since", "display", "waits_for", "seconds_left", "suspended", "elapsed")
SPENT = ("calls", "tokens", "cost", "calls_of_unknown_cost")


def now(row: Row) -> Json | None:
    """For programs; None for one that does not run."""
    return {key: getattr(row, key) for key in (*NOW, *SPENT)} if row.running else None


def line(row: Row) -> list[str]:
    """Below the state."""
    if not row.running:
        paused = [f"  paused: {row.reason}"] if row.reason and row.loop != "goal" else []  # a goal's own line says it
        return [*paused, *(_ordered(folder_of(row.workspace, row.run)) if row.run else [])]
    parts = ["standing still (rooda continue)"] if row.suspended else []
    if row.seconds_left is not None:
        parts.append(f"waits for {row.waits_for}, {format_seconds(row.seconds_left)} left")
    elif row.phase:
        parts.append(f"{row.phase} for {format_seconds(clock.now() - (seconds_of(row.since) or clock.now()))}")
    doubt = "+" if row.calls_of_unknown_cost else ""
    cost = "cost unknown" if row.cost is None else f"{dollars(row.cost)}{doubt}"
    calls = f"{row.calls} call{'' if row.calls == 1 else 's'}"
    return ["  " + ", ".join([*parts, calls, f"{row.tokens:,} tokens", cost])]


def _ordered(folder: str) -> list[str]:
    order = run_folder.order_of(folder)
    if order.get("order") != run_folder.STOP:
        return []
    why = " ".join(order["reason"].split())
    return [f"  stopped by a person at {order['at']}{f': {why}' if why else ''}"]
