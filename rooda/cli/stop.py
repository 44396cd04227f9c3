"""`rooda stop [NAME]`: end a running loop as Ctrl+C would."""

import click

from rooda.cli import kinds
from rooda.cli.kinds import Loop
from rooda.cli.where import a_name, where
from rooda.errors import FAILED, OK, Undecided
from rooda.world import lock, signals


@click.command(short_help="End a running loop as Ctrl+C would; its state is saved.")
@click.argument("name", required=False)
@click.pass_context
def stop(ctx: click.Context, name: str | None) -> int:
    """End the run of NAME; without NAME the only one that runs here. Its state is saved, its agent ended."""
    wanted = a_name(name) if name else None
    loops = [loop for loop in kinds.known(where(ctx).workspace) if wanted in (None, loop.name)]
    running = [loop for loop in loops if lock.is_held(loop.lock)]
    if not running:
        click.echo(f"{_called(loops, name)} is not running." if name else "Nothing is running here.")
        return OK
    if len(running) > 1:
        rows = "\n".join(f"  rooda stop {each.name}" for each in running)
        raise Undecided("Several loops are running; name one.", rows)
    return end(running[0])


def _called(loops: list[Loop], name: str | None) -> str:
    kind = loops[0].kind if loops else kinds.OODA
    return f"{_noun(kind).capitalize()} '{name}'"


def _noun(kind: str) -> str:
    return "procedure" if kind == kinds.OODA else kind


def end(loop: Loop) -> int:
    """SIGTERM to its owner, and wait until it has gone."""
    who, owner = f"{_noun(loop.kind)} '{loop.name}'", lock.owner(loop.lock)
    if not signals.terminate(owner):
        click.echo(f"{who.capitalize()} is running, but which process it is can't be proved.", err=True)
        return FAILED
    if not lock.await_free(loop.lock):
        click.echo(f"Asked {who} (pid {owner['pid']}) to stop; it is still ending its agent.")
        return OK
    click.echo(f"Stopped {who}. Resume with: rooda resume {loop.name}")
    return OK
