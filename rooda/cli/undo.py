"""`rooda undo [N] [NAME]`: the work tree as it was before iteration N."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import click

from rooda.base import clock
from rooda.base.text import escape_line
from rooda.cli import snapshots as shared
from rooda.cli.common import tab_loops
from rooda.errors import FAILED, OK, Undecided, UsageProblem
from rooda.git import restore, worktrees
from rooda.git import snapshots as world
from rooda.git.repository import Repo, read_head
from rooda.git.restore import Plan
from rooda.git.retention import UNDO, Snapshot, belongs_to_another_loop, next_undone, undo_position
from rooda.git.snapshots import SnapshotTaker
from rooda.loops import launch, registry
from rooda.processes import lock
from rooda.processes.lock import Lock
from rooda.run import questions
from rooda.settings.where import a_name, where
from rooda.views.screen import Look, Screen

if TYPE_CHECKING:
    from rooda.git.repository import Repo


SHOWN = 20  # paths
_WORDS = {"A": "bring back", "D": "remove", "M": "put back", "T": "put back"}


class Aim(NamedTuple):
    """Where to, and in which words."""

    target: Snapshot
    undo_position: int  # the iteration before which the work tree stands then
    what: str


@click.command(short_help="Put the work tree back to before an iteration.")
@click.argument("words", nargs=-1, metavar="[N] [NAME]", shell_complete=shared.tab_words)
@click.option("--run", metavar="RUN", shell_complete=shared.tab_runs, help=shared.RUN)
@click.option("--redo", is_flag=True, help="Take the last undo back.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("-y", "--yes", is_flag=True, help="Don't ask.")
@click.pass_context
def undo(ctx: click.Context, words: tuple[str, ...], run: str | None, redo: bool, dry_run: bool, yes: bool) -> int:
    """Put the files back to where they were before iteration N; without N before the last one that is not undone yet.

    The present is saved first, so an undo can be undone: rooda undo --redo. Files that git ignores stay as they are;
    so do git's index, branch, HEAD and stash.
    """
    number, loop = shared.meant(words)
    workspace = where(ctx).workspace
    repo = shared.repo_of(workspace)
    tips = shared.runs(repo, loop, run)
    shared.require(where(ctx), tips, loop, run)
    _refuse_beside_a_loop(workspace)
    found = shared.run_with(repo, tips, number)
    held = _held(workspace, found.tip)
    try:
        return _undo(repo, found, number, redo, _Way(dry_run, yes))
    finally:
        held.unlock()


class _Way(NamedTuple):
    dry_run: bool
    yes: bool


def _undo(repo: Repo, run: shared.Run, number: int | None, redo: bool, way: _Way) -> int:
    tip = run.tip
    taker = SnapshotTaker(repo, tip.run, tip.kind, tip.loop, tip.family, tip)
    seen = taker.read()
    aim = _redone(run) if redo else _aim(run, number, seen.tree)
    _require_branch(repo, aim.target)
    plan = restore.plan(repo, seen.tree, aim.target.tree, _staying(repo.workspace, tip))
    for line in _shown(plan):
        click.echo(line)
    for what, trouble in (("the present can be saved", seen.trouble), ("it is in that snapshot", aim.target.trouble)):
        if trouble:
            click.echo(f"WARNING: not all of {what}: {trouble}", err=True)
    _say_head(repo, aim.target)
    if not plan.changes:
        click.echo(f"Nothing to do: the files are as they were {aim.what} already.")
        return _code(plan)
    if way.dry_run:
        click.echo("Nothing was done: --dry-run.")
        return OK
    _confirm(aim, way)
    saved, _ = taker.save(seen, aim.undo_position, UNDO)
    restore.apply(repo, taker.index, plan)
    click.echo(f"The work tree is as it was {aim.what}. What it was until now is saved as {saved.ref}")
    click.echo(f"Take this back with: rooda undo --redo{_naming(repo, tip)}")
    return _code(plan)


def _naming(repo: Repo, tip: Snapshot) -> str:
    """What must be typed so that this run is meant: nothing, its loop, or itself."""
    for words, loop in (("", None), (f" {tip.loop}", tip.loop)):
        if shared.run_with(repo, shared.runs(repo, loop), None).tip.run == tip.run:
            return words
    return f" --run {tip.run}"


def _aim(run: shared.Run, number: int | None, present: str) -> Aim:
    back = (
        next_undone(run.turns, present, undo_position(run.snapshots)) if number is None else shared.turn_of(run, number)
    )
    turn = back or run.turns[0]
    first, last = turn.before.iteration, run.turns[-1].before.iteration
    which = f"iteration {first}" if first == last else f"iterations {first} to {last}"
    return Aim(turn.before, first, f"before {which} of {run.tip.loop}")


def _redone(run: shared.Run) -> Aim:
    tip, *earlier = run.snapshots
    if tip.moment != UNDO:
        raise UsageProblem("There is no undo to take back: the loop has run since, or nothing was undone.")
    return Aim(tip, undo_position(earlier), f"at {clock.rfc3339(tip.seconds)}, before the last undo")


def _staying(workspace: str, tip: Snapshot) -> Callable[[str], bool]:
    """Which paths other loops need."""
    own = registry.kind(tip.kind).work_paths(workspace, tip.loop)
    return lambda path: belongs_to_another_loop(path, tip, own)


def _shown(plan: Plan) -> list[str]:
    lines = [f"{_WORDS[row.status]:>10}  {escape_line(row.path)}" for row in plan.changes[:SHOWN]]
    more = len(plan.changes) - SHOWN
    return lines + ([f"{'':>10}  … and {more} more"] if more > 0 else []) + restore.left_alone(plan)


def _code(plan: Plan) -> int:
    return FAILED if plan.ignored or plan.nested else OK


def _say_head(repo: Repo, target: Snapshot) -> None:
    """An undo leaves commits alone; a person should know of them."""
    head, branch = read_head(repo)
    if not target.head or head == target.head:
        return
    now, then = f"{branch or 'HEAD'} is at {head[:12]}", f"at {target.head[:12]}"
    if registry.KINDS[target.kind].on_branch:
        what = f"Commits stay; rooda resume {target.loop} takes them off {branch}, back to {target.head[:12]}."
    elif branch == target.branch:
        what = f"Commits stay: {now}, and was {then} then. To go back there too: git reset --mixed {target.head[:12]}"
    else:
        what = f"Commits and branch stay: {now}, and {target.branch or 'HEAD'} was checked out {then} then."
    click.echo(what, err=True)


def _require_branch(repo: Repo, target: Snapshot) -> None:
    """A flow's state is on its branch."""
    branch = read_head(repo).branch
    if registry.KINDS[target.kind].on_branch and target.branch != branch:
        what = f"{target.loop} works on {target.branch}, but {branch or 'no branch'} is checked out"
        raise Undecided(f"{what}; nothing was changed.", f"Go there first: git checkout {target.branch}")


def _confirm(aim: Aim, way: _Way) -> None:
    if way.yes:
        return
    if not questions.at_terminal():
        raise Undecided("Nothing was changed: an undo changes files, and nobody is here to ask.", "Say it with: --yes")
    answer = questions.typed_answer(f"Put the work tree back to how it was {aim.what}? [y/N] ")
    if (answer or "").strip().lower() not in ("y", "yes"):
        raise Undecided("Nothing was changed.")


def _refuse_beside_a_loop(workspace: str) -> None:
    running = [loop.name for loop in registry.known(workspace) if lock.is_held(loop.lock)]
    if running:
        what = f"A loop works here ({', '.join(running)}); nothing was changed."
        raise Undecided(what, f"End it first: rooda stop {running[0]}")


def _held(workspace: str, tip: Snapshot) -> Lock:
    """The loop's lock: it does not begin while files are put back, and nobody that a killed one left goes on."""
    path = registry.kind(tip.kind).lock_of(workspace, tip.loop)
    held = launch.locked(path, f"the loop '{tip.loop}'", tip.loop, Screen(Look()))
    if held is None:
        raise Undecided("Nothing was changed: a loop could begin meanwhile.")
    return held


# `rooda prune`: snapshots of old runs, and worktrees whose work is merged.


@click.command(short_help="Remove snapshots of old runs, and worktrees whose work is merged.")
@click.argument("name", required=False, shell_complete=tab_loops)
@click.option("--keep", type=click.IntRange(min=0), default=world.KEEP, metavar="K", help="Runs that stay; 20.")
@click.option("--dry-run", is_flag=True, help="Say what would go, and remove nothing.")
@click.pass_context
def prune(ctx: click.Context, name: str | None, keep: int, dry_run: bool) -> int:
    """Keep the snapshots of the last K runs of each procedure and kind of loop, or of NAME, and forget the older ones.

    A worktree that --worktree made goes when nothing works or waits in it, everything in it is committed, and its
    commits are in another branch. All others stay.
    """
    loop = name and a_name(name)
    repo = shared.repo_of(where(ctx).workspace)
    own = [
        each
        for each in worktrees.list_worktrees(repo)
        if loop in (None, os.path.basename(each.root).rpartition("-")[0])
    ]
    if loop and not own and not shared.runs(repo, loop):
        shared.require_known(where(ctx), loop)
    old = world.prune(repo, keep, lambda tip: tip.is_of(loop), dry_run)
    _tell(old, keep, dry_run)
    for each in own:
        click.echo(escape_line(_worktree(repo, each, dry_run)))
    return OK


def _tell(old: list[Snapshot], keep: int, dry_run: bool) -> None:
    for tip in old:
        done = "Would forget" if dry_run else "Forgot"
        click.echo(escape_line(f"{done} {tip.number} snapshots of {tip.loop}, run {tip.run}"))
    if not old:
        click.echo(f"No snapshots to forget: of each procedure and kind of loop the last {keep} runs stay.")
    elif not dry_run:
        click.echo("git frees their space when it cleans up: git gc")


def _worktree(repo: "Repo", own: worktrees.Worktree, dry_run: bool) -> str:
    reason = _busy(own) or worktrees.reason_to_keep(repo, own)
    if not reason and not dry_run:
        reason = worktrees.remove(repo, own)
    if reason:
        return f"Kept the worktree {own.root}: {reason}"
    done = "Would remove" if dry_run else "Removed"
    return f"{done} the worktree {own.root} and its branch {own.branch}: all of it is merged"


def _busy(own: worktrees.Worktree) -> str:
    """Does anything work in it, or wait to go on?"""
    if any(lock.is_held(loop.lock) for loop in registry.known(own.workspace)):
        return "a loop works in it"
    waiting = [loop.name for loop in registry.resumable(own.workspace)]
    return f"a run waits in it (rooda -C {own.workspace} resume {waiting[0]})" if waiting else ""
