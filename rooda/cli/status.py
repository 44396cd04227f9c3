"""`rooda status [NAME]`: what runs here, how far it is, what waits for a resume."""

from typing import Any

import click

from rooda.cli import glance, kinds
from rooda.cli.where import a_name, where
from rooda.errors import OK
from rooda.model import Json
from rooda.world import clock

NAMES = ("procedure_name", "task_alias", "alias", "run_id", "name")  # what the kinds of loops call it
PAUSE = 1.0  # seconds between two looks of --watch


@click.command(short_help="What runs here, how far it is, what waits for a resume.")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
@click.option("--watch", is_flag=True, help="Again every second, until Ctrl+C.")
@click.pass_context
def status(ctx: click.Context, name: str | None, as_json: bool, watch: bool) -> int:
    """The state of NAME, or of every loop that runs here or can go on.

    NAME is a procedure, a reflex alias, a flow's run, or `goal`.
    """
    workspace = where(ctx).workspace
    wanted = a_name(name) if name else None
    try:
        while True:
            shown = _json(workspace, wanted) if as_json else _text(workspace, wanted)
            click.echo(f"\x1b[H\x1b[J{shown}" if watch and not as_json else shown)
            if not watch:
                return OK
            clock.sleep(PAUSE)
    except KeyboardInterrupt:
        return OK


def _found(workspace: str, wanted: str | None) -> list[tuple[str, Json]]:
    """Each loop's kind and facts; of one that runs also what it is doing."""
    found = []
    for kind in kinds.KINDS:
        for facts in kinds.tenant(kind).facts(workspace, wanted):
            name = next((str(facts[key]) for key in NAMES if key in facts), "")
            now = glance.at_work(workspace, kind, name, facts.get("pid")) if facts.get("running") else None
            found.append((kind, {**facts, "now": now}))
    return found


def _json(workspace: str, wanted: str | None) -> str:
    import json

    rows: list[Any] = [{"loop": kind, **facts} for kind, facts in _found(workspace, wanted)]
    return json.dumps(rows, indent=2)


def _text(workspace: str, wanted: str | None) -> str:
    rows = []
    for kind, facts in _found(workspace, wanted):
        rows += kinds.tenant(kind).lines(facts)
        rows += [glance.text(facts["now"])] if facts["now"] else []
    if rows:
        return "\n".join(rows)
    return f"No saved state for procedure '{wanted}'." if wanted else "Nothing runs here, and nothing waits."
