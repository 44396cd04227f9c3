"""`rooda status [NAME]`: what runs here, how far it is, what waits for a resume."""

import click

from rooda.cli.where import a_name, where
from rooda.errors import OK, StateDamaged
from rooda.loops import ooda
from rooda.model import Json
from rooda.policy.durations import seconds, whole
from rooda.policy.statistics import timing, timing_text
from rooda.stores import procedure_state
from rooda.stores.procedure_state import Place
from rooda.world import lock


@click.command(short_help="What runs here, how far it is, what waits for a resume.")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
@click.pass_context
def status(ctx: click.Context, name: str | None, as_json: bool) -> int:
    """The state of NAME, or of every procedure that runs here or can go on."""
    workspace = where(ctx).workspace
    names = [a_name(name)] if name else procedure_state.names(workspace)
    found = [facts for each in names if (facts := facts_of(Place(workspace, each)))]
    if as_json:
        import json

        click.echo(json.dumps(found, indent=2))
    elif found:
        click.echo("\n".join(line for facts in found for line in _lines(facts)))
    else:
        click.echo(f"No saved state for procedure '{name}'." if name else "Nothing runs here, and nothing waits.")
    return OK


def facts_of(place: Place) -> Json:
    """What the state file and the lock say; {} when there is nothing."""
    running = lock.is_held(place.lock)
    pid = lock.owner(place.lock).get("pid") if running else None
    try:
        state = procedure_state.look(place)
    except StateDamaged as problem:
        return {"procedure_name": place.procedure, "status": "damaged", "problem": problem.why, "running": running}
    if state is None:
        return {"procedure_name": place.procedure, "status": "running", "running": True, "pid": pid} if running else {}
    durations = map(seconds, state.elapsed_per_iteration)
    return {**state._asdict(), "running": running, "pid": pid, "timing": timing(durations)}


def _lines(facts: Json) -> list[str]:
    name, status = facts["procedure_name"], facts["status"]
    if status == "damaged":
        return [f"{name}: state file is damaged ({facts['problem']}); start over with: rooda {name}"]
    if "iteration" not in facts:
        return [f"{name}: running (pid {facts['pid']})"]
    bound = f"/{facts['max_iterations']}" if facts["max_iterations"] else ""
    spent = whole(sum(map(seconds, facts["elapsed_per_iteration"])))
    rows = [f"{name}: {_word(facts)}, {facts['iteration']}{bound} iterations completed in {spent}"]
    rows.append(f"  failures in a row: {facts['consecutive_failures']}/{facts['failure_threshold']}")
    rows.append(f"  started {facts['started_at']}, last iteration {facts['last_iteration_at'] or 'none yet'}")
    if facts["timing"]:
        rows.append(f"  Iteration timing: {timing_text(facts['timing'])}")
    if not facts["running"] and status != ooda.COMPLETED:
        rows.append(f"  go on with: rooda resume {name}")
    return rows


def _word(facts: Json) -> str:
    if facts["running"]:
        return f"running (pid {facts['pid']})"
    return "not ended cleanly" if facts["status"] == ooda.RUNNING else str(facts["status"])
