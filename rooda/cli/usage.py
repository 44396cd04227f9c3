"""`rooda usage [NAME]`: sums up the tokens, time and cost of the agents in this workspace."""

from collections.abc import Callable, Iterable
from functools import partial

import click

from rooda.base import clock
from rooda.base.json import Json
from rooda.base.text import columns, counted, format_seconds
from rooda.cli.common import require_known, tab_loops
from rooda.errors import OK, UsageProblem
from rooda.loops import registry
from rooda.loops.configuration import prices
from rooda.run import cost_ledger
from rooda.run.spending import Used, dollars, total, usage_row
from rooda.settings.where import valid_name, where
from rooda.views.say import folded

VERSION = 2  # of the object printed by --json: keys may be added, but not changed
_BY: dict[str, Callable[[Used], str]] = {
    "iteration": lambda call: f"{call.run} {call.number}",
    "run": lambda call: call.run,
    "procedure": lambda call: call.name,
    "loop": lambda call: registry.title(call.loop, call.name),
    "agent": lambda call: f"{call.agent or 'command'}{f' {call.model}' if call.model else ''}",
    "day": lambda call: local_day(call.ts),
}


@click.command(short_help="Sum up tokens, time and cost per loop, run, iteration, agent or day.")
@click.argument("name", required=False, shell_complete=tab_loops)
@click.option("--since", metavar="WHEN", help="Only calls since WHEN: 2026-03-01, 2026-03-01T12:00 (UTC), 7d, 12h.")
@click.option("--by", type=click.Choice([*_BY]), default="loop", help="Group the calls by this.", show_default=True)
@click.option("--project", "whole", is_flag=True, help="Also count the repository's tasks and worktrees.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def usage(ctx: click.Context, name: str | None, since: str | None, by: str, whole: bool, as_json: bool) -> int:
    """Sum up what the agents of this workspace used, including failed and killed calls. Days are in local time.

    --project adds the calls in the clones of tasks and in worktrees, as [budget] project does.

    Cost is what the agent's CLI reported, else tokens times the price in [prices]; else it is unknown, not 0.
    """
    start = start_of(since) if since else ""
    here = where(ctx)
    name = valid_name(name) if name else None
    calls = cost_ledger.all_calls(here.workspace, name, start, partial(prices, here))
    others = cost_ledger.calls_elsewhere(here.workspace, name, start)
    calls += others if whole else []
    if name and not calls and not others:
        require_known(here, name)
    rows = [usage_row(key, group) for key, group in _grouped(calls, _BY[by]).items()]
    if as_json:
        import json

        click.echo(json.dumps({"v": VERSION, "by": by, "rows": rows, "total": usage_row("total", calls)}, indent=2))
    elif rows:
        click.echo(_table([*rows, usage_row("total", calls)] if len(rows) > 1 else rows, by))
    else:
        click.echo("No agent calls recorded here.")
    if others and not whole and not as_json:
        click.echo(_left_out(others), err=True)
    return OK


def _left_out(calls: list[Used]) -> str:
    spent = total(calls)
    cost = "cost unknown" if spent.known_cost is None else dollars(spent.cost)
    what = f"{counted(spent.calls, 'call')} elsewhere in this repository (tasks, worktrees), {cost}"
    return f"Not included: {what}. To include them: rooda usage --project"


def local_day(ts: str) -> str:
    """Return the calendar day, in local time, of an event's time stamp."""
    seconds = clock.parse_time(ts)
    return clock.local_date(seconds) if seconds is not None else ts[:10]


def start_of(text: str) -> str:
    """Convert the value of --since to the event log's time format. Raises UsageProblem if it is invalid."""
    found = clock.parse_time(text)
    if found is None:
        raise UsageProblem(
            f"--since {text!r} is not a time.", "Use a day (2026-03-01), a time (2026-03-01T12:00, UTC) or an age (7d)."
        )
    return clock.rfc3339(found)


def _grouped(calls: Iterable[Used], key: Callable[[Used], str]) -> dict[str, list[Used]]:
    groups: dict[str, list[Used]] = {}
    for call in calls:
        groups.setdefault(key(call), []).append(call)
    return groups


def _table(rows: list[Json], by: str) -> str:
    head = (by, "calls", "time", "input", "cached", "output", "cost", "known by")
    lines = columns([head, *(_cells(row) for row in rows)], range(1, len(head) - 1))
    margin = " " * lines[0].index(head[-1])
    return "\n".join(folded(line, margin) for line in lines)


def _cells(row: Json) -> tuple[str, ...]:
    cost = "unknown" if row["cost"] is None else dollars(row["cost"])
    known = row["calls"] > row["calls_without_usage"]
    tokens = [f"{count:,}" if known else "?" for count in (row["input"] + row["written"], row["cached"], row["output"])]
    return (row["name"], str(row["calls"]), format_seconds(row["seconds"]), *tokens, cost, _known_by(row))


def _known_by(row: Json) -> str:
    """Format the sources of the cost and the number of calls whose cost is unknown."""
    sources, unknown = row["cost_by_source"], row["calls_of_unknown_cost"]
    parts = [f"{source} {dollars(cost)}" if len(sources) > 1 else source for source, cost in sources.items()]
    return ", ".join([*parts, *([f"{counted(unknown, 'call')} unknown"] if unknown else [])])
