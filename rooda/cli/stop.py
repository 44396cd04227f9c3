"""`rooda stop [NAME]`: end a running loop as Ctrl+C would."""

import click

from rooda.cli.kinds import Loop
from rooda.cli.running import done_to, noun_of, one_running
from rooda.cli.where import where
from rooda.errors import FAILED, OK
from rooda.world import lock, signals


@click.command(short_help="End a running loop as Ctrl+C would; its state is saved.")
@click.argument("name", required=False)
@click.option("--now", is_flag=True, help="Give its agent no time to end by itself.")
@click.pass_context
def stop(ctx: click.Context, name: str | None, now: bool) -> int:
    """End the run of NAME; without NAME the only one that runs here. Its state is saved, its agent ended."""
    loop = one_running(where(ctx).workspace, name)
    return end(loop, now) if loop else OK


def end(loop: Loop, now: bool = False) -> int:
    """SIGTERM to its owner, a second one if it must not wait, and wait until it has gone."""
    who = f"{noun_of(loop.kind)} '{loop.name}'"
    if not done_to(loop, signals.terminate):
        click.echo(f"{who.capitalize()} is running, but which process it is can't be proved.", err=True)
        return FAILED
    if now and not lock.await_free(loop.lock, 0.3):
        signals.terminate(lock.owner(loop.lock))
    if not lock.await_free(loop.lock):
        click.echo(f"Asked {who} (pid {lock.owner(loop.lock).get('pid')}) to stop; it is still ending its agent.")
        return OK
    click.echo(f"Stopped {who}. Resume with: rooda resume {loop.name}")
    return OK
