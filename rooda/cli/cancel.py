"""`rooda cancel [NAME]`: ends a loop for good. A running loop is stopped first."""

import click

from rooda.cli import common
from rooda.cli.control import end_loop, named
from rooda.errors import OK, Undecided
from rooda.loops import launch, registry
from rooda.loops.configuration import require_own
from rooda.loops.registry import Loop
from rooda.processes import lock
from rooda.run import folder, history
from rooda.settings.where import Where, where
from rooda.views.screen import Screen, ScreenOptions


@click.command(short_help="End a loop for good; its run and its work stay.")
@click.argument("name", required=False, shell_complete=common.tab_open)
@click.option("--reason", metavar="TEXT", default="", help="Record this reason.")
@click.pass_context
def cancel(ctx: click.Context, name: str | None, reason: str) -> int:
    """End the loop NAME for good: it can't be resumed. Without NAME, end the only loop that runs or can be resumed.

    A running loop is stopped first, as `rooda stop` does. Its run (`rooda runs`, `rooda logs`), its commits and its
    other work stay. To end a loop that you want to resume later: rooda stop
    """
    here = where(ctx)
    require_own(here)
    loop = _meant(here, name)
    if loop is None:
        click.echo("Nothing is running here, and nothing can be resumed.")
        return OK
    why = folder.readable(reason).strip()
    if lock.is_held(loop.lock) and _is_working_on(loop):
        code = end_loop(here.workspace, loop, reason=why, for_good=True)
        if code != OK:
            return code
        if lock.is_held(loop.lock):
            raise Undecided(f"{named(loop, True)} was not cancelled yet.", f"Try again: rooda cancel {loop.name}")
    return _cancelled(here, loop, why)


def open_loops(here: Where) -> list[Loop]:
    """Return the loops that run or can be resumed."""
    running = [loop for loop in registry.known(here.workspace) if lock.is_held(loop.lock)]
    idle = [
        loop._replace(lock=registry.kind(loop.kind).lock_of(here.workspace, loop.name))
        for loop in registry.resumable(here.workspace)
        if loop.name not in {each.name for each in running if each.kind == loop.kind}
    ]
    return [*running, *idle]


def _meant(here: Where, name: str | None) -> Loop | None:
    """Return the loop to cancel; None if there is none. Raises Undecided if several match."""
    wanted = common.loop_of(here, name) if name else None
    found = [loop for loop in open_loops(here) if wanted in (None, loop.name)]
    if len(found) > 1:
        rows = "\n".join(f"  rooda {_with_kind(loop)}cancel {loop.name}" for loop in found)
        raise Undecided("Several loops can be cancelled; name one.", rows)
    if found or wanted is None:
        return found[0] if found else None
    common.require_known(here, wanted)
    kind = common.kind_of(here, wanted)
    return Loop(kind, wanted, registry.kind(kind).lock_of(here.workspace, wanted))


def _with_kind(loop: Loop) -> str:
    return "" if loop.kind == registry.OODA else f"{loop.kind} "


def _is_working_on(loop: Loop) -> bool:
    """True if the process that holds the lock runs this loop; a work tree has one lock for all its flows."""
    run = lock.owner(loop.lock).get("run")
    return not isinstance(run, str) or folder.loop_of(run) == loop.name


def _cancelled(here: Where, loop: Loop, reason: str) -> int:
    """Cancel a loop that is not running, while holding its lock; taking the lock ends orphans of an earlier run."""
    kind, screen = registry.kind(loop.kind), Screen(ScreenOptions())
    held = launch.take_lock(loop.lock, named(loop), loop.name, screen)
    try:
        kept = kind.cancel(here.workspace, loop.name, reason)
        if kept:
            history.note_cancel(here.workspace, loop.name, loop.kind, reason)
    finally:
        if held:
            held.release()
    nothing = f"{named(loop, True)} has no saved state; there is nothing to cancel."
    click.echo(f"Cancelled {named(loop)}. {kept}" if kept else nothing)
    return OK
