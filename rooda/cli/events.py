"""`rooda events [NAME]`: what happened in runs, as the lines of events.jsonl; and the schema that these follow."""

import json
from typing import Any

import click

from rooda.base import files
from rooda.base.dirs import shipped
from rooda.base.json import Json
from rooda.cli.common import tab_loops
from rooda.cli.logs import events as told
from rooda.cli.logs import logs
from rooda.cli.usage import start_of
from rooda.errors import OK, UsageProblem
from rooda.run import folder as run_folder
from rooda.settings.where import where


@click.command(short_help="The events of the latest run as JSON lines; -f goes on with what comes.")
@click.argument("name", required=False, shell_complete=tab_loops)
@click.option("-f", "--follow", "following", is_flag=True, help="Go on with what comes, until the run ends.")
@click.option("--iteration", type=click.IntRange(min=1), metavar="N", help="Only this iteration.")
@click.option("--since", metavar="WHEN", help="Of all runs, from then on: 2026-03-01, 2026-03-01T12:00 (UTC), 7d, 12h.")
@click.option("--schema", is_flag=True, help="The JSON schema of an event.")
@click.pass_context
def events(ctx: click.Context, /, name: str | None, since: str | None, schema: bool, **how: Any) -> int:
    """The latest run's events, or those of NAME's latest; docs/events.md describes each of them."""
    if schema:
        click.echo(files.text(shipped("config", "events.schema.json")), nl=False)
        return OK
    if since is None:
        code: int = ctx.invoke(logs, name=name, as_json=True, agent=False, verbose=False, **how)
        return code
    if how["following"]:
        raise UsageProblem("--follow and --since are mutually exclusive.")
    _from(start_of(since), where(ctx).workspace, name, how["iteration"])
    return OK


def _from(moment: str, workspace: str, name: str | None, iteration: int | None) -> None:
    """Run by run, oldest first."""
    for folder in run_folder.all_of(workspace, name):
        for record in _told(folder):
            if record["ts"][:19] >= moment[:19] and iteration in (None, record.get("display")):
                click.echo(json.dumps(record, ensure_ascii=False))


def _told(folder: str) -> list[Json]:
    try:
        return told(folder)
    except OSError:
        return []
