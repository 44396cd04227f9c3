"""`rooda pause [NAME]` and `rooda continue [NAME]`: a loop and its agent stand still, and go on."""

import click

from rooda.cli.kinds import Loop
from rooda.cli.running import PATIENCE, done_to, folder_of, noun_of, one_running, ordered
from rooda.cli.where import where
from rooda.errors import FAILED, OK
from rooda.world import clock, descent, lock, orders, signals


@click.command(short_help="Make a running loop and its agent stand still.")
@click.argument("name", required=False)
@click.pass_context
def pause(ctx: click.Context, name: str | None) -> int:
    """As Ctrl+Z would: the loop, its agent and all below it stop where they are; time limits stand still too.

    A service that the agent talks to may not wait that long: for a long pause take `rooda stop` and `rooda resume`.
    """
    return _signal(ctx, name, "pause", signals.suspend, orders.PAUSE, "Paused", "Go on with: rooda continue")


@click.command("continue", short_help="Let a paused loop go on.")
@click.argument("name", required=False)
@click.pass_context
def continue_(ctx: click.Context, name: str | None) -> int:
    """Let a loop go on that `rooda pause` or Ctrl+Z has stopped."""
    return _signal(ctx, name, "continue", signals.go_on, "", "Continued", "Watch it with: rooda attach")


def _standing(workspace: str, loop: Loop) -> tuple[bool, bool]:
    """Has a person ordered it to pause? Does it stand still, by that or by Ctrl+Z?"""
    owner = lock.owner(loop.lock)
    run, pid = owner.get("run"), owner.get("pid")
    ordered = isinstance(run, str) and orders.of(folder_of(workspace, run)).get("order") == orders.PAUSE
    return ordered, descent.is_stopped(pid)


def _signal(ctx: click.Context, name: str | None, verb: str, act: "signals.Act", order: str, *said: str) -> int:
    """`order` stands in the run's folder while it stands still: then nobody but a person goes on with it."""
    here = where(ctx)
    loop = one_running(here, name, verb)
    if loop is None:
        return OK
    who = f"{noun_of(loop.kind)} '{loop.name}'"
    paused, still = _standing(here.workspace, loop)
    if order and paused and still:
        click.echo(f"{who.capitalize()} is paused already. {said[1]} {loop.name}")
        return OK
    ordered(here.workspace, loop, order)
    if not done_to(loop, act):
        click.echo(f"{who.capitalize()} is running, but which process it is can't be proved.", err=True)
        return FAILED
    if not order and not paused and not still:  # told all the same: a pause may be on its way
        click.echo(f"{who.capitalize()} is not paused. {said[1]} {loop.name}")
        return OK
    if not _become(loop, bool(order)):
        click.echo(f"{who.capitalize()} was told to {verb}, but does not. See: rooda status {loop.name}", err=True)
        return FAILED
    click.echo(f"{said[0]} {who}. {said[1]} {loop.name}")
    return OK


def _become(loop: Loop, still: bool) -> bool:
    """It stands still, or does so no longer: whoever comes next finds what we say. One that has ended needs nothing."""
    for _ in range(PATIENCE * 10):
        owner = lock.owner(loop.lock)
        if descent.is_stopped(owner.get("pid")) == still or not lock.is_held(loop.lock):
            return True
        if not still:
            signals.go_on(owner)
        clock.sleep(0.005)
    return False
