"""Watching a run from outside: its lines as they come, and what its agent says."""

import os
import sys
from collections.abc import Callable, Iterator

import click

from rooda.cli.keys import keys
from rooda.model import Json
from rooda.policy.visible import visible_lines
from rooda.report.lines import LEVELS, lines
from rooda.report.tail import Tail
from rooda.report.why import CUT_OFF
from rooda.world import clock, runfolder
from rooda.world.journal import NAME
from rooda.world.pulse import parsed, whole_lines

PAUSE = 0.2  # seconds between looks at the file


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
    name = runfolder.named(os.path.basename(folder))
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
    """The events that are there and those to come; the last look is made after nobody is alive any more.

    Then it is said that the run was cut off: nobody has told of its end.
    """
    offset, path, last = 0, os.path.join(folder, NAME), False
    while True:
        before = offset
        for line in whole_lines(path, offset):
            offset += len(line)
            record = parsed(line)
            if record:
                yield record
            if record and record["event"] == "run.ended":
                return
        if last and offset == before:
            say_cut_off(folder)
            return
        last = not alive()
        if meanwhile:
            meanwhile()
        if not last:
            clock.sleep(PAUSE)
