"""`rooda why [NAME]`: the rule and the evidence behind everything that a run decided."""

import click

from rooda.cli.logs import events
from rooda.cli.where import where
from rooda.errors import OK
from rooda.report.why import Reason, reasons
from rooda.world import files, runfolder

SHOWN = 200  # characters of a line of evidence


@click.command(short_help="Why a run went on, failed, paused or stopped, with the evidence.")
@click.argument("name", required=False)
@click.option("--iteration", type=click.IntRange(min=1), metavar="N", help="Only this iteration.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
@click.pass_context
def why(ctx: click.Context, name: str | None, iteration: int | None, as_json: bool) -> int:
    """Every decision of the latest run here, or of NAME's latest: the rule, and the line of the file that shows it."""
    folder = runfolder.latest(where(ctx).workspace, name)
    if folder is None:
        if as_json:
            click.echo("[]")
        click.echo(f"No run of '{name}' is noted here." if name else "No run is noted here.", err=True)
        return OK
    found = [reason for reason in reasons(events(folder)) if iteration in (None, reason.iteration)]
    shown = [(reason, *_line(reason)) for reason in found]
    if as_json:
        import json

        rows = [{**reason._asdict(), "line": number, "text": text} for reason, number, text in shown]
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    else:
        click.echo("\n".join(text for row in shown for text in _rows(*row)))
    return OK


def _rows(reason: Reason, number: int, text: str) -> list[str]:
    who = f"Iteration {reason.iteration}" if reason.iteration else "Run"
    rows = [f"[{reason.ts}] {who} {reason.decision}: {reason.rule}"]
    if number:
        rows += [f"    {reason.evidence}:{number}", f"    > {text}"]
    elif reason.evidence:
        rows.append(f"    {reason.evidence} (empty)")
    return rows


def _line(reason: Reason) -> tuple[int, str]:
    """The line that holds the words, else the last one that is not empty; 0 if there is none."""
    wanted, last = reason.words.split("\n")[0][:80].encode(), (0, "")
    try:
        for number, line in enumerate(files.lines(reason.evidence, 1 << 62, 1_048_576), 1):
            if line.strip():
                last = number, line.decode("utf-8", "replace").strip()[:SHOWN]
                if wanted and wanted in line:
                    break
    except OSError:
        return 0, ""
    return last
