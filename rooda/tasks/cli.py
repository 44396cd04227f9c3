"""`rooda tasks`: the list of tasks, and the commands that change it."""

import json
import sys
from collections.abc import Sequence
from typing import Any

import click

from rooda.base import files
from rooda.base.json import Json
from rooda.errors import OK, UsageProblem
from rooda.git.repository import read_head
from rooda.loops import configuration, registry
from rooda.loops.options import DASH_H, InOrder, Value
from rooda.settings import procedures
from rooda.settings.layers import Settings
from rooda.settings.types import AMOUNT, COMMAND, DURATION, whole
from rooda.settings.where import Where, where
from rooda.tasks import model, view
from rooda.tasks.model import PRIORITIES, PROCEDURE, Limits, Task
from rooda.tasks.store import Place, Store, place_of
from rooda.views.live import is_terminal, size
from rooda.views.say import say

KINDS = tuple(kind for kind in registry.KINDS if kind != registry.OODA)  # besides procedures


class _Ids(click.ParamType):  # type: ignore[type-arg]  # generic only in newer click
    """Ids of tasks, such as 3,4."""

    name = "ids"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        words = [word.strip() for word in str(value).split(",") if word.strip()]
        if not all(word.isascii() and word.isdecimal() and len(word) < 10 for word in words):
            self.fail(f"must be ids of tasks such as 3 or 3,4, got {value}.", param, ctx)
        return tuple(dict.fromkeys(map(int, words)))


class _Add(click.Command):
    """`--kind procedure NAME` has two words, which click options can't have beside one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            end = args.index("--")
            return super().parse_args(ctx, [*joined_kind(args[:end]), *args[end:]])
        return super().parse_args(ctx, joined_kind(args))


def joined_kind(args: Sequence[str]) -> list[str]:
    """Return the arguments with the two words of `--kind procedure NAME` as one."""
    found = [*args]
    for at, word in enumerate(args[:-2]):
        if word == "--kind" and args[at + 1] == PROCEDURE and not args[at + 2].startswith("-"):
            found[at + 1 : at + 3] = [f"{PROCEDURE} {args[at + 2]}"]
    return found


def own_options() -> list[click.Parameter]:
    """Return the options that describe a task, for `add` and `edit`."""
    return [
        click.Option(["--gate", "gates"], multiple=True, metavar="COMMAND", type=Value(COMMAND),
                     help="A command that must succeed, too; repeatable."),
        click.Option(["--after"], type=_Ids(), metavar="IDS", help="Wait until these tasks have landed, such as 3,4."),
        click.Option(["--priority"], type=click.Choice(PRIORITIES), help="high, normal or low."),
        click.Option(["-n", "--max-iterations", "iterations"], type=Value(whole(1)), metavar="N",
                     help="Stop after N iterations."),
        click.Option(["--max-cost", "cost"], type=Value(AMOUNT), metavar="USD", help="Stop at this cost in dollars."),
        click.Option(["--max-duration", "seconds"], type=Value(DURATION), metavar="TIME",
                     help="Stop after this time, such as 2h."),
        click.Option(["--agent"], metavar="NAME", help="Agent to run."),
        click.Option(["--target"], metavar="BRANCH", help="Branch to land on; default: the one checked out now."),
    ]  # fmt: skip


@click.group(
    cls=InOrder,
    invoke_without_command=True,
    context_settings=DASH_H,
    short_help="Work off a list of tasks, several at once.",
)
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
@click.pass_context
def tasks(ctx: click.Context, as_json: bool) -> int:
    """Work off a list of tasks, each in a clone of its own, and bring their work together.

    Without a command: the board, one line a task.
    """
    return OK if ctx.invoked_subcommand else _board(store_of(where(ctx)), as_json)


def store_of(here: Where) -> Store:
    return Store(place_of(here.workspace))


def _board(store: Store, as_json: bool) -> int:
    found = store.all()
    if as_json:
        say(json.dumps([view.facts(task, found) for task in found.values()], indent=2, ensure_ascii=False))
    elif not found:
        say('No tasks yet. Add one: rooda tasks add "Fix the flaky login test"')
    else:
        room = size(sys.stdout)[0] if is_terminal(sys.stdout) else 0
        say("\n".join(view.board([*found.values()], found, room)))
    return OK


def add(ctx: click.Context, **typed: Any) -> int:
    """Add a task: TEXT, or standard input with `-` or without a text."""
    here = where(ctx)
    store, found = store_of(here), configuration.load(here.workspace, here.config)
    text = _text(typed.pop("text"))
    task = store.add(_maker(new_task(found, store, typed, text)))
    say(f"Added task {task.id}: {task.title}")
    return OK


def _maker(task: Task) -> Any:
    return lambda number: task._replace(id=number)


def _text(typed: str | None) -> str:
    if typed in (None, "-"):
        if sys.stdin is None or (typed is None and sys.stdin.isatty()):
            raise UsageProblem("The task has no text.", 'Type it: rooda tasks add "Fix the flaky login test"')
        typed = files.to_text(sys.stdin.buffer.read())
    assert typed is not None
    if not model.title_of(typed):
        raise UsageProblem("The task's text is empty.", 'Type it: rooda tasks add "Fix the flaky login test"')
    return typed.strip()


def new_task(found: Settings, store: Store, typed: Json, text: str) -> Task:
    """Return a new task with the options of `add`. Raises UsageProblem for an unknown agent, procedure or task."""
    from rooda.settings import agents

    if (agent := typed.get("agent")) and agent not in (known := agents.agents(found)):
        raise UsageProblem(f"There is no agent {agent!r}.", f"Known are: {', '.join(known)}")
    kind, name = _kind(found, typed.get("kind") or PROCEDURE)
    for number in (after := typed.get("after") or ()):
        store.get(number)
    return Task(
        id=0,
        title=model.title_of(text),
        text=text,
        target=typed.get("target") or target_of(found, store.place),
        kind=kind,
        name=name,
        agent=agent or "",
        gates=tuple(typed.get("gates") or ()),
        after=after,
        priority=typed.get("priority") or "normal",
        limits=Limits(
            int(typed.get("iterations") or 0), float(typed.get("cost") or 0), float(typed.get("seconds") or 0)
        ),
    )


def _kind(found: Settings, typed: str) -> tuple[str, str]:
    """Return kind and name of the loop of `--kind`, such as `goal` or `procedure audit-spec`."""
    kind, _, name = typed.partition(" ")
    if kind in KINDS and not name:
        return kind, ""
    name = name or ("build" if kind == PROCEDURE else kind)
    if name not in procedures.names(found):
        known = f"procedure NAME, {', '.join(KINDS)}"
        raise UsageProblem(f"--kind {typed}: there is no such kind or procedure.", f"Known are: {known}; rooda list")
    return PROCEDURE, name


def target_of(found: Settings, place: Place) -> str:
    """Return the branch to land on: that of the settings, else the one checked out; UsageProblem if there is none."""
    if wanted := str(found.table("tasks").get("target", "")):
        return wanted
    if branch := read_head(place.repo).branch:
        return branch
    said = place.repo.run("symbolic-ref", "-q", "--short", "HEAD")  # a branch without a commit
    if said.code == 0:
        return files.to_text(said.out).strip()
    raise UsageProblem(
        "No branch is checked out, so the task has no branch to land on.", "Name one: rooda tasks add --target main …"
    )


tasks.add_command(
    _Add(
        "add",
        params=[
            click.Argument(["text"], required=False),
            click.Option(["--kind"], metavar="KIND", help="Kind of loop: procedure NAME, goal, flow or reflex."),
            *own_options(),
        ],
        callback=click.pass_context(add),
        help=add.__doc__,
        short_help="Add a task.",
        context_settings=DASH_H,
    )
)


@tasks.command(short_help="Show one task.")
@click.argument("number", metavar="ID", type=click.IntRange(1))
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
@click.pass_context
def show(ctx: click.Context, number: int, as_json: bool) -> int:
    """Show one task: its text, state, limits, branch, and what it waits for."""
    store = store_of(where(ctx))
    task = store.get(number)
    known = {each: store.get(each) for each in task.after if each in store.ids()} if task.after else {}
    if as_json:
        say(json.dumps(view.facts(task, known), indent=2, ensure_ascii=False))
    else:
        say("\n".join(view.page(task, known)))
    return OK


@tasks.command(short_help="Work off the tasks, several at once.")
@click.option(
    "-j", "slots", type=click.IntRange(1, 1000), default=2, show_default=True, metavar="N", help="Loops at once."
)
@click.option(
    "--retries",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    metavar="N",
    help="Times that a failed task is tried again.",
)
@click.option("--wait", is_flag=True, help="Sleep until a usage limit is reset, and go on.")
@click.pass_context
def run(ctx: click.Context, slots: int, retries: int, wait: bool) -> int:
    """Work off the tasks, each in a clone of its own; Ctrl+C stops all, and the next `run` goes on."""
    from rooda.tasks.runner import Runner, Wishes
    from rooda.tasks.work import settings_file

    here = where(ctx)
    store = store_of(here)
    if not store.ids():
        say('No tasks yet. Add one: rooda tasks add "Fix the flaky login test"')
        return OK
    return Runner(store, here, settings_file(store, here), Wishes(slots, retries, wait), say).run()


_ID = click.argument("number", metavar="ID", type=click.IntRange(1))


@tasks.command(short_help="Stop a running task; the next `run` goes on with it.")
@_ID
@click.option("--reason", metavar="TEXT", default="", help="Record this reason.")
@click.pass_context
def stop(ctx: click.Context, number: int, reason: str) -> int:
    """End the loop of a task as Ctrl+C does; its state and work stay, and the next `run` goes on with it."""
    from rooda.tasks import orders

    orders.stop(store_of(where(ctx)), number, reason)
    say(f"Stopped task {number}. The next `rooda tasks run` goes on with it.")
    return OK


@tasks.command(short_help="Cancel a task for good.")
@_ID
@click.pass_context
def cancel(ctx: click.Context, number: int) -> int:
    """Cancel a task for good; it never runs or lands. Its clone, branch and logs stay."""
    from rooda.tasks import orders

    orders.cancel(store_of(where(ctx)), number)
    say(f"Cancelled task {number}.")
    return OK


@tasks.command(short_help="Let a task that failed or is parked go on.")
@_ID
@click.pass_context
def retry(ctx: click.Context, number: int) -> int:
    """Let a task go on in the next `run`: one that failed, is parked, or waits for a usage limit."""
    from rooda.tasks import orders

    orders.retry(store_of(where(ctx)), number)
    say(f"Task {number} waits for the next `rooda tasks run`.")
    return OK


@tasks.command(short_help="Bring finished work to its target branch.")
@click.option(
    "--attempts",
    type=click.IntRange(0),
    default=2,
    show_default=True,
    metavar="N",
    help="Times that a task goes back to its agent after a conflict or a red gate.",
)
@click.option("--no-gates", is_flag=True, help="Land without any gate.")
@click.option(
    "-y", "--yes", is_flag=True, help="Land changes of rooda.toml, AGENTS.md and CI files without a question."
)
@click.option("--target", default="", metavar="BRANCH", help="Land only what goes to this branch.")
@click.pass_context
def land(ctx: click.Context, attempts: int, no_gates: bool, yes: bool, target: str) -> int:
    """Bring completed tasks to their target, one at a time, each rebased and checked by the gates.

    A conflict or a red gate goes back to the task's agent.
    """
    from rooda.settings.setup import new_worktree
    from rooda.tasks.landing import Queue, Wishes

    here = where(ctx)
    found = configuration.load(here.workspace, here.config)
    wishes = Wishes(attempts, no_gates, yes, target)
    return Queue(store_of(here), found, new_worktree(found), wishes, say, _allow).run()


def _allow(task: Task, names: Sequence[str]) -> bool:
    """Ask whether a branch may change files that decide what is run or checked; False if there is nobody to ask."""
    from rooda.run import questions

    say(f"Task {task.id} changes {', '.join(names)}, which decide what is run or checked.")
    say(f"See the change: git diff {task.target}...{task.branch} -- {' '.join(names)}")
    if not questions.at_terminal():
        say("Land it with: rooda tasks land --yes")
        return False
    return (questions.typed_answer("Land it? [y/N] ") or "").strip().lower() in ("y", "yes")


@tasks.command(hidden=True)
@click.argument("number", type=int)
@click.option("--parent", type=int, required=True)
@click.pass_context
def work(ctx: click.Context, number: int, parent: int) -> int:
    """Prepare the clone of a task and become its loop; `rooda tasks run` starts this."""
    import os

    from rooda.settings.setup import new_worktree
    from rooda.tasks.work import work

    here = where(ctx)
    found = configuration.load(here.workspace, here.config)
    work(store_of(here), found, new_worktree(found), here, number, os.environ, parent, say)
    return OK
