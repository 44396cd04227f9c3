"""`rooda prune`: snapshots of old runs, and worktrees whose work is merged."""

import os
from typing import TYPE_CHECKING

import click

from rooda.base.text import visible
from rooda.cli import snapshots as shared
from rooda.cli.common import tab_loops
from rooda.errors import OK
from rooda.git import snapshots as world
from rooda.git import worktrees
from rooda.git.retention import Snapshot
from rooda.loops import registry
from rooda.processes import lock
from rooda.settings.where import a_name, where

if TYPE_CHECKING:
    from rooda.git.repository import Repo


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
    own = [each for each in worktrees.all_of(repo) if loop in (None, os.path.basename(each.root).rpartition("-")[0])]
    if loop and not own and not shared.runs(repo, loop):
        shared.require_known(where(ctx), loop)
    old = world.prune(repo, keep, lambda tip: tip.is_of(loop), dry_run)
    _tell(old, keep, dry_run)
    for each in own:
        click.echo(visible(_worktree(repo, each, dry_run)))
    return OK


def _tell(old: list[Snapshot], keep: int, dry_run: bool) -> None:
    for tip in old:
        done = "Would forget" if dry_run else "Forgot"
        click.echo(visible(f"{done} {tip.number} snapshots of {tip.loop}, run {tip.run}"))
    if not old:
        click.echo(f"No snapshots to forget: of each procedure and kind of loop the last {keep} runs stay.")
    elif not dry_run:
        click.echo("git frees their space when it cleans up: git gc")


def _worktree(repo: "Repo", own: worktrees.Own, dry_run: bool) -> str:
    reason = _busy(own) or worktrees.unsafe(repo, own)
    if not reason and not dry_run:
        reason = worktrees.remove(repo, own)
    if reason:
        return f"Kept the worktree {own.root}: {reason}"
    done = "Would remove" if dry_run else "Removed"
    return f"{done} the worktree {own.root} and its branch {own.branch}: all of it is merged"


def _busy(own: worktrees.Own) -> str:
    """Does anything work in it, or wait to go on?"""
    if any(lock.is_held(loop.lock) for loop in registry.known(own.workspace)):
        return "a loop works in it"
    waiting = [loop.name for loop in registry.resumable(own.workspace)]
    return f"a run waits in it (rooda -C {own.workspace} resume {waiting[0]})" if waiting else ""
