"""`rooda stop [NAME]`: end a running loop as Ctrl+C would, and put on record why."""

import click

from rooda.cli.running import done_to, named, one_running, ordered, tab_running
from rooda.errors import FAILED, OK
from rooda.loops import registry
from rooda.loops.registry import Loop
from rooda.processes import lock, signals, table
from rooda.run import folder
from rooda.settings.where import where

PATIENCE = 15.0  # seconds


@click.command(short_help="End a running loop as Ctrl+C would; its state is saved.")
@click.argument("name", required=False, shell_complete=tab_running)
@click.option("--now", is_flag=True, help="Give its agent no time to end by itself.")
@click.option("--reason", metavar="TEXT", default="", help="Why, for the record. A reflex loop is over then, for good.")
@click.pass_context
def stop(ctx: click.Context, name: str | None, now: bool, reason: str) -> int:
    """End the run of NAME; without NAME the only one that runs here. Its state is saved, its agent ended.

    `rooda status`, `rooda logs` and `rooda why` tell the reason. `rooda resume --all` leaves the run alone.
    """
    here = where(ctx)
    loop = one_running(here, name)
    return end(here.workspace, loop, now, folder.readable(reason).strip()) if loop else OK


def end(workspace: str, loop: Loop, now: bool = False, reason: str = "") -> int:
    """SIGTERM to its owner, a second one if it must not wait, and wait until it has gone."""
    who = named(loop)
    over = bool(reason) and registry.tenant(loop.kind).close(workspace, loop.name, reason)
    ordered(workspace, loop, folder.STOP, reason)
    if not done_to(loop, signals.terminate) and lock.is_held(loop.lock):
        ordered(workspace, loop, "")
        click.echo(f"{named(loop, True)} is running, but which process it is can't be proved.", err=True)
        return FAILED
    if now and not _ends(loop, 0.3):
        signals.terminate(lock.owner(loop.lock))
    if not _ends(loop, PATIENCE):
        click.echo(f"Asked {who} (pid {lock.owner(loop.lock).get('pid')}) to stop; it is still ending its agent.")
        return OK
    if not over and loop.name not in registry.tenant(loop.kind).resumable(workspace):
        click.echo(f"{named(loop, True)} has ended; there is nothing to resume.")
        return OK
    click.echo(f"Stopped {who}. {'It is over.' if over else f'Resume with: rooda resume {loop.name}'}")
    return OK


def _ends(loop: Loop, seconds: float) -> bool:
    """Waits for it. Who stands still can't end: a pause may have crossed this, and is taken back."""

    def awake() -> bool:
        owner = lock.owner(loop.lock)
        return True in table.standing(owner.get("pid")) and not signals.go_on(owner)

    return lock.await_free(loop.lock, seconds, awake)
