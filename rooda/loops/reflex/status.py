"""`rooda reflex status`: how far the active loop is."""

import json
from typing import TYPE_CHECKING, Any

import click

from rooda.base import files
from rooda.base.json import Json
from rooda.base.text import visible
from rooda.errors import OK
from rooda.loops.options import items, place_of_tab
from rooda.loops.reflex import files as reflex_files
from rooda.loops.reflex.files import Place
from rooda.loops.reflex.places import meant
from rooda.loops.reflex.rules import is_number
from rooda.loops.reflex.scoring import hundredths, written
from rooda.processes import lock
from rooda.settings.where import where

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

BARS = "▁▂▃▄▅▆▇█"


def tab_aliases(ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    aliases = reflex_files.aliases(place_of_tab(ctx).workspace)
    return items(((alias, "a reflex loop") for alias in aliases), incomplete)


@click.command(short_help="How far the active loop is.")
@click.argument("alias", required=False, shell_complete=tab_aliases)
@click.option("--artifact", is_flag=True, help="The artifact too, in full.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
@click.pass_context
def status(ctx: click.Context, alias: str | None, artifact: bool, as_json: bool) -> int:
    """The progress of the active loop, or of ALIAS. Changes nothing."""
    place = meant(where(ctx).workspace, alias)
    found = facts_of(place) if place else {}
    if as_json:
        click.echo(json.dumps(found or None, indent=2, ensure_ascii=False))
    elif not found or place is None:
        click.echo("There is no active loop here. Start one with: rooda reflex new TASK")
    else:
        click.echo("\n".join(map(visible, lines(found))))
        data = reflex_files.read_artifact(place) if artifact else None
        if data is not None:
            click.echo(files.to_text(data), nl=False)
    return OK


def facts_of(place: Place) -> Json:
    """What the files and the lock say."""
    found = reflex_files.look(place)
    held = lock.is_held(place.lock)
    owner = {"running": held, "pid": lock.owner(place.lock).get("pid") if held else None}
    state = found.state
    if state is None:
        return {"task_alias": place.alias, "status": "damaged", **owner}
    scores = [
        [event["phase"], event["payload"].get("score", 0)]
        for event in found.history
        if event["event"] == "evaluation_done"
    ]
    keys = ("run_id", "task_alias", "status", "iteration", "max_iterations", "phase", "current_step")
    more = ("last_score", "stagnation_count", "stop", "created_at", "updated_at")
    facts = {key: getattr(state, key) for key in (*keys, *more)}
    return {**facts, "threshold": state.threshold, "scores": scores, "artifact": place.shown_artifact, **owner}


def lines(facts: Json) -> list[str]:
    alias, word = facts["task_alias"], facts["status"]
    if word == "damaged":
        return [f"{alias}: its files can't be understood; start a new loop with: rooda reflex new TASK"]
    how = f" (pid {facts['pid']})" if facts["running"] and word == "running" else ""
    shown = word if facts["running"] or word != "running" else facts.get("standing", "running (interrupted)")
    rows = [
        f"{alias}: {shown}{how}",
        f"  iteration {facts['iteration']}/{facts['max_iterations']}, phase {facts['phase']}, {facts['current_step']}",
        f"  last score {hundredths(facts['last_score'])}, threshold {written(facts['threshold'])}"
        f"{sparkline(facts['scores'])}",
        f"  started {facts['created_at']}, updated {facts['updated_at']}",
        f"  artifact {facts['artifact']}",
    ]
    if word != "running":
        rows.append(f"  stop reason {facts['stop']['reason']}")
    elif not facts["running"]:
        rows.append(f"  go on with: rooda reflex resume {alias}")
    return rows


def sparkline(scores: list[list[object]]) -> str:
    """One bar an evaluation, phase by phase."""
    text = ""
    for level in ("A", "B"):
        bars = [BARS[_height(score)] for at, score in scores if at == level]
        text += f", {level} {''.join(bars)}" if bars else ""
    return text


def _height(score: Any) -> int:
    share = min(1.0, max(0.0, score)) if is_number(score) else 0.0
    return min(len(BARS) - 1, int(share * len(BARS)))
