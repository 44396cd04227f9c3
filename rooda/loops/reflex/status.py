"""`rooda reflex status`: how far the active loop is."""

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from rooda.base import files
from rooda.base.json import Json
from rooda.base.text import escape_line
from rooda.errors import FAILED as EXIT_FAILED
from rooda.errors import OK, UNFINISHED, Cause
from rooda.loops.options import items, place_of_tab
from rooda.loops.reflex import files as reflex_files
from rooda.loops.reflex import scoring
from rooda.loops.reflex.events import RunEnded
from rooda.loops.reflex.files import Place, meant
from rooda.loops.reflex.history import JUDGED
from rooda.loops.reflex.rules import is_number
from rooda.loops.reflex.scoring import FAILED, hundredths, written
from rooda.loops.reflex.state import RUNNING, State
from rooda.processes import lock
from rooda.run.spending import cause_facts
from rooda.settings.where import where

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


EXIT_CODES = {scoring.COMPLETED: OK, scoring.STOPPED: UNFINISHED, scoring.FAILED: EXIT_FAILED}
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
        click.echo("\n".join(map(escape_line, lines(found))))
        data = reflex_files.artifact_if_readable(place) if artifact else None
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


# `rooda reflex list`: every loop of this workspace.


@click.command("list", short_help="Every loop with its status.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
@click.pass_context
def list_(ctx: click.Context, as_json: bool) -> int:
    """Every loop of this workspace: running, stopped, completed or failed."""
    workspace = where(ctx).workspace
    rows = [_row(Place(workspace, alias)) for alias in reflex_files.aliases(workspace)]
    if as_json:
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    elif not rows:
        click.echo("No loops here. Start one with: rooda reflex new TASK")
    width = max((len(row["task_alias"]) for row in rows), default=0)
    for row in () if as_json else rows:
        click.echo(escape_line(_line(row, width)))
    return OK


def _row(place: Place) -> Json:
    state = reflex_files.look(place).state
    if state is None:
        return {"task_alias": place.alias, "status": FAILED, "damaged": True}
    keys = ("task_alias", "status", "iteration", "max_iterations", "phase", "last_score", "updated_at")
    return {**{key: getattr(state, key) for key in keys}, "stop_reason": state.stop["reason"]}


def _line(row: Json, width: int) -> str:
    begin = f"{row['task_alias']:<{width}}  {row['status']:<9}"
    if "iteration" not in row:
        return f"{begin}  its files can't be understood"
    where = f"{row['iteration']}/{row['max_iterations']}  {row['phase']}  {hundredths(row['last_score'])}"
    return f"{begin}  {where}  {row['updated_at']}  {' '.join(row['stop_reason'].split())}".rstrip()


# What a loop came to, for the screen, the log and `stop`.


class Left(NamedTuple):
    """Why a loop is not over, and can be resumed if its files are there."""

    reason: str
    note: str
    exit_code: int
    cause: Cause | None = None


def ended(place: Place, state: State, left: Left | None = None) -> RunEnded:
    """The end of a session. A score is final only if it is the score of the artifact that lies there."""
    found, data = state.evaluation, reflex_files.artifact_if_readable(place)
    current = bool(found) and data is not None and found.get("artifact_hash") == files.sha256(data)
    score = scoring.hundredths(found["score"]) if found else None
    resumable = left if state.status == RUNNING else None
    return RunEnded(
        status=state.status,
        number=state.iteration,
        max_iterations=state.max_iterations,
        level=state.phase,
        final_score=score if current else None,
        last_evaluated_score=None if current else score,
        stop_reason=state.stop["reason"],
        reason=resumable.reason if resumable else state.stop["reason"],
        note=resumable.note if resumable else _why(state),
        error=state.error,
        elsewhere=state.elsewhere,
        artifact=place.shown_artifact,
        **_distance(state),
        **cause_facts(resumable and resumable.cause),
        exit_code=left.exit_code if left else EXIT_CODES[state.status],
    )


def _distance(state: State) -> Json:
    """How far from its threshold a loop ended at its limit."""
    found = state.evaluation
    if state.stop["reason"] != "iteration_limit" or not found or found["passed"]:
        return {}
    exactly = scoring.exact_score(state.rules, found)
    return {"distance": scoring.distance(found, state.threshold, exactly)._asdict()}


def _why(state: State) -> str:
    """The rule behind the end, and the facts that it was applied to."""
    found, reason = state.evaluation, state.stop["reason"]
    if state.status == RUNNING:
        return ""
    if not found or reason not in JUDGED:
        ended = "ended from outside" if state.elsewhere else f"stopped by a person: {reason}"
        return state.error or ended
    threshold = f"threshold {scoring.written(state.threshold)} of phase {state.phase}"
    score = f"score {scoring.hundredths(found['score'])}, {threshold}"
    left = ", ".join(entry["id"] for entry in (*found["failed"], *found["warnings"]))
    return "; ".join(part for part in (score, f"not met: {left}" if left else "", RULES.get(reason, "")) if part)


RULES = {
    "no_major_issues": "no rule of severity fail has failed in phase B",
    "stagnation": "twice a gain below 0.02 without a failed fail rule",
    "iteration_limit": "the last iteration did not pass",
}
