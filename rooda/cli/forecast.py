"""`rooda forecast NAME`: estimates cost and time of further iterations, based on past iterations."""

from functools import partial

import click

from rooda.base.json import Json
from rooda.base.text import columns, format_seconds
from rooda.cli.common import require_known, tab_loops
from rooda.errors import OK
from rooda.loops.configuration import prices
from rooda.run import cost_ledger, forecast
from rooda.run.spending import dollars
from rooda.settings.where import valid_name, where


@click.command("forecast", short_help="Estimate what further iterations cost, and how long they take.")
@click.argument("name", shell_complete=tab_loops)
@click.option("-n", "--iterations", type=click.IntRange(min=1), default=1, show_default=True, metavar="N")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(ctx: click.Context, name: str, iterations: int, as_json: bool) -> int:
    """Estimate cost and time of N further iterations of NAME, from all its iterations in this workspace.

    Half of such runs stay below the first figure, and 9 of 10 below the second. Time is only the agents' run time.
    """
    here = where(ctx)
    past = forecast.iterations(cost_ledger.all_calls(here.workspace, valid_name(name), "", partial(prices, here)))
    if not past:
        require_known(here, name)
    found = facts(name, past, iterations)
    if as_json:
        import json

        click.echo(json.dumps(found, indent=2))
    else:
        click.echo("\n".join(_rows(found)) if past else f"No agent calls of '{name}' recorded here; no estimate.")
    return OK


def facts(name: str, past: list[forecast.Iteration], count: int) -> Json:
    costs = [each.cost for each in past if each.cost is not None]
    cost, seconds = (forecast.estimate(values, count) for values in (costs, [each.seconds for each in past]))
    return {
        "v": 2,
        "name": name,
        "iterations": count,
        "from_iterations": len(past),
        "of_unknown_cost": len(past) - len(costs),
        "cost": cost and {key: round(value, 6) for key, value in cost._asdict().items()},
        "seconds": seconds and {key: round(value, 3) for key, value in seconds._asdict().items()},
    }


def _rows(found: Json) -> list[str]:
    count, number, unknown = found["iterations"], found["from_iterations"], found["of_unknown_cost"]
    cost = [dollars(value) for value in found["cost"].values()] if found["cost"] else ["unknown"] * 2
    time = [format_seconds(value) for value in found["seconds"].values()]
    others = "; the others count" if unknown < number else ""
    rough = ": a rough estimate" if number < forecast.FEW else ""
    return [
        f"{count} {_plural(count)} of {found['name']}, judging by {number} past {_plural(number)}{rough}",
        *columns([("", "half the runs below", "9 of 10 below"), ("cost", *cost), ("time", *time)], (1, 2)),
        *([f"The cost of {unknown} of the {number} is unknown{others}."] if unknown else ()),
    ]


def _plural(count: int) -> str:
    return "iteration" if count == 1 else "iterations"
