"""`rooda flow log [RUN]`: the commits of a run as a tree."""

import click

from rooda.base.json import Json
from rooda.base.text import visible
from rooda.errors import OK
from rooda.loops.flow import commits
from rooda.loops.flow.commits import Logged
from rooda.loops.flow.inspect import NONE, asked_for, tab_runs


@click.command(short_help="The commits of a run as a tree.")
@click.argument("name", required=False, metavar="[RUN]", shell_complete=tab_runs)
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
@click.pass_context
def log(ctx: click.Context, name: str | None, as_json: bool) -> int:
    """Every boundary of RUN, oldest first: inner nodes stand below the iteration of their parent."""
    repo, run = asked_for(ctx, name)
    if run is None:
        click.echo("[]" if as_json else NONE)
        return OK
    logged = commits.history(repo, run.root, run.id, run.tip)
    if as_json:
        import json

        click.echo(json.dumps([facts for each in logged if (facts := _facts(each))], indent=2, ensure_ascii=False))
        return OK
    click.echo(f"{run.id} on {run.branch}: {run.status}")
    for each in logged:
        if each.boundary:
            click.echo(visible(_row(each)))
    return OK


def _facts(logged: Logged) -> Json:
    found = logged.boundary
    if found is None:
        return {}
    return {
        "commit": logged.commit,
        "node_path": found.path,
        "level": found.path.count("/"),
        "iteration": found.label,
        "status": found.state.status,
        "target_met": found.state.status == "complete",
        "sensors": {reading.sensor: reading.status for reading in found.state.readings},
        "summary": found.state.summary,
        "action": found.state.action,
    }


def _row(logged: Logged) -> str:
    facts = _facts(logged)
    name = facts["node_path"].rpartition("/")[2]
    sensors = ", ".join(f"{each}: {status}" for each, status in facts["sensors"].items())
    end = "" if facts["status"] == "running" else f"  [{facts['status']}]"
    where = "  " * (1 + facts["level"])
    return f"{where}{name} {facts['iteration']} — {facts['summary']}{end}" + (f"  ({sensors})" if sensors else "")
