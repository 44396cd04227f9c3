"""`rooda worker` and `rooda fleet`: run the tasks of a fleet on this machine; inspect and clean the fleet."""

import json
import platform
from collections import Counter
from typing import Any

import click

from rooda.base import clock
from rooda.base.json import Json
from rooda.base.text import counted
from rooda.errors import FAILED, OK, UsageProblem
from rooda.fleet import names
from rooda.fleet import worker as workers
from rooda.fleet.port import Place
from rooda.fleet.worker import Fleet, fleet_of, require_engine
from rooda.loops import configuration
from rooda.loops.options import DASH_H, InOrder
from rooda.settings.where import where
from rooda.views.say import say

ADDRESS = click.option("--fleet", "address", metavar="ADDRESS", help="temporal://HOST:PORT/NAMESPACE")


@click.group(cls=InOrder, invoke_without_command=True, context_settings=DASH_H, short_help="Run the tasks of a fleet.")
@ADDRESS
@click.option(
    "-j", "slots", type=click.IntRange(1, 1000), default=2, show_default=True, metavar="N", help="Loops to run at once."
)
@click.option("--pool", default="default", show_default=True, metavar="NAME", help="Take tasks of this pool.")
@click.option("--name", metavar="NAME", help="Name of this worker; default: the name of this machine.")
@click.pass_context
def worker(ctx: click.Context, address: str | None, slots: int, pool: str, name: str | None) -> int:
    """Run the tasks of a fleet on this machine, until `rooda fleet drain`.

    Ctrl+C or SIGTERM saves and ends the running loops, and other workers continue their tasks; a second signal ends
    everything at once. A worker that can't reach the fleet for 3/4 of [fleet] heartbeat ends everything and
    exits with 75, so that a service manager starts it again.
    """
    if ctx.invoked_subcommand:
        return OK
    require_engine()
    found = configuration.load(where(ctx).workspace, where(ctx).config)
    fleet = fleet_of(found.table("fleet"), address)
    place = Place(names.plain(name or platform.node() or "worker"), names.plain(pool), slots, fleet.heartbeat)
    return workers.run(fleet, place, *workers.hands(found, place, say, fleet), say)


@worker.command(short_help="Let a worker hand over its tasks and exit.")
@click.argument("name")
@ADDRESS
@click.option("--wait/--no-wait", default=True, help="Wait until the worker has exited, or return at once.")
@click.pass_context
def drain(ctx: click.Context, name: str, address: str | None, wait: bool) -> int:
    """Let a worker finish its current iterations, hand its tasks to other workers, and exit with 0."""
    engine = _engine(ctx, address)
    found = [each for each in engine.workers() if each["name"] == name]
    if not found:
        raise UsageProblem(f"The fleet has no worker named {name!r}.", "List the workers: rooda fleet status")
    done = [engine.message(each["queue"], {"drain": f"{name} is drained"}) for each in found]
    if not any(done):
        say(f"{name} does not answer; other workers will get its tasks.")
        return FAILED
    say(f"{name} accepts no more tasks.")
    while wait and any(each["worker"] == name for each in _running(engine)):
        clock.sleep(0.5)
    return OK


@click.group(cls=InOrder, context_settings=DASH_H, short_help="Show, check and clean the fleet.")
@ADDRESS
def fleet(address: str | None) -> None:
    """Show workers and tasks of the fleet, check whether this machine can use it, and remove old state."""


@fleet.command(short_help="Show workers, and how many tasks are in which state.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@ADDRESS
@click.pass_context
def status(ctx: click.Context, address: str | None, as_json: bool) -> int:
    """Show the workers of the fleet, and how many tasks are in which state."""
    engine = _engine(ctx, address)
    tasks = engine.every_task()
    busy = Counter(each["fleet"].get("worker", "") for each in tasks if each["open"])
    rows = [
        {
            "name": each["name"],
            "pool": each["pool"],
            "slots": each["slots"],
            "busy": busy[each["name"]],
            "last_proof": clock.rfc3339(each["seen"]),
        }
        for each in sorted(engine.workers(), key=lambda each: (each["pool"], each["name"]))
    ]
    states = Counter(each["task"].get("state", "") for each in tasks)
    found = {"address": str(engine.address), "workers": rows, "tasks": dict(sorted(states.items()))}
    if as_json:
        say(json.dumps(found))
        return OK
    for row in rows:
        say("{name}  pool {pool}  {busy} of {slots} busy  last proof {last_proof}".format(**row))
    if not rows:
        say("No workers. Start one: rooda worker")
    say("Tasks: " + (", ".join(f"{count} {state}" for state, count in sorted(states.items())) or "none"))
    return OK


@fleet.command(short_help="Check whether the fleet can be used from here.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@ADDRESS
@click.pass_context
def doctor(ctx: click.Context, address: str | None, as_json: bool) -> int:
    """Check address, versions, namespace, clock, queues, the remote that holds state, agents and disk.

    The check makes a ref in the state remote and deletes it. Exit code 0: this machine can use the fleet.
    """
    require_engine()
    from rooda.fleet import checkup

    found, here = configuration.load(where(ctx).workspace, where(ctx).config), where(ctx)
    bad, rows = False, []
    for each in checkup.findings(_fleet(ctx, address), found, here):
        bad |= each.status == checkup.BAD
        rows.append(each._asdict())
        if not as_json:
            mark = "FAIL" if each.status == checkup.BAD else each.status
            say(f"{mark:<4}  {each.what}: {each.detail}" + (f"\n      {each.do}" if each.do else ""))
    if as_json:
        say(json.dumps(rows))
    return FAILED if bad else OK


@fleet.command(short_help="Delete the state of tasks that ended long ago.")
@click.option("--unknown", is_flag=True, help="Also delete refs of tasks that the fleet no longer knows.")
@click.option("--dry-run", is_flag=True, help="Print what would be deleted, and delete nothing.")
@ADDRESS
@click.pass_context
def prune(ctx: click.Context, address: str | None, dry_run: bool, unknown: bool) -> int:
    """Delete the state refs of tasks that landed or were cancelled longer ago than [fleet] keep.

    Temporal forgets ended tasks after the retention of its namespace; --unknown also deletes the refs of such tasks.
    Make sure that these tasks do not belong to a fleet at another address.
    """
    require_engine()
    from rooda.fleet import checkup
    from rooda.fleet.desk import Added, Desk
    from rooda.fleet.options import fleet_settings

    here = where(ctx)
    found = configuration.load(here.workspace, here.config)
    desk = Desk(here, found, Added(), _typed(ctx, address))
    mirror, remote = desk.git()
    tips = remote.tips()
    tasks, keep = desk.all(), fleet_settings(found).keep
    old = checkup.old_refs(tasks, tips, keep)
    lost = checkup.unknown_refs(tasks, tips, keep, mirror)
    if unknown:
        old |= lost
    elif lost:
        names = ", ".join(map(str, sorted(lost)))
        say(f"Kept {counted(len(lost), 'old ref')} of tasks that the fleet does not know: {names}")
    stay = {} if dry_run else remote.delete(old)
    for number, words in stay.items():
        say(f"The ref of task {number} was not deleted: {words}")
    count = len(old) - len(stay)
    say(f"{'Would remove' if dry_run else 'Removed'} {count} of {counted(len(tips), 'ref')}.")
    return FAILED if stay else OK


def _running(engine: Any) -> list[Json]:
    return [each["fleet"] for each in engine.every_task() if each["open"]]


def _fleet(ctx: click.Context, address: str | None) -> Fleet:
    here = where(ctx)
    return fleet_of(configuration.load(here.workspace, here.config).table("fleet"), _typed(ctx, address))


def _typed(ctx: click.Context, address: str | None) -> str | None:
    """Return the --fleet address given to the command, else the one given to its group; None if there is none."""
    return address or (ctx.parent.params.get("address") if ctx.parent else None)


def _engine(ctx: click.Context, address: str | None) -> Any:
    require_engine()
    from rooda.fleet.engine import Engine

    found = _fleet(ctx, address)
    return Engine(found.address, found.heartbeat, found.insecure)
