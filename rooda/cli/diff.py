"""`rooda diff [N] [NAME]`: what iteration N changed in the work tree."""

import sys

import click

from rooda.cli import snapshots as shared
from rooda.errors import OK
from rooda.git import snapshots as world
from rooda.git import work_tree
from rooda.git.repository import Repo
from rooda.git.retention import Turn
from rooda.settings.where import where
from rooda.views.live import is_terminal


@click.command(short_help="What an iteration changed in the work tree.")
@click.argument("words", nargs=-1, metavar="[N] [NAME]", shell_complete=shared.tab_words)
@click.option("--run", metavar="RUN", shell_complete=shared.tab_runs, help=shared.RUN)
@click.option("--stat", is_flag=True, help="Only which files, and how much.")
@click.option("--name-only", is_flag=True, help="Only the files' names.")
@click.pass_context
def diff(ctx: click.Context, words: tuple[str, ...], run: str | None, stat: bool, name_only: bool) -> int:
    """What iteration N changed; without N the last one. Of one that goes on, or was cut off: what it did so far."""
    number, loop = shared.meant(words)
    repo = shared.repo_of(where(ctx).workspace)
    tips = shared.runs(repo, loop, run)
    shared.require(where(ctx), tips, loop, run)
    found = shared.run_with(repo, tips, number)
    turn = found.turns[-1] if number is None else shared.turn_of(found, number)
    how = ["--stat"] if stat else ["--name-only"] if name_only else []
    colour = "always" if is_terminal(sys.stdout) else "never"
    end, what = _end(repo, found, turn)
    click.echo(f"Iteration {turn.before.iteration} of {turn.before.loop}, run {turn.before.run}{what}", err=True)
    done = repo.ask("diff", f"--color={colour}", "--no-ext-diff", *how, turn.before.tree, end)
    click.echo(done.out, nl=False)
    return OK


def _end(repo: Repo, run: shared.Run, turn: Turn) -> tuple[str, str]:
    """The tree that it is compared with, and a word about it: what it left, else what the next thing found."""
    if turn.after:
        return turn.after.tree, ""
    later = [each for each in run.snapshots if each.number > turn.before.number]
    if later:
        return later[-1].tree, " (it was cut off; compared with the next snapshot)"
    newer = [tip for tip in shared.runs(repo, run.tip.loop) if tip.seconds >= run.tip.seconds and tip.run > run.tip.run]
    if newer:
        return world.history(repo, newer[-1])[-1].tree, " (it was cut off; compared with the next run's beginning)"
    now = work_tree.look_now(repo, world.index_of(repo, run.tip.family)).tree
    return now, " (it goes on, or was cut off; compared with the work tree as it is now)"
