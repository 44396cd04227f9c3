"""`rooda logs [NAME]`: what the latest run did."""

import json
import os
from collections.abc import Iterator

import click

from rooda.cli.where import where
from rooda.errors import OK
from rooda.model import Json
from rooda.report.lines import LEVELS, lines
from rooda.world import files, runfolder


@click.command(short_help="What the latest run did, iteration by iteration.")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="The events as they are on disk.")
@click.option("--agent", is_flag=True, help="What the agent said and which tools it used.")
@click.option("--iteration", type=click.IntRange(min=1), metavar="N", help="Only this iteration.")
@click.option("-v", "--verbose", is_flag=True, help="Details too.")
@click.pass_context
def logs(
    ctx: click.Context, name: str | None, as_json: bool, agent: bool, iteration: int | None, verbose: bool
) -> int:
    """The latest run here, or the latest of NAME: its lines with their times, and where its transcripts lie."""
    folder = runfolder.latest(where(ctx).workspace, name)
    if folder is None:
        click.echo(f"No run of '{name}' is noted here." if name else "No run is noted here.", err=True)
        return OK
    records = [record for record in _records(folder) if iteration in (None, record.get("display"))]
    if as_json:
        for record in records:
            click.echo(json.dumps(record, ensure_ascii=False))
        return OK
    _show_agent(records) if agent else _show(records, LEVELS["debug" if verbose else "info"])
    click.echo(f"Prompts, transcripts and gate outputs: {folder}", err=True)
    return OK


def _show(records: list[Json], least: int) -> None:
    for record in records:
        for line in lines(record):
            if LEVELS[line.level] >= least:
                click.echo(f"[{record['ts']}] {line.text}")


def _show_agent(records: list[Json]) -> None:
    """The transcripts in readable form, one after the other."""
    for record in records:
        if record["event"] == "agent.started":
            click.echo(f"--- Iteration {record['display']} ---")
            for text in transcript(record.get("output", "text"), record["transcript"]):
                click.echo(text)


def transcript(output: str, path: str) -> Iterator[str]:
    """One transcript in readable lines: as it is for a raw command, words and tools for a CLI that prints records."""
    from rooda.world.agents.gathered import Gathered
    from rooda.world.agents.reading import LONGEST, is_read, rendered

    try:
        found = files.lines(path, 1 << 62, LONGEST)
        if is_read(output):
            yield from rendered(output, found, Gathered())
        else:
            yield from (line.decode("utf-8", "replace") for line in found)
    except OSError as problem:
        yield f"({path} can't be read: {problem.strerror})"


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
