"""`rooda undo [N] [NAME]` restores the work tree; `rooda prune` removes old snapshots and merged worktrees."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import click

from rooda.base import clock, files
from rooda.base.text import counted, escape_line
from rooda.cli import snapshots as shared
from rooda.cli.common import tab_loops
from rooda.errors import FAILED, OK, Undecided, UsageProblem
from rooda.git import command, restore, worktrees
from rooda.git import snapshots as world
from rooda.git.private import PrivateFiles
from rooda.git.repository import GitProblem, Repo, find, read_head
from rooda.git.restore import Plan
from rooda.git.retention import UNDO, Snapshot, belongs_to_another_loop, last_undo, next_undone, undo_position
from rooda.git.snapshots import SnapshotTaker
from rooda.loops import configuration, launch, registry
from rooda.processes import lock
from rooda.processes.lock import Lock
from rooda.run import folder as run_folder
from rooda.run import history, private_homes, questions
from rooda.settings.where import Where, valid_name, where
from rooda.views.screen import Screen, ScreenOptions

if TYPE_CHECKING:
    from rooda.git.repository import Repo


SHOWN = 20  # paths; more are only counted
_WORDS = {"A": "bring back", "D": "remove", "M": "put back", "T": "put back"}


class Target(NamedTuple):
    """The snapshot to restore, and its description."""

    snapshot: Snapshot
    undo_position: int  # the iteration from which the next undo without N counts back
    what: str


@click.command(short_help="Restore the work tree from before an iteration.")
@click.argument("words", nargs=-1, metavar="[N] [NAME]", shell_complete=shared.tab_words)
@click.option("--run", metavar="RUN", shell_complete=shared.tab_runs, help=shared.RUN)
@click.option("--redo", is_flag=True, help="Revert the last undo.")
@click.option("--dry-run", is_flag=True, help="Print what would change, and change nothing.")
@click.option("-y", "--yes", is_flag=True, help="Don't ask for confirmation.")
@click.pass_context
def undo(ctx: click.Context, words: tuple[str, ...], run: str | None, redo: bool, dry_run: bool, yes: bool) -> int:
    """Restore the files from before iteration N; without N, from before the newest one that is not undone yet.

    rooda saves the current files first, so that an undo can be undone: rooda undo --redo. Files that git ignores
    are not changed; nor are git's index, branch, HEAD and stash.
    """
    number, loop = shared.meant(words)
    if redo and number is not None:
        raise UsageProblem("--redo takes no number: it reverts the last undo.", "For example: rooda undo --redo")
    workspace = where(ctx).workspace
    repo = shared.repo_of(workspace)
    tips = shared.runs(repo, loop, run)
    shared.require(where(ctx), tips, loop, run)
    _refuse_beside_a_loop(workspace)
    found = shared.run_with(repo, tips, number)
    held = _held(workspace, found.tip)
    try:
        return _undo(repo, found, number, redo, _Options(dry_run, yes))
    finally:
        held.unlock()


class _Options(NamedTuple):
    dry_run: bool
    yes: bool


def _undo(repo: Repo, run: shared.Run, number: int | None, redo: bool, options: _Options) -> int:
    tip = run.tip
    private = PrivateFiles(repo, kept=True)
    taker = SnapshotTaker(repo, (tip.run, tip.kind, tip.loop, tip.family), private, tip)
    seen = taker.read()
    target = _redone(run) if redo else _target(run, number, seen.tree)
    _require_branch(repo, target.snapshot)
    left_out = {*seen.left_out, *target.snapshot.private}
    plan = restore.plan(repo, seen.tree, target.snapshot.tree, _is_kept(repo.workspace, tip), left_out)
    for line in _shown(plan):
        click.echo(line)
    for what, trouble in (
        ("the current work tree can be saved", seen.trouble),
        ("the earlier work tree is in its snapshot", target.snapshot.trouble),
    ):
        if trouble:
            click.echo(f"WARNING: not all of {what}: {trouble}", err=True)
    if text := command.warning(repo.workspace):
        click.echo(f"WARNING: {text}", err=True)
    for note in restore.notes(repo, plan):
        click.echo(f"NOTE: {note}", err=True)
    _say_head(repo, target.snapshot)
    if not plan.changes:
        click.echo(f"Nothing to do: the files are already as they were {target.what}.")
        return _code(plan)
    if options.dry_run:
        click.echo("Nothing was done: --dry-run.")
        return OK
    _confirm(target, options)
    saved, _ = taker.save(seen, target.undo_position, UNDO)
    restore.apply(repo, taker.index, plan)
    click.echo(f"Restored the work tree as it was {target.what}. The replaced state is saved as {saved.ref}")
    click.echo(f"Revert this with: rooda undo --redo{_naming(repo, tip)}")
    return _code(plan)


def _naming(repo: Repo, tip: Snapshot) -> str:
    """Return the shortest arguments that select this run: none, the name of its loop, or `--run`."""
    for words, loop in (("", None), (f" {tip.loop}", tip.loop)):
        if shared.run_with(repo, shared.runs(repo, loop), None).tip.run == tip.run:
            return words
    return f" --run {tip.run}"


def _target(run: shared.Run, number: int | None, present: str) -> Target:
    back = (
        next_undone(run.turns, present, undo_position(run.snapshots)) if number is None else shared.turn_of(run, number)
    )
    turn = back or run.turns[0]
    first, last = turn.before.iteration, run.turns[-1].before.iteration
    which = f"iteration {first}" if first == last else f"iterations {first} to {last}"
    return Target(turn.before, first, f"before {which} of {run.tip.loop}")


def _redone(run: shared.Run) -> Target:
    found = last_undo(run.snapshots)
    if found is None:
        raise UsageProblem("There is no undo to revert: the loop has run since, or nothing was undone.")
    others = [each for each in run.snapshots if each is not found]
    return Target(found, undo_position(others), f"at {clock.rfc3339(found.seconds)}, before the last undo")


def _is_kept(workspace: str, tip: Snapshot) -> Callable[[str], bool]:
    """Return a function that is true for paths with other loops' state, which an undo of this run must not change."""
    own = registry.kind(tip.kind).work_paths(workspace, tip.loop)
    return lambda path: belongs_to_another_loop(path, tip, own)


def _shown(plan: Plan) -> list[str]:
    lines = [f"{_WORDS[row.status]:>10}  {escape_line(row.path)}" for row in plan.changes[:SHOWN]]
    more = len(plan.changes) - SHOWN
    return lines + ([f"{'':>10}  … and {more} more"] if more > 0 else []) + restore.left_alone(plan)


def _code(plan: Plan) -> int:
    return FAILED if plan.ignored or plan.nested or plan.private else OK


def _say_head(repo: Repo, target: Snapshot) -> None:
    """Print how HEAD has moved since the snapshot, because an undo doesn't change commits."""
    head, branch = read_head(repo)
    if not target.head or head == target.head:
        return
    now, then = f"{branch or 'HEAD'} is at {head[:12]}", f"at {target.head[:12]}"
    if registry.KINDS[target.kind].on_branch:
        what = f"Commits stay; rooda resume {target.loop} removes them from {branch}, back to {target.head[:12]}."
    elif branch == target.branch:
        what = f"Commits stay: {now}, and was {then} then. To go back there too: git reset --mixed {target.head[:12]}"
    else:
        what = f"Commits and branch stay: {now}, and {target.branch or 'HEAD'} was checked out {then} then."
    click.echo(what, err=True)


def _require_branch(repo: Repo, target: Snapshot) -> None:
    """Raise Undecided if the loop keeps its state on a branch that is not checked out."""
    branch = read_head(repo).branch
    if registry.KINDS[target.kind].on_branch and target.branch != branch:
        what = f"{target.loop} works on {target.branch}, but {branch or 'no branch'} is checked out"
        raise Undecided(f"{what}; nothing was changed.", f"Check it out first: git checkout {target.branch}")


def _confirm(target: Target, options: _Options) -> None:
    if options.yes:
        return
    if not questions.at_terminal():
        raise Undecided(
            "Nothing was changed: rooda can't ask for confirmation without a terminal.", "Confirm with: --yes"
        )
    answer = questions.typed_answer(f"Restore the work tree as it was {target.what}? [y/N] ")
    if (answer or "").strip().lower() not in ("y", "yes"):
        raise Undecided("Nothing was changed.")


def _refuse_beside_a_loop(workspace: str) -> None:
    running = [loop.name for loop in registry.known(workspace) if lock.is_held(loop.lock)]
    if running:
        what = f"A loop is running here ({', '.join(running)}); nothing was changed."
        raise Undecided(what, f"End it first: rooda stop {running[0]}")


def _held(workspace: str, tip: Snapshot) -> Lock:
    """Take the loop's lock, so that the loop can't start during the undo, and end processes left by an earlier run."""
    path = registry.kind(tip.kind).lock_of(workspace, tip.loop)
    held = launch.take_lock(path, f"the loop '{tip.loop}'", tip.loop, Screen(ScreenOptions()))
    if held is None:
        raise Undecided("Nothing was changed: without a lock, a loop could start at the same time.")
    return held


@click.command(short_help="Remove old runs and snapshots, and merged worktrees.")
@click.argument("name", required=False, shell_complete=tab_loops)
@click.option(
    "--keep",
    type=click.IntRange(min=0),
    default=world.KEEP,
    metavar="K",
    help="Number of runs whose snapshots are kept (default: 20).",
)
@click.option("--dry-run", is_flag=True, help="Print what would be removed, and remove nothing.")
@click.pass_context
def prune(ctx: click.Context, name: str | None, keep: int, dry_run: bool) -> int:
    """Delete the snapshots of all but the last K runs of each procedure and kind of loop, or only of NAME.

    Also deletes the logs, prompts and transcripts of runs older than the last `keep_runs`, but never of a run that
    can be resumed, and removes worktrees of --worktree if no loop runs or can be resumed in them, everything is
    committed, and another branch has the commits. Without NAME, also deletes the home folders that agents had in the
    sandbox in projects that no longer exist.
    """
    loop = name and valid_name(name)
    repo = _repository(where(ctx).workspace)
    if repo is None and loop and not run_folder.all_of(where(ctx).workspace, loop):
        shared.require_known(where(ctx), loop)
    _prune_runs(where(ctx), loop, dry_run)
    if repo is not None:
        _prune_snapshots(ctx, repo, loop, keep, dry_run)
    if not loop:
        _prune_homes(dry_run)
    return OK


def _repository(workspace: str) -> "Repo | None":
    """Return the repository. If there is none, return None if there are runs to prune, else raise UsageProblem."""
    if run_folder.all_of(workspace, None):
        try:
            return find(workspace)
        except GitProblem:
            return None
    return shared.repo_of(workspace)


def _prune_runs(here: Where, loop: str | None, dry_run: bool) -> None:
    """Delete the folders of old sessions. Every start or resume has its own folder and counts towards `keep_runs`."""
    most = int(configuration.load(here.workspace, here.config).table("loop")["keep_runs"])
    known = [*registry.resumable(here.workspace)]
    known += [each for each in registry.known(here.workspace) if lock.is_held(each.lock)]
    open_runs = {log.folder for each in known for log in history.sessions(here.workspace, each.name, each.kind)}
    seen: dict[str, int] = {}
    for folder in reversed(run_folder.all_of(here.workspace, loop)):
        kind = run_folder.origin_of(folder).get("loop") or registry.OODA
        group = run_folder.loop_of(os.path.basename(folder)) if kind == registry.OODA else kind
        seen[group] = seen.get(group, 0) + 1
        if seen[group] > most and folder not in open_runs:
            if not dry_run:
                files.remove_tree(folder)
            click.echo(escape_line(f"{'Would delete' if dry_run else 'Deleted'} the run {os.path.basename(folder)}"))


def _prune_homes(dry_run: bool) -> None:
    """Delete what rooda keeps for the sandboxes of projects that no longer exist."""
    for path, project in [*private_homes.of_gone_projects()]:
        if not dry_run:
            private_homes.remove(path)
        if os.path.basename(os.path.dirname(path)) == "homes":
            what = f"agents' home folders for {project}, which no longer exists"
            click.echo(escape_line(f"{'Would delete' if dry_run else 'Deleted'} the {what}"))


def _prune_snapshots(ctx: click.Context, repo: Repo, loop: str | None, keep: int, dry_run: bool) -> None:
    own = [
        each
        for each in worktrees.list_worktrees(repo)
        if loop in (None, os.path.basename(each.root).rpartition("-")[0])
    ]
    if loop and not own and not shared.runs(repo, loop):
        shared.require_known(where(ctx), loop)
    old = world.prune(repo, keep, lambda tip: tip.is_of(loop), dry_run)
    _report(old, keep, dry_run)
    for each in own:
        click.echo(escape_line(_worktree(repo, each, dry_run)))


def _report(old: list[Snapshot], keep: int, dry_run: bool) -> None:
    for tip in old:
        done = "Would delete" if dry_run else "Deleted"
        click.echo(escape_line(f"{done} {counted(tip.number, 'snapshot')} of {tip.loop}, run {tip.run}"))
    if not old:
        last = "last run" if keep == 1 else f"last {keep} runs"
        click.echo(f"No snapshots to delete: those of the {last} of each procedure and kind of loop are kept.")
    elif not dry_run:
        click.echo("To free their disk space: git gc")


def _worktree(repo: "Repo", own: worktrees.Worktree, dry_run: bool) -> str:
    reason = _busy(own) or worktrees.reason_to_keep(repo, own)
    if not reason and not dry_run:
        reason = worktrees.remove(repo, own)
    if reason:
        return f"Kept the worktree {own.root}: {reason}"
    done = "Would remove" if dry_run else "Removed"
    return f"{done} the worktree {own.root} and its branch {own.branch}: all of it is merged"


def _busy(own: worktrees.Worktree) -> str:
    """Return why the worktree is in use; "" if no loop runs or can be resumed in it."""
    if any(lock.is_held(loop.lock) for loop in registry.known(own.workspace)):
        return "a loop is running in it"
    waiting = [loop.name for loop in registry.resumable(own.workspace)]
    return f"a run can be resumed in it (rooda -C {own.workspace} resume {waiting[0]})" if waiting else ""
