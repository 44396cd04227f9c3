"""`rooda stop [NAME]`: end a running loop as Ctrl+C would."""

import click

from rooda.cli.where import a_name, where
from rooda.errors import FAILED, OK, Undecided
from rooda.stores import procedure_state
from rooda.stores.procedure_state import Place
from rooda.world import lock, signals


@click.command(short_help="End a running loop as Ctrl+C would; its state is saved.")
@click.argument("name", required=False)
@click.pass_context
def stop(ctx: click.Context, name: str | None) -> int:
    """End the run of NAME; without NAME the only one that runs here. Its state is saved, its agent ended."""
    workspace = where(ctx).workspace
    names = [a_name(name)] if name else procedure_state.locks(workspace)
    running = [each for each in names if lock.is_held(Place(workspace, each).lock)]
    if not running:
        click.echo(f"Procedure '{name}' is not running." if name else "Nothing is running here.")
        return OK
    if len(running) > 1:
        rows = "\n".join(f"  rooda stop {each}" for each in running)
        raise Undecided("Several procedures are running; name one.", rows)
    return _end(Place(workspace, running[0]))


def _end(place: Place) -> int:
    owner = lock.owner(place.lock)
    if not signals.terminate(owner):
        click.echo(f"Procedure '{place.procedure}' is running, but which process it is can't be proved.", err=True)
        return FAILED
    if not lock.await_free(place.lock):
        click.echo(f"Asked procedure '{place.procedure}' (pid {owner['pid']}) to stop; it is still ending its agent.")
        return OK
    click.echo(f"Stopped procedure '{place.procedure}'. Resume with: rooda resume {place.procedure}")
    return OK
