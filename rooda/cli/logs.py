"""`rooda logs [NAME]`: what the latest run did."""

import json
import os

import click

from rooda.cli.where import where
from rooda.errors import OK
from rooda.model import Json
from rooda.report.lines import LEVELS, lines
from rooda.world import runfolder


@click.command(short_help="What the latest run did, iteration by iteration.")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="The events as they are on disk.")
@click.option("-v", "--verbose", is_flag=True, help="Details too.")
@click.pass_context
def logs(ctx: click.Context, name: str | None, as_json: bool, verbose: bool) -> int:
    """The latest run here, or the latest of NAME: its lines with their times, and where its transcripts lie."""
    folder = runfolder.latest(where(ctx).workspace, name)
    if folder is None:
        click.echo(f"No run of '{name}' is noted here." if name else "No run is noted here.", err=True)
        return OK
    least = LEVELS["debug" if verbose else "info"]
    for record in _records(folder):
        if as_json:
            click.echo(json.dumps(record, ensure_ascii=False))
            continue
        for line in lines(record):
            if LEVELS[line.level] >= least:
                click.echo(f"[{record['ts']}] {line.text}")
    if not as_json:
        click.echo(f"Prompts, transcripts and gate outputs: {folder}", err=True)
    return OK


def _records(folder: str) -> list[Json]:
    """The events; a torn last line is passed over."""
    found = []
    with open(os.path.join(folder, "events.jsonl"), "rb") as file:
        for line in file:
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict) and "event" in record:
                found.append(record)
    return found
