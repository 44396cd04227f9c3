"""`rooda events [NAME]`: the events of the latest run, as they are on disk, and those to come."""

import click

from rooda.cli.logs import logs


@click.command(short_help="The events of the latest run as JSON lines; -f goes on with what comes.")
@click.argument("name", required=False)
@click.option("-f", "--follow", "following", is_flag=True, help="Go on with what comes, until the run ends.")
@click.option("--iteration", type=click.IntRange(min=1), metavar="N", help="Only this iteration.")
@click.pass_context
def events(ctx: click.Context, name: str | None, following: bool, iteration: int | None) -> int:
    """What `rooda logs --json` prints: docs/events.md describes each event."""
    how = {"as_json": True, "agent": False, "iteration": iteration, "verbose": False}
    code: int = ctx.invoke(logs, name=name, following=following, **how)
    return code
