"""`rooda attach [NAME]`: watch a running loop as if it ran here."""

import click

from rooda.cli.follow import follow
from rooda.cli.running import one_running, tab_running
from rooda.errors import OK
from rooda.processes import lock
from rooda.run import folder as run_folder
from rooda.settings.where import where
from rooda.views.lines import LEVELS


@click.command(short_help="Watch a running loop; Ctrl+C leaves it alone.")
@click.argument("name", required=False, shell_complete=tab_running)
@click.pass_context
def attach(ctx: click.Context, name: str | None) -> int:
    """Everything the running loop NAME says and its agent prints, from its beginning on, until it ends or Ctrl+C."""
    here = where(ctx)
    loop = one_running(here, name, "attach")
    folder = loop and run_folder.latest(here.workspace, loop.name)
    if loop is None or folder is None:
        return OK
    try:
        follow(folder, LEVELS["info"], True, lambda: lock.is_held(loop.lock))
    except KeyboardInterrupt:
        click.echo(f"\nNo longer watching; the loop goes on. End it with: rooda stop {loop.name}", err=True)
    return OK
