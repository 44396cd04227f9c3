"""Watching a run from outside: its lines as they come, and what its agent says."""

import os
import sys
from collections.abc import Callable, Iterator

import click

from rooda.base.json import Json
from rooda.base.text import visible_lines
from rooda.cli.keys import keys
from rooda.run import folder as run_folder
from rooda.run.events import NAME
from rooda.run.history import following
from rooda.views.agent_output import Tail
from rooda.views.lines import LEVELS, lines
from rooda.views.why import CUT_OFF


def follow(folder: str, least: int, agent: bool, alive: Callable[[], bool]) -> None:
    """Until the run has ended, or nobody is left who could end it."""
    tail = Tail(lambda text: click.echo(text, nl=False)) if agent else None
    if tail:
        tail.hidden = keys()
    for record in records(folder, alive, tail.read if tail else None):
        if tail:
            tail.note({"output": "text", **record})
        show(record, least)
        sys.stdout.flush()


def say_cut_off(folder: str) -> None:
    """Of a run whose log has no end, and that nobody can go on with but a resume."""
    name = run_folder.loop_of(os.path.basename(folder))
    click.echo(f"The run was cut off: {CUT_OFF}. Go on with: rooda resume {name}", err=True)


def show(record: Json, least: int) -> None:
    try:
        found = lines(record)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError):
        return  # somebody changed the file
    for line in found:
        if LEVELS[line.level] >= least:
            click.echo(f"[{record['ts']}] {visible_lines(line.text)}")


def records(folder: str, alive: Callable[[], bool], meanwhile: Callable[[], None] | None = None) -> Iterator[Json]:
    """The events that are there and those to come; says at the end that the run was cut off if its log has no end."""
    last: Json = {}
    for last in following(os.path.join(folder, NAME), alive, meanwhile):
        yield last
    if last.get("event") != "run.ended":
        say_cut_off(folder)
