"""`rooda goal rollback K`: the work tree as it was before iteration K."""

import click

from rooda.base.json import Json
from rooda.base.text import visible
from rooda.errors import OK, Undecided, UsageProblem
from rooda.git.restore import left_alone
from rooda.loops.goal import checkpoints
from rooda.loops.goal.files import Place
from rooda.loops.goal.store import look
from rooda.processes import lock
from rooda.settings.where import Where


def act(where: Where, typed: Json) -> int:
    place = Place(where.workspace)
    state = look(place)
    if state is None:
        raise UsageProblem("There is no goal here.", "Its checkpoints are git refs: git for-each-ref refs/rooda")
    run = state.brief.run
    if typed["k"] is None:
        known = checkpoints.checkpoints(where.workspace, run)
        rows = [f"{name}  {commit[:12]}" for name, commit in known.items()]
        click.echo("\n".join(["Checkpoints, each from before its iteration:", *rows] if rows else ["No checkpoints."]))
        return OK
    held = lock.take(place.lock)
    if held is None:
        raise Undecided("The goal is running; nothing was restored.", "Let it pause first: rooda goal pause")
    try:
        done, kept = checkpoints.rolled_back(where.workspace, run, typed["k"])
    finally:
        held.let_go()
    of = f"from before iteration {typed['k']}" if typed["k"].isdecimal() else f"of checkpoint {typed['k']}"
    click.echo(f"Restored the work tree {of}: {len(done.changes)} files.")
    for row in done.changes:
        click.echo(f"  {visible(row.path)}")
    for line in left_alone(done):
        click.echo(line)
    click.echo(f"The present was kept as checkpoint {kept}. Branch and index are untouched.")
    return OK
