"""`rooda tasks run`, and the commands for tasks that run, wait or ask: stop, cancel, retry, pause, logs, why, clean."""

import os
import sys
from collections.abc import Callable
from typing import Any

import click

from rooda.base import clock
from rooda.base.text import counted
from rooda.errors import OK, UsageProblem
from rooda.loops import configuration
from rooda.loops.options import DASH_H, RunOptions, Value
from rooda.settings.schema import TASKS
from rooda.settings.types import AMOUNT
from rooda.settings.where import Where, where
from rooda.tasks.cli_list import tab_tasks
from rooda.tasks.model import Task
from rooda.tasks.store import Store, place_of
from rooda.views.say import say

ID = click.argument("number", metavar="ID", type=click.IntRange(1), shell_complete=tab_tasks)

MAYBE_ID = click.argument("number", metavar="[ID]", type=click.IntRange(1), required=False, shell_complete=tab_tasks)


def register(tasks: click.Group) -> None:
    """Add this module's commands to `rooda tasks`."""
    for command in (run, stop, pause, continue_, cancel, retry, logs, why, clean):
        command.context_settings = DASH_H
        tasks.add_command(command)


def _store(here: Where) -> Store:
    return Store(place_of(here.workspace))


@click.command(short_help="Work through the tasks, several at once.")
@click.option(
    "-j", "slots", type=click.IntRange(1, 1000), default=2, show_default=True, metavar="N", help="Loops to run at once."
)
@click.option(
    "--retries",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    metavar="N",
    help="How many times to retry a failed task.",
)
@click.option("--max-cost", "cost", type=Value(AMOUNT), metavar="USD", help="Stop when all loops together cost this.")
@click.option("--wait", is_flag=True, help="Sleep until a usage limit resets, then continue.")
@click.option("--land", is_flag=True, help="Also run `rooda tasks land` whenever a task is completed.")
@click.option("-y", "--yes", is_flag=True, help="With --land: also land changes to rooda.toml, gates and CI files.")
@click.option("--no-gates", is_flag=True, help="With --land: land even if there are no gates to check the work.")
@click.option("--detach", is_flag=True, help="Run in the background; end it with: rooda tasks stop.")
@click.pass_context
def run(
    ctx: click.Context,
    /,
    slots: int,
    retries: int,
    cost: float | None,
    wait: bool,
    land: bool,
    detach: bool,
    **typed: bool,
) -> int:
    """Work through the tasks, each in a separate clone. Ctrl+C stops all loops, and the next `run` resumes them."""
    from rooda.loops.trusting import checked
    from rooda.tasks.runner import Runner, Wishes
    from rooda.tasks.work import settings_file

    here = where(ctx)
    store = _store(here)
    if not store.ids():
        say('No tasks yet. Add one: rooda tasks add "Fix the flaky login test"')
        return OK
    if os.environ.get("ROODA_RUN"):
        raise UsageProblem(
            "An agent can't start `rooda tasks run` from inside its own run.", "Run it in another terminal."
        )
    if any(typed.values()) and not land:
        raise UsageProblem("--yes and --no-gates need --land.")
    landing = tuple(f"--{name.replace('_', '-')}" for name, value in typed.items() if value)
    checked(configuration.load(here.workspace, here.config), RunOptions({}), here.config)  # not in each clone
    wishes = Wishes(slots, retries, wait, land, landing=landing, cost=float(cost or 0), **_set(here, store))
    runner = Runner(store, here, settings_file(store, here), wishes, say)
    return _with_summary(store, runner.run) if land else runner.run()


def _with_summary(store: Store, work: Callable[[], int]) -> int:
    """Call `work`, which runs the tasks; then print what landed, what was sent back and what is still open."""
    from rooda.tasks.run_summary import summary

    before, began = store.all(), clock.running_time()
    code = work()
    for line in summary(before, store.all(), clock.running_time() - began):
        say(line, to_stderr=True)
    return code


def _set(here: Where, store: Store) -> dict[str, Any]:
    """Return those fields of the runner's `Wishes` that come from the settings."""
    from rooda.tasks.work import home_of

    found = configuration.load(here.workspace, here.config)
    table = found.table("tasks")
    given = {key: TASKS[key].converted(table[key]) for key in ("min_free", "question_timeout") if key in table}
    return {
        "prefix": str(table.get("branch_prefix", "rooda")).strip("/"),
        "min_free": int(given.get("min_free", 0)),
        "home": home_of(found, store.place),
        "question_seconds": float(given.get("question_timeout", 0)),
        "question_default": str(table.get("question_default", "")),
    }


@click.command(short_help="Stop a running task, or `rooda tasks run`.")
@MAYBE_ID
@click.option("--reason", metavar="TEXT", default="", help="Record this reason.")
@click.pass_context
def stop(ctx: click.Context, number: int | None, reason: str) -> int:
    """End the loop of a task as Ctrl+C does; without ID, end all loops and `rooda tasks run` itself.

    State and work are kept, and the next `run` resumes.
    """
    from rooda.tasks import orders

    store = _store(where(ctx))
    if number is None:
        orders.stop_run(store)
        say("Stopped. The next `rooda tasks run` will resume the tasks.")
    else:
        orders.stop(store, number, reason)
        say(f"Stopped task {number}. The next `rooda tasks run` continues it.")
    return OK


@click.command(short_help="Cancel a task for good.")
@ID
@click.pass_context
def cancel(ctx: click.Context, number: int) -> int:
    """Cancel a task for good; it never runs or lands. Its clone, branch and logs stay."""
    from rooda.tasks import orders

    orders.cancel(_store(where(ctx)), number)
    say(f"Cancelled task {number}.")
    return OK


@click.command(short_help="Retry a task that failed or is parked.")
@ID
@click.pass_context
def retry(ctx: click.Context, number: int) -> int:
    """Let the next `run` retry a task that failed, is parked, or waits for a usage limit."""
    from rooda.tasks import model, orders

    after = orders.retry(_store(where(ctx)), number)
    done = after.state == model.COMPLETED
    say(f"Task {number} is completed." if done else f"Task {number} waits for the next `rooda tasks run`.")
    return OK


@click.command(short_help="Suspend a running task, or `rooda tasks run`.")
@MAYBE_ID
@click.pass_context
def pause(ctx: click.Context, number: int | None) -> int:
    """Suspend the loop of a task and its agent; without ID, suspend all loops and `rooda tasks run` itself.

    The agents may lose the connections to their services, so use `rooda tasks stop` for a long pause.
    """
    if number is not None:
        return _in_clone(where(ctx), number, ("pause",))
    from rooda.tasks import orders

    orders.pause_run(_store(where(ctx)))
    say("Paused all running tasks. Continue with: rooda tasks continue")
    return OK


@click.command("continue", short_help="Continue a paused task, or `rooda tasks run`.")
@MAYBE_ID
@click.pass_context
def continue_(ctx: click.Context, number: int | None) -> int:
    """Continue the loop of a task that was paused; without ID, continue `rooda tasks run` and all its loops."""
    if number is not None:
        return _in_clone(where(ctx), number, ("continue",))
    from rooda.tasks import orders

    orders.continue_run(_store(where(ctx)))
    say("Continued. Watch with: rooda tasks --watch")
    return OK


@click.command(short_help="Show what a task did, iteration by iteration.")
@ID
@click.option("-f", "--follow", is_flag=True, help="Keep printing until the loop ends.")
@click.option("--agent", is_flag=True, help="Show the output of the agent instead.")
@click.pass_context
def logs(ctx: click.Context, number: int, follow: bool, agent: bool) -> int:
    """Show the log of a task's loop, or the output of its start if the loop has not begun yet."""
    words = ["logs", *(["-f"] if follow else []), *(["--agent"] if agent else [])]
    return _in_clone(where(ctx), number, words)


@click.command(short_help="Show why a task continued, failed or waits.")
@ID
@click.pass_context
def why(ctx: click.Context, number: int) -> int:
    """Show why the loop of a task continued, failed, paused or stopped."""
    here = where(ctx)
    task = _store(here).get(number)
    say(f"Task {number} is {task.state}{f': {task.reason}' if task.reason else ''}.")
    return _in_clone(here, number, ("why",)) if task.session else OK


def _in_clone(here: Where, number: int, words: Any) -> int:
    """Run another rooda command in a task's clone."""
    from rooda.processes import children, detach
    from rooda.tasks import orders
    from rooda.tasks.work import settings_file

    store = _store(here)
    task = store.get(number)
    workspace = orders.workspace_of(store, task)
    if not workspace or not os.path.isdir(os.path.join(workspace, ".rooda", "runs")):
        return _print_start(store, task)
    sys.stdout.flush()
    children.replace_self(
        [*detach.rooda_command(), "-C", workspace, "--config", settings_file(store, here), *words], os.environ
    )
    return OK


def _print_start(store: Store, task: Task) -> int:
    from rooda.base import files

    path = os.path.join(store.place.folder, f"{task.id}.out")
    if not files.size(path):
        raise UsageProblem(f"Task {task.id} has not been started yet.", f"See it: rooda tasks show {task.id}")
    say(files.to_text(files.tail(path, 100_000)).rstrip("\n"))
    return OK


@click.command(short_help="Remove the clones of tasks that have landed or were cancelled.")
@click.pass_context
def clean(ctx: click.Context) -> int:
    """Remove the clones of landed and cancelled tasks. A clone with work that the repository lacks is kept."""
    from rooda.tasks import orders

    store, removed = _store(where(ctx)), 0
    for task in store.all().values():
        if task.is_over and task.clone:
            left = orders.clean(store, task)
            say(f"Kept the clone of task {task.id}, {task.clone}: it has {left}.") if left else None
            removed += not left
    say(f"Removed {counted(removed, 'clone')}.")
    return OK
