"""`rooda tasks … --fleet`: the commands of `rooda tasks` for tasks that run on many machines."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import click

from rooda.base import clock
from rooda.base.json import Json
from rooda.base.text import escape_line
from rooda.errors import OK, RoodaError, UsageProblem
from rooda.fleet import board, names
from rooda.fleet.desk import Added, Desk
from rooda.fleet.ticket import ANYWHERE
from rooda.loops import configuration
from rooda.loops.options import DASH_H, Value
from rooda.settings.types import AMOUNT
from rooda.settings.where import Where, where
from rooda.tasks import model, view
from rooda.tasks.cli_add import add_command, own_options
from rooda.tasks.cli_land import landing_options
from rooda.tasks.cli_list import board_group, watched
from rooda.tasks.model import PRIORITIES, Task
from rooda.views.live import is_terminal, size
from rooda.views.say import say, warned

NONE = 'No tasks in the fleet. Add one: rooda tasks add "Fix the login test" --fleet'
PATIENCE = 120.0  # seconds to wait until a worker has carried out an order
LOOK = 0.2
SOON = 3.0  # seconds that a worker, if there is one, usually takes to carry out an order
ID = click.argument("number", metavar="ID", type=click.IntRange(1))


def desk_of(here: Where, added: Added = Added()) -> Desk:  # noqa: B008  # a NamedTuple
    return Desk(here, warned(configuration.load(here.workspace, here.config)), added)


@board_group("Work through a list of tasks on several machines.")
def tasks(ctx: click.Context, as_json: bool, watch: bool) -> int:
    """Work through a list of tasks on the workers of a fleet.

    Without a command, show the board: one line for each task.
    """
    if ctx.invoked_subcommand:
        return OK
    return watched(_pictures(desk_of(where(ctx)), as_json, watch), as_json, watch)


def _pictures(desk: Desk, as_json: bool, watch: bool) -> Iterator[list[str]]:
    """Yield the board's lines again and again, each time from the engine's current tasks. Never ends."""
    while True:
        known = desk.known()
        if as_json:
            rows = [board.as_json(each, known) for _, each in sorted(known.items())]
            yield [json.dumps(rows, indent=None if watch else 2, ensure_ascii=False)]
        elif not known:
            yield [NONE]
        else:
            room = size(sys.stdout)[0] - 1 if is_terminal(sys.stdout) else 80
            tasks = {number: board.shown(each) for number, each in sorted(known.items())}
            yield view.board([*tasks.values()], tasks, room)


def _listed(here: Where, typed: Json) -> Desk:
    added = Added(*(typed.pop(key) for key in Added._fields))
    if added.batch_cost and not added.batch:
        raise UsageProblem("--batch-cost needs a batch.", "Name it: --batch NAME")
    names.plain(added.pool)
    names.plain(added.batch or "none")
    return desk_of(here, added)


_FURTHER: list[click.Parameter] = [
    click.Option(
        ["--pool"], default=ANYWHERE, show_default=True, metavar="NAME", help="The pool of workers that may run it.",
    ),
    click.Option(["--batch"], default="", metavar="NAME", help="Count the task's cost towards this batch."),
    click.Option(["--batch-cost"], type=Value(AMOUNT), default=0.0, metavar="USD", help="Cost limit of the batch."),
    click.Option(
        ["--retries"], type=click.IntRange(0), default=1, show_default=True, metavar="N",
        help="How many times to retry the task after failures.",
    ),
]  # fmt: skip
tasks.add_command(add_command(_listed, *_FURTHER))


@tasks.command(short_help="Show one task.")
@ID
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def show(ctx: click.Context, number: int, as_json: bool) -> int:
    """Show one task: its text, state, limits, branch, worker, and what it waits for."""
    known = desk_of(where(ctx)).known()
    found = known.get(number) or _unknown(number)
    if as_json:
        say(json.dumps(board.as_json(found, known), indent=2, ensure_ascii=False))
    else:
        say("\n".join(board.page(found, known)))
    return OK


def _unknown(number: int) -> Any:
    raise UsageProblem(f"There is no task {number} in the fleet.", "List them: rooda tasks --fleet")


# Orders


def _ordering(
    word: str, done: str, states: tuple[str, ...], **options: Any
) -> Callable[[Callable[..., Any]], click.Command]:
    """Return a decorator for a command that sends a task the order `word`, and waits until its state is in `states`."""

    def made(documented: Callable[..., Any]) -> click.Command:
        @click.pass_context
        def callback(ctx: click.Context, number: int, reason: str = "") -> int:
            desk = desk_of(where(ctx))
            desk.require_no_secret(reason)
            desk.order(number, word, **({"why": reason} if reason else {}))
            task = _awaited(desk, number, states)
            say(escape_line(done.format(number=number, state=task.state)))
            return OK

        params: list[click.Parameter] = [click.Argument(["number"], metavar="ID", type=click.IntRange(1))]
        if options.get("reason"):
            params.append(click.Option(["--reason"], metavar="TEXT", default="", help="Record this reason."))
        name = documented.__name__.rstrip("_")
        short = str(options["short"])
        return click.Command(
            name, params=params, callback=callback, help=documented.__doc__, short_help=short, context_settings=DASH_H
        )

    return made


def _awaited(desk: Desk, number: int, states: tuple[str, ...]) -> Task:
    """Wait until a worker has carried out an order, and return the task. Raises RoodaError if that takes too long."""
    workflow = desk.find(number).workflow
    began = clock.monotonic()
    while True:
        told = desk.engine.show(workflow)
        task = model.decode(told["task"])
        if task.state in states:
            return task
        if clock.monotonic() > began + SOON and not desk.engine.workers():
            what = f"No worker is running, so the order waits; task {number} is still {task.state}."
            raise RoodaError(what, "Start one: rooda worker")
        if clock.monotonic() > began + PATIENCE:
            what = f"Task {number} is still {task.state}; the order is pending."
            raise RoodaError(what, f"See it: rooda tasks show {number} --fleet")
        clock.sleep(LOOK)


OVER = (model.PARKED, model.COMPLETED, model.FAILED, *model.OVER)


@_ordering("stop", "Task {number} is {state}. Continue it: rooda tasks continue {number} --fleet", OVER,
           short="Stop a task.", reason=True)  # fmt: skip
def stop() -> None:
    """End the loop of a task as Ctrl+C does, and park the task; state and work are kept."""


@_ordering("cancel", "Cancelled task {number}.", (model.CANCELLED, model.LANDED), short="Cancel a task for good.")
def cancel() -> None:
    """Cancel a task for good; it never runs or lands. Its ref, branch and logs stay."""


@_ordering("retry", "Task {number} is {state}.", (model.WAITING, model.RUNNING, *OVER),
           short="Retry a task that failed or is parked.")  # fmt: skip
def retry() -> None:
    """Let a worker retry a task that failed, is parked, or waits for a usage limit."""


for _each in (stop, cancel, retry):
    tasks.add_command(_each)


@tasks.command(short_help="Pause a task, or all of them.")
@click.argument("number", metavar="[ID]", type=click.IntRange(1), required=False)
@click.option("--reason", metavar="TEXT", default="", help="Record this reason.")
@click.pass_context
def pause(ctx: click.Context, number: int | None, reason: str) -> int:
    """Park a task at the end of its iteration; without ID, all tasks of this repository, and those added later."""
    return _held(ctx, number, {"order": "pause", **({"why": reason} if reason else {})}, "paused")


@tasks.command("continue", short_help="Continue a parked task, or all of them.")
@click.argument("number", metavar="[ID]", type=click.IntRange(1), required=False)
@click.pass_context
def continue_(ctx: click.Context, number: int | None) -> int:
    """Continue a task that was paused, stopped or parked; without ID, all of them."""
    return _held(ctx, number, {"order": "continue"}, "continued")


def _held(ctx: click.Context, number: int | None, order: Json, done: str) -> int:
    desk = desk_of(where(ctx))
    desk.require_no_secret(str(order.get("why", "")))
    if number is None:
        desk.engine.hold(desk.key, order)
        say(f"All tasks are {done}; running ones end their turn first." if done == "paused" else "All tasks continue.")
        return OK
    found = desk.find(number)
    if done == "continued" and found.task.question:
        raise UsageProblem(f"Task {number} waits for an answer.", f'Answer it: rooda tasks answer {number} "…" --fleet')
    desk.engine.order(found.workflow, order)
    after = desk.engine.show(found.workflow)
    running = after["task"].get("state") == model.RUNNING
    say(f"Task {number} is {done}{' once its iteration ends' if running and done == 'paused' else ''}.")
    return OK


@tasks.command(short_help="Change the priority of a task.")
@click.argument("priority", type=click.Choice(PRIORITIES))
@ID
@click.pass_context
def priority(ctx: click.Context, priority: str, number: int) -> int:
    """Change the priority of a task: high, normal or low."""
    desk_of(where(ctx)).order(number, "priority", priority=priority)
    say(f"The priority of task {number} is {priority}.")
    return OK


@tasks.command(short_help="Answer the question of a task.")
@ID
@click.argument("text")
@click.pass_context
def answer(ctx: click.Context, number: int, text: str) -> int:
    """Answer the question of an agent; the task continues with the answer in its next prompt."""
    desk = desk_of(where(ctx))
    if not desk.get(number).question:
        raise UsageProblem(f"Task {number} has no open question.", f"See it: rooda tasks show {number} --fleet")
    _require_text(desk, text)
    desk.order(number, "answer", text=text)
    say(f"Answered task {number}; it continues.")
    return OK


@tasks.command("say", short_help="Give the agent of a task a note.")
@ID
@click.argument("text")
@click.pass_context
def say_(ctx: click.Context, number: int, text: str) -> int:
    """Add a note for the agent to a task's next prompt."""
    desk = desk_of(where(ctx))
    _require_text(desk, text)
    desk.order(number, "say", text=text)
    say(f"The next prompt of task {number} will contain the note.")
    return OK


def _require_text(desk: Desk, text: str) -> None:
    """Raise UsageProblem if a text is empty or holds a secret."""
    if not text.strip():
        raise UsageProblem("The text is empty; nothing was done.", "Type the text for the agent.")
    desk.require_no_secret(text)


# What a task did


def _with_events(desk: Desk, number: int, words: list[str]) -> int:
    """Run the rooda command `words` on a task's events, which rooda unpacks from the task's ref."""
    from rooda.fleet.archive import unpacked
    from rooda.processes import children, detach

    folder = unpacked(desk, number)
    sys.stdout.flush()
    children.replace_self([*detach.rooda_command(), "-C", folder, *words], os.environ)
    return OK


@tasks.command(short_help="Show what a task did, iteration by iteration.")
@ID
@click.option("--agent", is_flag=True, help="Show the output of the agent instead.")
@click.pass_context
def logs(ctx: click.Context, number: int, agent: bool) -> int:
    """Show the log of a task's loop, up to the last iteration that its worker has published."""
    desk = desk_of(where(ctx))
    found = desk.find(number)
    if agent and found.ticket.get("logs") != "git":
        on = f"on {found.fleet['worker']}" if found.fleet.get("worker") else "on the workers that ran it"
        raise UsageProblem(f"The transcripts of task {number} are {on}.", 'To publish them: [fleet] logs = "git"')
    return _with_events(desk, number, ["logs", *(["--agent"] if agent else [])])


@tasks.command(short_help="Show why a task continued, failed or waits.")
@ID
@click.pass_context
def why(ctx: click.Context, number: int) -> int:
    """Show why a task waits, which workers refused it, and why its loop continued, failed or stopped."""
    desk = desk_of(where(ctx))
    found = desk.find(number)
    say("\n".join(map(escape_line, board.reasons(found))))
    return _with_events(desk, number, ["why", "--elsewhere"]) if found.fleet.get("turn") else OK


@tasks.command(short_help="Sum up what a task used.")
@ID
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def usage(ctx: click.Context, number: int, as_json: bool) -> int:
    """Sum up tokens, time and cost of a task, from what its worker has published."""
    desk = desk_of(where(ctx))
    desk.find(number)
    return _with_events(desk, number, ["usage", *(["--json"] if as_json else [])])


@tasks.command(short_help="Move a task, with its state and work, to this machine.")
@ID
@click.option("-y", "--yes", is_flag=True, help="Trust what the task would run, without asking.")
@click.pass_context
def take(ctx: click.Context, number: int, yes: bool) -> int:
    """Stop a task, claim it, and make a clone of it in ./ID. Workers no longer run it."""
    from rooda.fleet import home

    here = where(ctx)
    desk = desk_of(here)
    folder = os.path.join(here.current or os.getcwd(), str(number))
    home.require_room(folder)  # before the task is stopped
    desk.order(number, "take")
    _awaited(desk, number, (model.PARKED, model.COMPLETED, model.FAILED, *model.OVER))
    return home.take(desk, number, folder, yes)


@tasks.command(short_help="Change a task.")
@ID
@click.option("--text", metavar="TEXT", help="The new text.")
@click.option("--no-gates", is_flag=True, help="Remove the task's own gates.")
@click.pass_context
def edit(ctx: click.Context, /, number: int, text: str | None, no_gates: bool, **typed: Any) -> int:
    """Change a task. A running loop gets the change the next time a worker starts or resumes that loop."""
    desk = desk_of(where(ctx))
    fields = board.changes(text, no_gates, typed)
    if not fields.get("text", "text"):
        raise UsageProblem("The task's text is empty; nothing was changed.", "Type another text.")
    if not fields:
        raise UsageProblem("No option was given; nothing was changed.", "Add --text, --gate, --after, --priority, …")
    desk.change(number, fields)
    say(f"Changed task {number}.")
    return OK


edit.params += own_options()
tasks.context_settings = DASH_H


@tasks.command(short_help="Bring finished work to its target branch.")
@landing_options
@click.pass_context
def land(ctx: click.Context, /, target: str, **typed: Any) -> int:
    """Bring completed tasks to their target branch, on a worker. A second landing of a target joins the first."""
    desk = desk_of(where(ctx))
    due = [each for each in desk.known().values() if each.task.state == model.COMPLETED]
    pools = {each.task.target: each.fleet.get("pool", ANYWHERE) for each in due if target in ("", each.task.target)}
    if not pools:
        say("No completed tasks to land.")
    return max((_land(desk, name, {**typed, "pool": pool}) for name, pool in sorted(pools.items())), default=OK)


def _land(desk: Desk, target: str, options: Json) -> int:
    say(f"A worker is landing the tasks for {target}.", True)
    said = desk.engine.land(desk.key, target, desk.landing(target, options))
    if text := str(said.get("text", "")).strip():
        say("\n".join(map(escape_line, text.splitlines())))
    return int(said.get("code", OK))


@tasks.command(short_help="Start workers instead.", hidden=True)
@click.pass_context
def run(ctx: click.Context) -> int:
    """Explain that workers run the tasks of the fleet. Raises UsageProblem."""
    raise UsageProblem(
        "`run` is not needed here: workers run the tasks of the fleet.",
        "Start a worker on each machine: rooda worker",
    )
