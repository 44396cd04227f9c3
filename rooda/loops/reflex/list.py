"""`rooda reflex list`: every loop of this workspace."""

import json

import click

from rooda.base.json import Json
from rooda.base.text import visible
from rooda.errors import OK
from rooda.loops.reflex import files
from rooda.loops.reflex.files import Place
from rooda.loops.reflex.scoring import FAILED, hundredths
from rooda.settings.where import where


@click.command("list", short_help="Every loop with its status.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
@click.pass_context
def list_(ctx: click.Context, as_json: bool) -> int:
    """Every loop of this workspace: running, stopped, completed or failed."""
    workspace = where(ctx).workspace
    rows = [_row(Place(workspace, alias)) for alias in files.aliases(workspace)]
    if as_json:
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    elif not rows:
        click.echo("No loops here. Start one with: rooda reflex new TASK")
    width = max((len(row["task_alias"]) for row in rows), default=0)
    for row in () if as_json else rows:
        click.echo(visible(_line(row, width)))
    return OK


def _row(place: Place) -> Json:
    state = files.look(place).state
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
