"""`rooda why [NAME]`: shows the rule and the evidence behind each decision of a run."""

import os

import click

from rooda.base import clock
from rooda.base.json import Json
from rooda.base.text import escape_line
from rooda.cli.common import keys, say_if_unsigned, say_no_runs, tab_loops
from rooda.cli.logs import is_live, session_with
from rooda.errors import OK
from rooda.loops.evidence import decisions
from rooda.run import folder as run_folder
from rooda.run.past_runs import run_of
from rooda.settings.where import where
from rooda.views.say import folded

_WORDS = {"told": "noted"}  # words for people; --json keeps the key


@click.command(short_help="Show why a run continued, failed, paused or stopped.")
@click.argument("name", required=False, shell_complete=tab_loops)
@click.option("--iteration", type=click.IntRange(min=1), metavar="N", help="Only this iteration.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--elsewhere", is_flag=True, hidden=True, help="A run may be running on another machine.")
@click.pass_context
def why(ctx: click.Context, name: str | None, iteration: int | None, as_json: bool, elsewhere: bool) -> int:
    """Explain each decision of the latest run, or of NAME's latest run: the rule and the line of evidence.

    A run includes all its resumes; if NAME is the ID of one of its sessions, only this session is explained.
    """
    workspace = where(ctx).workspace
    folder = run_folder.latest(workspace, name)
    if folder is None:
        say_no_runs(where(ctx), name)
        if as_json:
            click.echo("[]")
        return OK
    alone = os.path.basename(folder) == name
    if iteration:
        folder, alone = session_with(workspace, folder, iteration, alone), True
    shown = []
    for session in [folder] if alone else _sessions(workspace, folder):
        live = is_live(workspace, session) or (elsewhere and session == folder)
        if not live:
            say_if_unsigned(session)
        found = decisions(workspace, session, keys(), live)
        shown += [each for each in found if iteration in (None, each["iteration"])]
    if as_json:
        import json

        click.echo(json.dumps(shown, indent=2, ensure_ascii=False))
    else:
        click.echo("\n".join(folded(escape_line(text)) for row in shown for text in _rows(row)))
    return OK


def _sessions(workspace: str, folder: str) -> list[str]:
    """Return the folders of all sessions, oldest first, of the run whose newest session is in `folder`."""
    found = run_of(workspace, os.path.basename(folder))
    return [session.folder for session in found[0].sessions] if found else [folder]


def _rows(row: Json) -> list[str]:
    who = f"Iteration {row['iteration']}" if row["iteration"] else "Run"
    return [
        f"[{clock.local(str(row['ts']))}] {who} {_WORDS.get(row['decision'], row['decision'])}: {row['rule']}",
        f"    {row['evidence']}:{row['line']}",
        *([f"    > {row['quote']}"] if row["quote"] else []),
    ]
