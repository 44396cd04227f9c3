"""`rooda status [NAME]`: what runs here, how far it is, what waits for a resume."""

import click

from rooda.cli import kinds
from rooda.cli.where import a_name, where
from rooda.errors import OK


@click.command(short_help="What runs here, how far it is, what waits for a resume.")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
@click.pass_context
def status(ctx: click.Context, name: str | None, as_json: bool) -> int:
    """The state of NAME, or of every loop that runs here or can go on.

    NAME is a procedure, a reflex alias, a flow's run, or `goal`.
    """
    workspace = where(ctx).workspace
    wanted = a_name(name) if name else None
    found = [(kind, facts) for kind in kinds.KINDS for facts in kinds.tenant(kind).facts(workspace, wanted)]
    if as_json:
        import json

        click.echo(json.dumps([{"loop": kind, **facts} for kind, facts in found], indent=2))
    elif found:
        click.echo("\n".join(line for kind, facts in found for line in kinds.tenant(kind).lines(facts)))
    else:
        click.echo(f"No saved state for procedure '{name}'." if name else "Nothing runs here, and nothing waits.")
    return OK
