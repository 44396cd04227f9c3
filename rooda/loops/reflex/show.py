"""`rooda reflex show [ALIAS]`: the artifact in full, of now or of an earlier iteration."""

import click

from rooda.base import files
from rooda.errors import OK, RoodaError, UsageProblem
from rooda.loops.reflex import files as reflex_files
from rooda.loops.reflex.places import named, newest
from rooda.loops.reflex.status import tab_aliases
from rooda.loops.reflex.versions import text_of, version
from rooda.settings.where import where


@click.command(short_help="The artifact in full.")
@click.argument("alias", required=False, shell_complete=tab_aliases)
@click.option("--iteration", type=click.IntRange(min=1), metavar="N", help="As it was evaluated in iteration N.")
@click.pass_context
def show(ctx: click.Context, alias: str | None, iteration: int | None) -> int:
    """The artifact of the active loop, else of the latest; or of ALIAS."""
    workspace = where(ctx).workspace
    place = named(workspace, alias) if alias else newest(workspace)
    if place is None:
        raise UsageProblem("There are no loops here.", "Start one with: rooda reflex new TASK")
    if iteration is None:
        data = reflex_files.read_artifact(place)
        if data is None:
            raise RoodaError(f"The loop '{place.alias}' has no artifact yet.")
        click.echo(files.to_text(data), nl=False)
        return OK
    wanted = version(place, iteration)
    text = text_of(place, wanted.digest)
    if text is None:
        rows = "\n".join(f"  {digest}  {name}" for name, digest in wanted.sections.items())
        raise RoodaError(
            f"The text of iteration {iteration} is not on this machine any more; its sections were:\n{rows}"
        )
    click.echo(text, nl=False)
    return OK
