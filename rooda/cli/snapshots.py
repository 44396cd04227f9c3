"""`rooda snapshots [NAME]` lists snapshots of the work tree; `rooda diff [N] [NAME]` shows an iteration's changes."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from rooda.base import clock
from rooda.base.json import Json
from rooda.base.text import escape_line
from rooda.cli import common
from rooda.errors import OK, UsageProblem
from rooda.git import snapshots as world
from rooda.git import work_tree
from rooda.git.private import PrivateFiles
from rooda.git.repository import GitProblem, Repo, find
from rooda.git.retention import UNDO, Snapshot, Turn, turns
from rooda.loops import registry
from rooda.loops.options import items, place_of_tab
from rooda.settings.where import Where, valid_name, where
from rooda.views.live import is_terminal
from rooda.views.say import say_bytes, say_coloured

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


HOW = 'Take them with safety = "snapshot" in [loop] of rooda.toml, or with the option --safety snapshot'
RUN = "A run from `rooda snapshots`, instead of the newest."


class Run(NamedTuple):
    """The snapshots of one run."""

    snapshots: list[Snapshot]  # newest first
    turns: list[Turn]

    @property
    def tip(self) -> Snapshot:
        return self.snapshots[0]


@click.command(short_help="List the snapshots of the work tree, iteration by iteration.")
@click.argument("name", required=False, shell_complete=common.tab_loops)
@click.option("-n", "--limit", type=click.IntRange(min=0), default=20, metavar="N", help="Iterations per run; 0 = all.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def snapshots(ctx: click.Context, name: str | None, limit: int, as_json: bool) -> int:
    """List the snapshots of the work tree, newest run first, with what each iteration changed."""
    repo = repo_of(where(ctx).workspace)
    tips = runs(repo, name and valid_name(name))
    if name and not tips:
        require_known(where(ctx), name)
    if as_json:
        import json

        found = [_facts(each) for tip in tips for each in world.history(repo, tip, 2 * limit)]
        click.echo(json.dumps(found, indent=2))
        return OK
    for tip in tips:
        for line in _lines(repo, tip, limit):
            click.echo(escape_line(line))
    if not tips:
        click.echo(f"There are no snapshots of '{name}'. {HOW}" if name else f"There are no snapshots. {HOW}")
    return OK


def repo_of(workspace: str) -> Repo:
    """Return the repository that contains the workspace. Raises UsageProblem if there is none: snapshots need one."""
    try:
        return find(workspace)
    except GitProblem as problem:
        raise UsageProblem(f"There are no snapshots: {problem.what}.", problem.hint) from None


def runs(repo: Repo, loop: str | None, run: str | None = None) -> list[Snapshot]:
    """Return the newest snapshot of each run, newest run first."""
    return [tip for tip in world.tips(repo) if tip.is_of(loop) and run in (None, tip.run)]


def tab_runs(ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """Complete the IDs of runs that have snapshots, newest first; if the line names a loop, only that loop's runs."""
    loops = [
        word for word in ctx.args if not word.isdecimal()
    ]  # click puts all words into ctx.args if an option has no value yet
    found = runs(repo_of(place_of_tab(ctx).workspace), None)
    return items(((tip.run, tip.loop) for tip in found if not loops or tip.loop in loops), incomplete)


def tab_words(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """Return the names of loops that complete the word; none if a name has been typed already."""
    typed = ctx.params.get("words") or ()
    return common.tab_loops(ctx, parameter, incomplete) if all(map(str.isdecimal, typed)) else []


def meant(words: Sequence[str]) -> tuple[int | None, str | None]:
    """Parse `[N] [NAME]` in either order."""
    rest = [*words]
    number = next((word for word in rest if word.isdecimal()), None)
    if number is not None:
        rest.remove(number)
    if len(rest) > 1:
        raise UsageProblem(f"At most one iteration and one name are allowed, got: {' '.join(words)}.")
    return None if number is None else int(number), valid_name(rest[0]) if rest else None


def require(here: Where, tips: Sequence[Snapshot], loop: str | None, run: str | None) -> None:
    if tips:
        return
    if loop:
        require_known(here, loop)
    if run:
        raise UsageProblem(f"There are no snapshots of the run '{run}'.", "See them with: rooda snapshots")
    raise UsageProblem(f"There are no snapshots of '{loop}'." if loop else "There are no snapshots.", HOW)


def require_known(here: Where, name: str) -> None:
    """Raise UsageProblem if no loop, procedure or kind of loop has this name."""
    if name not in registry.KINDS and (unknown := common.hint(here, name)):
        raise UsageProblem(f"There are no snapshots of '{name}'.", unknown)


def run_with(repo: Repo, tips: Sequence[Snapshot], number: int | None) -> Run:
    """Return the newest run that has iteration `number`, or any iteration if `number` is None."""
    last = 0
    for tip in tips:
        all_ = world.history(repo, tip)
        found = turns(all_)
        if found and (number is None or any(turn.before.iteration == number for turn in found)):
            return _since_its_beginning(repo, tips, Run(all_, found))
        last = max(last, found[-1].before.iteration) if found else last
    if number is None:
        raise UsageProblem(
            f"No snapshot was taken at the start of an iteration of {tips[0].loop!r}, so nothing can be compared."
        )
    what = f"There is no snapshot of iteration {number}; the last one of {tips[0].loop!r} here is {last}."
    raise UsageProblem(what, f"See them with: rooda snapshots {tips[0].loop}")


def _since_its_beginning(repo: Repo, tips: Sequence[Snapshot], run: Run) -> Run:
    """Correct the start of the run's first iteration, which may have begun in an earlier session that was cut off."""
    first, oldest = run.turns[0], run.snapshots[-1]
    same = [tip for tip in tips if (tip.kind, tip.loop) == (oldest.kind, oldest.loop) and tip.run < oldest.run]
    for tip in sorted(same, key=lambda tip: tip.run, reverse=True):
        all_ = world.history(repo, tip) if oldest.resumed else []
        found = turns(all_)
        if not found or found[-1].before.iteration != first.before.iteration:
            break
        first, oldest = first._replace(before=found[-1].before), all_[-1]
        if len(found) > 1:
            break
    return run._replace(turns=[first, *run.turns[1:]])


def turn_of(run: Run, number: int) -> Turn:
    return next(turn for turn in run.turns if turn.before.iteration == number)


def _facts(snapshot: Snapshot) -> Json:
    facts = snapshot._asdict()
    facts["loop_name"], facts["loop"] = facts["loop"], facts.pop("kind")
    facts |= {"procedure": snapshot.loop} if snapshot.kind == registry.OODA else {}
    facts["at"] = clock.rfc3339(facts.pop("seconds"))
    del facts["place"], facts["family"]
    return {"name": snapshot.name, "ref": snapshot.ref, **facts}


def _lines(repo: Repo, tip: Snapshot, limit: int) -> list[str]:
    found = world.history(repo, tip)
    shown = turns(found)[-limit:]
    did = _changes(repo, shown)
    rows = [(turn.before.number, str(turn.before.iteration), turn.before.seconds, _did(turn, did)) for turn in shown]
    undos = [each for each in found if each.moment == UNDO]
    rows += [(each.number, each.name, each.seconds, "the work tree before an undo") for each in undos]
    lines = [f"{tip.loop if tip.loop == tip.family else f'{tip.family} {tip.loop}'}, run {tip.run}"]
    for _, name, seconds, text in sorted(rows):
        lines.append(f"  {name:>7}  {clock.rfc3339(seconds)}  {text}")
    return lines


def _changes(repo: Repo, shown: Sequence[Turn]) -> dict[str, str]:
    """Return git's summary of each turn's changes, keyed by the two trees' IDs, "BEFORE AFTER". Runs git only once."""
    pairs = [f"{turn.before.tree} {turn.after.tree}\n" for turn in shown if turn.after]
    text = repo.text("diff-tree", "--stdin", "-r", "--shortstat", stdin="".join(pairs).encode()) if pairs else ""
    found: dict[str, str] = {}
    pair = ""
    for line in text.splitlines():
        if line.startswith(" "):
            found[pair] = line.strip()
        elif line:
            pair = line
    return found


def _did(turn: Turn, did: dict[str, str]) -> str:
    if turn.after is None:
        return "is running or was cut off: only its start is saved"
    return did.get(f"{turn.before.tree} {turn.after.tree}", "no changes")


@click.command(short_help="Show what an iteration changed in the work tree.")
@click.argument("words", nargs=-1, metavar="[N] [NAME]", shell_complete=tab_words)
@click.option("--run", metavar="RUN", shell_complete=tab_runs, help=RUN)
@click.option("--stat", is_flag=True, help="Only the files and the number of changed lines.")
@click.option("--name-only", is_flag=True, help="Only the names of the files.")
@click.pass_context
def diff(ctx: click.Context, words: tuple[str, ...], run: str | None, stat: bool, name_only: bool) -> int:
    """Show the changes of iteration N, or of the last one; its changes so far if it is running or was cut off."""
    number, loop = meant(words)
    repo = repo_of(where(ctx).workspace)
    tips = runs(repo, loop, run)
    require(where(ctx), tips, loop, run)
    found = run_with(repo, tips, number)
    turn = found.turns[-1] if number is None else turn_of(found, number)
    how = ["--stat"] if stat else ["--name-only"] if name_only else []
    end, what = _end(repo, found, turn)
    click.echo(f"Iteration {turn.before.iteration} of {turn.before.loop}, run {turn.before.run}{what}", err=True)
    _show_diff(repo, [*how, turn.before.tree, end])
    return OK


def _show_diff(repo: Repo, words: Sequence[str]) -> None:
    """Print a diff. On a terminal, color it unless it contains escape sequences, which could hide lines."""
    command = ["diff", "--no-ext-diff", "--no-textconv"]
    plain = repo.run(*command, "--color=never", *words).out
    if is_terminal(sys.stdout) and b"\x1b" not in plain:
        say_coloured(repo.run(*command, "--color=always", *words).out)
    else:
        say_bytes(plain)


def _end(repo: Repo, run: Run, turn: Turn) -> tuple[str, str]:
    """Return the tree at the end of an iteration, and "".

    If the iteration has no recorded end, return the tree of the next snapshot, of the next run's start or of the work
    tree, and a remark that says so.
    """
    if turn.after:
        return turn.after.tree, ""
    later = [each for each in run.snapshots if each.number > turn.before.number]
    if later:
        return later[-1].tree, " (it was cut off; compared with the next snapshot)"
    newer = [tip for tip in runs(repo, run.tip.loop) if tip.seconds >= run.tip.seconds and tip.run > run.tip.run]
    if newer:
        return world.history(repo, newer[-1])[-1].tree, " (it was cut off; compared with the start of the next run)"
    private = PrivateFiles(repo, kept=True, before=run.tip.private)
    now = work_tree.read_with_copy(repo, world.index_of(repo, run.tip.family), private).tree
    return now, " (it is running or was cut off; compared with the current work tree)"
