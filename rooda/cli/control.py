"""`rooda pause [NAME]` and `rooda continue [NAME]`: a loop and its agent stand still, and go on."""

import click

from rooda.base import clock
from rooda.cli.running import done_to, named, one_running, ordered, tab_running
from rooda.errors import FAILED, OK
from rooda.loops.registry import Loop
from rooda.processes import lock, signals, table
from rooda.run import folder
from rooda.settings.where import where

PATIENCE = 100  # looks
LOOK = 0.02  # seconds between two


@click.command(short_help="Make a running loop and its agent stand still.")
@click.argument("name", required=False, shell_complete=tab_running)
@click.pass_context
def pause(ctx: click.Context, name: str | None) -> int:
    """As Ctrl+Z would: the loop, its agent and all below it stop where they are; time limits stand still too.

    A service that the agent talks to may not wait that long: for a long pause take `rooda stop` and `rooda resume`.
    """
    return _signal(ctx, name, "pause", signals.suspend, folder.PAUSE, "Paused", "Go on with: rooda continue")


@click.command("continue", short_help="Let a paused loop go on.")
@click.argument("name", required=False, shell_complete=tab_running)
@click.pass_context
def continue_(ctx: click.Context, name: str | None) -> int:
    """Let a loop go on that `rooda pause` or Ctrl+Z has stopped."""
    return _signal(ctx, name, "continue", signals.go_on, "", "Continued", "Watch it with: rooda attach")


def _standing(workspace: str, loop: Loop) -> tuple[bool, bool]:
    """Has a person ordered it to pause? Does it stand still, by that or by Ctrl+Z?"""
    owner = lock.owner(loop.lock)
    run, pid = owner.get("run"), owner.get("pid")
    ordered = isinstance(run, str) and folder.order_of(folder.folder_of(workspace, run)).get("order") == folder.PAUSE
    return ordered, table.is_stopped(pid)


def _comes_to(loop: Loop, still: bool) -> bool:
    """False if it ended before that. A pause and a continue may cross each other: then it is told again to go on.

    One that saves a large work tree stands still after that, and is not waited for so long.
    """
    for _ in range(PATIENCE):
        owner = lock.owner(loop.lock)
        if not lock.is_held(loop.lock) or table.standing(owner.get("pid")) == {still}:
            break
        clock.sleep(LOOK)
        if not still:
            signals.go_on(owner)
    return lock.is_held(loop.lock)


def _signal(ctx: click.Context, name: str | None, verb: str, act: "signals.Act", order: str, *said: str) -> int:
    """`order` stands in the run's folder while it stands still: then nobody but a person goes on with it."""
    here = where(ctx)
    loop = one_running(here, name, verb)
    if loop is None:
        return OK
    paused, still = _standing(here.workspace, loop)
    if order and paused and still:
        click.echo(f"{named(loop, True)} is paused already. {said[1]} {loop.name}")
        return OK
    ordered(here.workspace, loop, order)
    if not done_to(loop, act) and lock.is_held(loop.lock):
        click.echo(f"{named(loop, True)} is running, but which process it is can't be proved.", err=True)
        return FAILED
    woken = not order and (paused or still)  # which is true also if it came to its end right after
    if not _comes_to(loop, bool(order)) and not woken:
        click.echo(f"{named(loop, True)} has ended meanwhile.")
        return OK
    if not order and not paused and not still:  # told all the same: a pause may be on its way
        click.echo(f"{named(loop, True)} is not paused. {said[1]} {loop.name}")
        return OK
    click.echo(f"{said[0]} {named(loop)}. {said[1]} {loop.name}")
    return OK
