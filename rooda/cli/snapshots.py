"""`rooda snapshots [NAME]`: what of the work tree is saved; and which iteration a person means, for diff and undo."""

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
from rooda.git.repository import GitProblem, Repo, find
from rooda.git.retention import UNDO, Snapshot, Turn, turns
from rooda.loops import registry
from rooda.loops.options import items, place_of_tab
from rooda.settings.where import Where, a_name, where
from rooda.views.live import is_terminal

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


HOW = 'Take them with safety = "snapshot" in [loop] of rooda.toml, or with the option --safety snapshot'
RUN = "The run, as `rooda snapshots` names it, not the newest."


class Run(NamedTuple):
    """The snapshots of one run."""

    snapshots: list[Snapshot]  # newest first
    turns: list[Turn]

    @property
    def tip(self) -> Snapshot:
        return self.snapshots[0]


@click.command(short_help="The snapshots of the work tree, iteration by iteration.")
@click.argument("name", required=False, shell_complete=common.tab_loops)
@click.option("-n", "--limit", type=click.IntRange(min=0), default=20, metavar="N", help="N iterations a run; 0 = all.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
@click.pass_context
def snapshots(ctx: click.Context, name: str | None, limit: int, as_json: bool) -> int:
    """What is saved of the work tree here, newest run first: what each iteration changed."""
    repo = repo_of(where(ctx).workspace)
    tips = runs(repo, name and a_name(name))
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
        click.echo(f"No snapshot of '{name}' is here. {HOW}" if name else f"No snapshot is here. {HOW}")
    return OK


def repo_of(workspace: str) -> Repo:
    """The work tree; UsageProblem when there is none, since without one there are no snapshots."""
    try:
        return find(workspace)
    except GitProblem as problem:
        raise UsageProblem(f"There are no snapshots: {problem.what}.", problem.hint) from None


def runs(repo: Repo, loop: str | None, run: str | None = None) -> list[Snapshot]:
    """The newest snapshot of each run, newest run first."""
    return [tip for tip in world.tips(repo) if tip.is_of(loop) and run in (None, tip.run)]


def tab_runs(ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """Offer the runs that have snapshots, newest first: those of the loop that was typed, if one was."""
    loops = [word for word in ctx.args if not word.isdecimal()]  # an option without its value leaves all words there
    found = runs(repo_of(place_of_tab(ctx).workspace), None)
    return items(((tip.run, tip.loop) for tip in found if not loops or tip.loop in loops), incomplete)


def tab_words(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """Offer names until there is one."""
    typed = ctx.params.get("words") or ()
    return common.tab_loops(ctx, parameter, incomplete) if all(map(str.isdecimal, typed)) else []


def meant(words: Sequence[str]) -> tuple[int | None, str | None]:
    """`[N] [NAME]` as typed, in either order."""
    rest = [*words]
    number = next((word for word in rest if word.isdecimal()), None)
    if number is not None:
        rest.remove(number)
    if len(rest) > 1:
        raise UsageProblem(f"One iteration and one name at most, got: {' '.join(words)}.")
    return None if number is None else int(number), a_name(rest[0]) if rest else None


def require(here: Where, tips: Sequence[Snapshot], loop: str | None, run: str | None) -> None:
    if tips:
        return
    if loop:
        require_known(here, loop)
    if run:
        raise UsageProblem(f"No snapshot of the run '{run}' is here.", "See them with: rooda snapshots")
    raise UsageProblem(f"No snapshot of '{loop}' is here." if loop else "No snapshot is here.", HOW)


def require_known(here: Where, name: str) -> None:
    """UsageProblem for a name that neither a loop nor a kind of loop has: then settings are no matter."""
    if name not in registry.KINDS and (unknown := common.hint(here, name)):
        raise UsageProblem(f"No snapshot of '{name}' is here.", unknown)


def run_with(repo: Repo, tips: Sequence[Snapshot], number: int | None) -> Run:
    """The newest run that has this iteration; the newest that has any, if none is named."""
    last = 0
    for tip in tips:
        all_ = world.history(repo, tip)
        found = turns(all_)
        if found and (number is None or any(turn.before.iteration == number for turn in found)):
            return _since_its_beginning(repo, tips, Run(all_, found))
        last = max(last, found[-1].before.iteration) if found else last
    if number is None:
        raise UsageProblem(f"Of {tips[0].loop!r} there is nothing that an iteration began with; it can't be compared.")
    what = f"There is no snapshot of iteration {number}; the last one of {tips[0].loop!r} here is {last}."
    raise UsageProblem(what, f"See them with: rooda snapshots {tips[0].loop}")


def _since_its_beginning(repo: Repo, tips: Sequence[Snapshot], run: Run) -> Run:
    """An iteration that was cut off in an earlier run, and that this one went on with, began when it began there."""
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
    """`BEFORE AFTER` trees to git's words about how they differ, all asked at once."""
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
        return "was cut off, or goes on: only its beginning is saved"
    return did.get(f"{turn.before.tree} {turn.after.tree}", "nothing changed")


# `rooda diff [N] [NAME]`: what iteration N changed in the work tree.


@click.command(short_help="What an iteration changed in the work tree.")
@click.argument("words", nargs=-1, metavar="[N] [NAME]", shell_complete=tab_words)
@click.option("--run", metavar="RUN", shell_complete=tab_runs, help=RUN)
@click.option("--stat", is_flag=True, help="Only which files, and how much.")
@click.option("--name-only", is_flag=True, help="Only the files' names.")
@click.pass_context
def diff(ctx: click.Context, words: tuple[str, ...], run: str | None, stat: bool, name_only: bool) -> int:
    """What iteration N changed; without N the last one. Of one that goes on, or was cut off: what it did so far."""
    number, loop = meant(words)
    repo = repo_of(where(ctx).workspace)
    tips = runs(repo, loop, run)
    require(where(ctx), tips, loop, run)
    found = run_with(repo, tips, number)
    turn = found.turns[-1] if number is None else turn_of(found, number)
    how = ["--stat"] if stat else ["--name-only"] if name_only else []
    colour = "always" if is_terminal(sys.stdout) else "never"
    end, what = _end(repo, found, turn)
    click.echo(f"Iteration {turn.before.iteration} of {turn.before.loop}, run {turn.before.run}{what}", err=True)
    done = repo.ask("diff", f"--color={colour}", "--no-ext-diff", *how, turn.before.tree, end)
    click.echo(done.out, nl=False)
    return OK


def _end(repo: Repo, run: Run, turn: Turn) -> tuple[str, str]:
    """The tree that it is compared with, and a word about it: what it left, else what the next thing found."""
    if turn.after:
        return turn.after.tree, ""
    later = [each for each in run.snapshots if each.number > turn.before.number]
    if later:
        return later[-1].tree, " (it was cut off; compared with the next snapshot)"
    newer = [tip for tip in runs(repo, run.tip.loop) if tip.seconds >= run.tip.seconds and tip.run > run.tip.run]
    if newer:
        return world.history(repo, newer[-1])[-1].tree, " (it was cut off; compared with the next run's beginning)"
    now = work_tree.read_with_copy(repo, world.index_of(repo, run.tip.family)).tree
    return now, " (it goes on, or was cut off; compared with the work tree as it is now)"
