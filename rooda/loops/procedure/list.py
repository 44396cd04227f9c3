"""`rooda list`: the procedures there are."""

import click

from rooda.errors import OK
from rooda.settings import layers, procedures
from rooda.settings.where import warned, where


@click.command("list", short_help="The procedures there are.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
@click.pass_context
def list_(ctx: click.Context, as_json: bool) -> int:
    """The procedures there are, yours and the built-in ones, with a line about each."""
    here = where(ctx)
    found = warned(layers.load(here.workspace, here.config))
    rows = {name: procedures.summary(found, name) for name in procedures.names(found)}
    if as_json:
        import json

        click.echo(json.dumps([{"name": name, "summary": summary} for name, summary in rows.items()]))
        return OK
    click.echo("Available procedures:")
    for name, summary in rows.items():
        cut = summary if len(summary) <= 80 else summary[:77] + "..."
        click.echo(f"  {name:<20} {cut}".rstrip())
    return OK
