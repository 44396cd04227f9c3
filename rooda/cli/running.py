"""The loop that runs here, for the commands that do something to it."""

from typing import TYPE_CHECKING

import click

from rooda.base import clock
from rooda.cli.common import kind_of, loop_of, require_known, say_above
from rooda.errors import Undecided
from rooda.loops import registry
from rooda.loops.options import items, place_of_tab
from rooda.loops.registry import Loop
from rooda.processes import lock, signals
from rooda.run import folder as run_folder
from rooda.settings.where import Where

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

PATIENCE = 100  # looks, a twentieth of a second apart


def one_running(here: Where, name: str | None, verb: str = "stop") -> Loop | None:
    """The one that runs, or the one of this name; None if there is none, which has been said."""
    wanted = name = loop_of(here, name) if name else None
    loops = [loop for loop in registry.known(here.workspace) if wanted in (None, loop.name)]
    running = [loop for loop in loops if lock.is_held(loop.lock)]
    if name and not loops:
        require_known(here, name)
    if not running:
        who = f"{noun_of(kind_of(here, name)).capitalize()} '{name}'" if name else ""
        click.echo(f"{who} is not running." if name else "Nothing is running here.")
        say_above(here.workspace)
        return None
    if len(running) > 1:
        rows = "\n".join(f"  rooda {verb} {each.name}" for each in running)
        raise Undecided("Several loops are running; name one.", rows)
    return running[0]


def tab_running(ctx: click.Context, _: click.Parameter, incomplete: str) -> list["CompletionItem"]:
    loops = registry.known(place_of_tab(ctx).workspace)
    return items(((loop.name, "running") for loop in loops if lock.is_held(loop.lock)), incomplete)


def named(loop: Loop, begin: bool = False) -> str:
    """As it is called in a sentence; `begin`: at its beginning."""
    noun = noun_of(loop.kind)
    return f"{noun.capitalize() if begin else noun} '{loop.name}'"


def noun_of(kind: str) -> str:
    return "procedure" if kind == registry.OODA else kind


def ordered(workspace: str, loop: Loop, word: str, reason: str = "") -> None:
    """On record before it happens; no word takes back what stands there. One that has just begun is asked again."""
    for _ in range(PATIENCE):
        run = lock.owner(loop.lock).get("run")
        if isinstance(run, str) and run_folder.is_id(run):
            folder = run_folder.folder_of(workspace, run)
            run_folder.leave_order(folder, word, reason) if word else run_folder.take_back_order(folder)
            return
        if not lock.is_held(loop.lock):
            return
        clock.sleep(0.05)


def done_to(loop: Loop, act: "signals.Act") -> bool:
    """The act upon the loop's owner. One that has just begun has not yet written who it is: it is asked again."""
    for _ in range(PATIENCE):
        if act(lock.owner(loop.lock)):
            return True
        if not lock.is_held(loop.lock):
            return False
        clock.sleep(0.05)
    return False
