"""`rooda undo [N] [NAME]`: the work tree as it was before iteration N."""

from typing import NamedTuple

import click

from rooda.cli import entrance, kinds
from rooda.cli import snapshots as shared
from rooda.cli.where import where
from rooda.errors import FAILED, OK, Undecided, UsageProblem
from rooda.policy.snapshots import UNDO, Snapshot, next_undone, standing
from rooda.report.screen import Look, Screen
from rooda.stores.procedure_state import Place
from rooda.world import lock, person, restore
from rooda.world.lock import Lock
from rooda.world.restore import Plan
from rooda.world.snapshots import Taker, WorkTree, position

SHOWN = 20  # paths
_WORDS = {"A": "bring back", "D": "remove", "M": "put back", "T": "put back"}


class Aim(NamedTuple):
    """Where to, and in which words."""

    target: Snapshot
    standing: int  # the iteration before which the work tree stands then
    what: str


@click.command(short_help="Put the work tree back to before an iteration.")
@click.argument("words", nargs=-1, metavar="[N] [NAME]")
@click.option("--run", metavar="RUN", help="The run, as `rooda snapshots` names it, not the newest.")
@click.option("--redo", is_flag=True, help="Take the last undo back.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("-y", "--yes", is_flag=True, help="Don't ask.")
@click.pass_context
def undo(
    ctx: click.Context, words: tuple[str, ...], run: str | None, redo: bool, dry_run: bool, yes: bool
) -> int:
    """Put the files back to where they were before iteration N; without N before the last one that is not undone yet.

    The present is saved first, so an undo can be undone: rooda undo --redo. Files that git ignores stay as they are;
    so do git's index, branch, HEAD and stash.
    """
    number, loop = shared.meant(words)
    workspace = where(ctx).workspace
    tree = shared.tree_of(workspace)
    tips = shared.runs(tree, loop, run)
    shared.require(tips, loop)
    _refuse_beside_a_loop(workspace)
    held = _held(workspace, tips[0].loop)
    try:
        return _undo(tree, tips, number, redo, _Way(dry_run, yes))
    finally:
        held.let_go()


class _Way(NamedTuple):
    dry_run: bool
    yes: bool


def _undo(tree: WorkTree, tips: list[Snapshot], number: int | None, redo: bool, way: _Way) -> int:
    run = shared.run_with(tree, tips, number)
    taker = Taker(tree, run.tip.run, run.tip.loop, run.tip)
    present = taker.present()
    aim = _redone(run) if redo else _aim(run, number, present)
    plan = restore.plan(tree, present, aim.target.tree)
    for line in _shown(plan):
        click.echo(line)
    if taker.trouble:
        click.echo(f"WARNING: not all of the present can be saved: {taker.trouble}", err=True)
    _say_head(tree, aim.target)
    if not plan.changes:
        click.echo(f"Nothing to do: the files are as they were {aim.what} already.")
        return _code(plan)
    if way.dry_run:
        click.echo("Nothing was done: --dry-run.")
        return OK
    _confirm(aim, way)
    saved = taker.keep(present, aim.standing, UNDO)
    restore.carry_out(tree, tree.index_of(run.tip.loop), plan)
    click.echo(f"The work tree is as it was {aim.what}. What it was until now is saved as {saved.ref}")
    click.echo("Take this back with: rooda undo --redo")
    return _code(plan)


def _aim(run: shared.Run, number: int | None, present: str) -> Aim:
    back = next_undone(run.turns, present, standing(run.snapshots)) if number is None else shared.turn_of(run, number)
    turn = back or run.turns[0]
    first, last = turn.before.iteration, run.turns[-1].before.iteration
    which = f"iteration {first}" if first == last else f"iterations {first} to {last}"
    return Aim(turn.before, first, f"before {which} of {run.tip.loop}")


def _redone(run: shared.Run) -> Aim:
    tip, *earlier = run.snapshots
    if tip.moment != UNDO:
        raise UsageProblem("There is no undo to take back: the loop has run since, or nothing was undone.")
    return Aim(tip, standing(earlier), f"at {shared.stamp(tip.seconds)}, before the last undo")


def _shown(plan: Plan) -> list[str]:
    lines = [f"{_WORDS[row.status]:>10}  {row.path}" for row in plan.changes[:SHOWN]]
    more = len(plan.changes) - SHOWN
    lines += [f"{'':>10}  … and {more} more"] if more > 0 else []
    lines += [f"left alone  {path} (git ignores it, now or then)" for path in plan.ignored]
    return lines + [f"left alone  {path} (a repository of its own)" for path in plan.nested]


def _code(plan: Plan) -> int:
    return FAILED if plan.ignored or plan.nested else OK


def _say_head(tree: WorkTree, target: Snapshot) -> None:
    """An undo leaves commits alone; a person should know of them."""
    head, branch = position(tree)
    if target.head and head != target.head:
        now = f"{branch or 'HEAD'} is at {head[:12]}"
        click.echo(f"Commits stay: {now}, and was at {target.head[:12]} then. To go back there too: "
                   f"git reset --mixed {target.head[:12]}", err=True)


def _confirm(aim: Aim, way: _Way) -> None:
    if way.yes:
        return
    if not person.at_terminal():
        raise Undecided("Nothing was changed: an undo changes files, and nobody is here to ask.", "Say it with: --yes")
    answer = person.typed_answer(f"Put the work tree back to how it was {aim.what}? [y/N] ")
    if (answer or "").strip().lower() not in ("y", "yes"):
        raise Undecided("Nothing was changed.")


def _refuse_beside_a_loop(workspace: str) -> None:
    running = [loop.name for loop in kinds.known(workspace) if lock.is_held(loop.lock)]
    if running:
        what = f"A loop works here ({', '.join(running)}); nothing was changed."
        raise Undecided(what, f"End it first: rooda stop {running[0]}")


def _held(workspace: str, loop: str) -> Lock:
    """The procedure's lock: no loop begins while files are put back, and nobody that a killed one left goes on."""
    held = entrance.locked(Place(workspace, loop).lock, f"procedure '{loop}'", loop, Screen(Look()))
    if held is None:
        raise Undecided("Nothing was changed: a loop could begin meanwhile.")
    return held
