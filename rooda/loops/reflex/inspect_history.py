"""`rooda reflex history [ALIAS]`: every event of a loop."""

import json
from typing import Any

import click

from rooda.base.json import Json
from rooda.base.text import visible
from rooda.errors import OK
from rooda.loops.reflex import files
from rooda.loops.reflex.places import meant, none_active, without_history
from rooda.loops.reflex.rules import is_number
from rooda.loops.reflex.scoring import hundredths
from rooda.loops.reflex.status import tab_aliases
from rooda.settings.where import where


@click.command(short_help="Every event of a loop.")
@click.argument("alias", required=False, shell_complete=tab_aliases)
@click.option("--json", "as_json", is_flag=True, help="The events as they are on disk.")
@click.pass_context
def history(ctx: click.Context, alias: str | None, as_json: bool) -> int:
    """The events of the active loop, or of ALIAS, in order."""
    workspace = where(ctx).workspace
    place = meant(workspace, alias)
    if place is None:
        raise none_active(workspace)
    found = files.look(place)
    if found.no_history:
        raise without_history(place, found)
    for event in found.history:
        click.echo(json.dumps(event, ensure_ascii=False) if as_json else visible(line(event)))
    return OK


def line(event: Json) -> str:
    cells = (event.get(key, "?") for key in ("ts", "iteration", "phase", "step", "event"))
    when, iteration, phase, step, name = map(str, cells)
    status = "" if event.get("status") == "ok" else f"  {event.get('status')}"
    return f"{when}  {iteration:>2}  {phase}  {step:<15}  {name:<18}{status}{_more(event)}".rstrip()


def _ids(entries: list[Any]) -> list[Any]:
    return [entry.get("id") for entry in entries if isinstance(entry, dict)]


def _more(event: Json) -> str:
    payload, name = event.get("payload"), event.get("event")
    if not isinstance(payload, dict):
        return ""
    if name == "evaluation_done" and is_number(payload.get("score")):
        entries = payload.get("failed")
        failed = ", ".join(str(entry) for entry in _ids(entries if isinstance(entries, list) else []))
        return f"  {hundredths(payload['score'])} {'PASS' if payload.get('passed') else 'FAIL'} {failed}"
    if name in ("stopped", "failed"):
        return f"  {payload.get('status')}: {payload.get('detail') or payload.get('reason')}"
    return f"  {payload.get('error')}" if name == "phase_error" else ""
