"""`rooda stop [NAME]`: end a running loop as Ctrl+C would, and put on record why."""

import click

from rooda.cli.kinds import Loop
from rooda.cli.running import done_to, noun_of, one_running, ordered
from rooda.cli.where import where
from rooda.errors import FAILED, OK
from rooda.world import lock, orders, signals


@click.command(short_help="End a running loop as Ctrl+C would; its state is saved.")
@click.argument("name", required=False)
@click.option("--now", is_flag=True, help="Give its agent no time to end by itself.")
@click.option("--reason", metavar="TEXT", default="", help="Why, for the record. A reflex loop is over then, for good.")
@click.pass_context
def stop(ctx: click.Context, name: str | None, now: bool, reason: str) -> int:
    """End the run of NAME; without NAME the only one that runs here. Its state is saved, its agent ended.

    `rooda status`, `rooda logs` and `rooda why` tell the reason. `rooda resume --all` leaves the run alone.
    """
    here = where(ctx)
    loop = one_running(here, name)
    return end(here.workspace, loop, now, orders.readable(reason).strip()) if loop else OK


def end(workspace: str, loop: Loop, now: bool = False, reason: str = "") -> int:
    """SIGTERM to its owner, a second one if it must not wait, and wait until it has gone."""
    who = f"{noun_of(loop.kind)} '{loop.name}'"
    over = loop.kind == "reflex" and bool(reason)
    if over:
        _close(workspace, loop.name, reason)
    ordered(workspace, loop, orders.STOP, reason)
    if not done_to(loop, signals.terminate) and lock.is_held(loop.lock):
        ordered(workspace, loop, "")
        click.echo(f"{who.capitalize()} is running, but which process it is can't be proved.", err=True)
        return FAILED
    if now and not lock.await_free(loop.lock, 0.3):
        signals.terminate(lock.owner(loop.lock))
    if not lock.await_free(loop.lock):
        click.echo(f"Asked {who} (pid {lock.owner(loop.lock).get('pid')}) to stop; it is still ending its agent.")
        return OK
    click.echo(f"Stopped {who}. {'It is over.' if over else f'Resume with: rooda resume {loop.name}'}")
    return OK


def _close(workspace: str, alias: str, reason: str) -> None:
    """As `rooda reflex stop REASON` does."""
    from rooda.cli.reflex.stop import close
    from rooda.stores.reflex_files import Place

    close(Place(workspace, alias), reason)
