"""`rooda resume --all`: at boot or login, every run that was cut off goes on in the background, in every workspace."""

import os
from collections.abc import Iterator
from typing import NamedTuple

import click

from rooda.base import files
from rooda.cli.exits import ERROR, WARNING
from rooda.errors import FAILED, OK, UNDECIDED, Interrupted, RoodaError
from rooda.loops import registry
from rooda.loops.overview import name_of
from rooda.loops.registry import Loop
from rooda.processes import capture, detach, lock
from rooda.processes.guardian import MANAGER
from rooda.processes.signals import Haste
from rooda.run import folder, history, workspaces
from rooda.run.ended import cut_off
from rooda.settings.where import Where

PATIENCE = 120.0  # seconds in which a run must have begun


class CutOff(NamedTuple):
    """A run that can go on, and the folder of its newest session."""

    workspace: str
    loop: Loop
    folder: str


def resume_all(here: Where) -> tuple[int, list[CutOff]]:
    """The exit code, and those that go on now. After a signal no further one is begun."""
    codes: dict[CutOff, int] = {}
    haste = Haste(0)
    try:
        for each in (each for workspace in _everywhere(here) for each in _of(workspace)):
            codes[each] = FAILED
            codes[each] = _goes_on(each, haste)
    except Interrupted:
        click.echo(f"Interrupted before {each.loop.name} in {each.workspace} could go on; the rest waits.", err=True)
    if not codes:
        click.echo("No run was cut off; there is nothing to resume.")
    good = all(code in (OK, UNDECIDED) for code in codes.values())
    return OK if good else FAILED, [each for each, code in codes.items() if code == OK]


def _everywhere(here: Where) -> list[str]:
    known = workspaces.known()
    own = os.path.realpath(here.workspace)
    return known if own in known else [*known, own]


def _of(workspace: str) -> Iterator[CutOff]:
    """Of one workspace. Its settings and states may be broken: that is for its own commands to say."""
    for kind in registry.KINDS:
        try:
            names = [*registry.tenant(kind).resumable(workspace), *damaged(workspace, kind)]
            paths = registry.tenant(kind).locks(workspace)
        except (RoodaError, OSError) as problem:
            click.echo(f"{workspace}: {kind} loops can't be looked at: {problem}", err=True)
            continue
        for name in names:
            sessions = history.sessions(workspace, name, kind)
            held = name in paths and lock.is_held(paths[name])
            if sessions and not held and _is_cut_off(sessions[-1]):
                yield CutOff(workspace, Loop(kind, name, paths.get(name, "")), sessions[-1].folder)


def damaged(workspace: str, kind: str) -> list[str]:
    """They can't go on; their own resume says why."""
    return [name_of(each) for each in registry.tenant(kind).facts(workspace, None) if each.get("status") == "damaged"]


def _is_cut_off(session: history.SessionLog) -> bool:
    """True if a user or a service may go on with it; a run inside another one belongs to that one."""
    if not session.first or folder.origin_of(session.folder).get("inside"):
        return False
    return cut_off(session.ended, session.asked, folder.order_of(session.folder).get("order", ""))


def _goes_on(each: CutOff, haste: Haste) -> int:
    """Resumed as it was started, in the background: OK; UNDECIDED where somebody else has just done so; else FAILED."""
    if haste.signal:
        raise Interrupted(haste.signal)
    words = ["-C", each.workspace, "resume", each.loop.name, "--detach"]
    env = {key: value for key, value in os.environ.items() if key not in MANAGER}
    done = capture.capture([*detach.command(), *words], timeout=PATIENCE, env=env, cwd=each.workspace)
    who = f"{each.loop.name} in {each.workspace}"
    if done.code == OK:
        click.echo(f"Resumed {who}")
        return OK
    said = files.to_text(done.err).strip().splitlines() or [f"exit {done.code}"]
    why = next((line for line in said if line.startswith((ERROR, WARNING))), said[0])
    if done.code == UNDECIDED and lock.is_held(registry.tenant(each.loop.kind).lock_of(each.workspace, each.loop.name)):
        click.echo(f"Runs already: {who}")
        return UNDECIDED
    click.echo(f"Not resumed: {who}: {why}", err=True)
    return FAILED
