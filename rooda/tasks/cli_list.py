"""`rooda tasks`, `rooda tasks show` and `rooda tasks edit`: show all tasks, or show or change one."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from rooda.base.text import escape_line
from rooda.errors import OK, Undecided, UsageProblem
from rooda.loops import configuration
from rooda.loops.options import DASH_H, InOrder, items, place_of_tab
from rooda.run import questions
from rooda.settings.where import Where, where
from rooda.tasks import editing, model, orders, progress, view
from rooda.tasks.cli_add import TYPE_IT, known_agent, loop_options, own_options, store_of
from rooda.tasks.conflicts import Foresight
from rooda.tasks.editing import Edit
from rooda.tasks.model import Limits, Task
from rooda.tasks.store import Store
from rooda.tasks.work import settings_file
from rooda.views.live import is_terminal, size
from rooda.views.say import say

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

NONE = 'No tasks yet. Add one: rooda tasks add "Fix the flaky login test"'
ROOM = 80  # width of the board if it is not printed on a terminal


def board_group(short_help: str) -> Callable[[Callable[..., int]], click.Group]:
    """Return a decorator that makes a command group from a function that shows a board. The fleet uses it too."""

    def made(function: Callable[..., int]) -> click.Group:
        as_json = click.option(
            "--json", "as_json", is_flag=True, help="Print JSON; with --watch, one line per refresh."
        )
        watch = click.option("--watch", is_flag=True, help="Refresh every second, until Ctrl+C.")
        group = click.group(cls=InOrder, invoke_without_command=True, context_settings=DASH_H, short_help=short_help)
        return group(as_json(watch(click.pass_context(function))))

    return made


def board(here: Where, as_json: bool, watch: bool) -> int:
    """Show all tasks; with `watch`, refresh them until Ctrl+C."""
    return watched(_pictures(store_of(here), here, as_json, watch), as_json, watch)


def watched(pictures: Iterator[list[str]], as_json: bool, watch: bool) -> int:
    """Show a board's lines once; with `watch`, show each new version of the lines until Ctrl+C."""
    if watch:
        from rooda.views.watching import watching

        return watching(pictures, as_json)
    say("\n".join(next(pictures)))
    return OK


def _pictures(store: Store, here: Where, as_json: bool, watch: bool) -> Iterator[list[str]]:
    """Yield the board's lines, read from disk each time; never ends."""
    config, foresight = settings_file(store, here), Foresight(store, lambda text: say(text, True))
    while True:
        found = progress.board(store, config)
        conflicts = foresight.of(found.tasks)
        if as_json:
            yield [
                json.dumps(_objects(store, found, config, conflicts), indent=None if watch else 2, ensure_ascii=False)
            ]
        elif not found.tasks and not found.damaged:
            yield [NONE]
        else:
            room = size(sys.stdout)[0] - 1 if is_terminal(sys.stdout) else ROOM
            yield view.board([*found.tasks.values()], found.tasks, room, conflicts, found.damaged)


def _objects(
    store: Store, found: progress.Board, config: str, conflicts: Mapping[int, Sequence[int]]
) -> list[dict[str, Any]]:
    made = {
        number: progress.as_json(store, task, found.tasks, config, tuple(conflicts.get(number, ())))
        for number, task in found.tasks.items()
    }
    made |= {number: progress.damaged_json(store, number, why) for number, why in found.damaged.items()}
    return [made[number] for number in sorted(made)]


def tab_tasks(ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """Complete the ids of tasks that have neither landed nor been cancelled."""
    tasks = store_of(place_of_tab(ctx)).all().values()
    return items(((str(task.id), f"{task.state}: {task.title}") for task in tasks if not task.is_over), incomplete)


ID = click.Argument(["number"], metavar="ID", type=click.IntRange(1), shell_complete=tab_tasks)


@click.pass_context
def _show(ctx: click.Context, /, number: int, as_json: bool) -> int:
    here = where(ctx)
    store = store_of(here)
    config = settings_file(store, here)
    task = progress.current(store, store.get(number), config)
    known = {each: found for each in task.after if (found := store.look(each))}
    if as_json:
        say(json.dumps(progress.as_json(store, task, known, config), indent=2, ensure_ascii=False))
    else:
        say("\n".join(view.page(task, known, left=orders.left_in_clone(store, task))))
    return OK


show = click.Command(
    "show",
    params=[ID, click.Option(["--json", "as_json"], is_flag=True, help="Print JSON.")],
    callback=_show,
    help="Show one task: its text, state, limits, branch, and what it waits for.",
    short_help="Show one task.",
    context_settings=DASH_H,
)


@click.pass_context
def _edit(ctx: click.Context, /, number: int, text: str | None, no_gates: bool, **typed: Any) -> int:
    here = where(ctx)
    store = store_of(here)
    if text is not None and not model.title_of(text):
        raise UsageProblem("The task's text is empty.", TYPE_IT)
    if no_gates and typed["gates"]:
        raise UsageProblem("--gate and --no-gates are mutually exclusive.")
    change = Edit(
        text=None if text is None else text.strip(),
        gates=tuple(typed["gates"]) or (() if no_gates else None),
        after=typed["after"],
        priority=typed["priority"],
        limits=Limits(int(typed["iterations"] or 0), float(typed["cost"] or 0), float(typed["seconds"] or 0)),
        agent=typed["agent"] and known_agent(configuration.load(here.workspace, here.config), typed["agent"]),
        target=typed["target"],
        options=None if typed["options"] is None else loop_options(store.get(number).kind, typed["options"]),
    )
    task = editing.edit(store, number, _typed(store.get(number)) if change == Edit() else change)
    say(escape_line(f"Changed task {task.id}: {task.title}"))
    if task.state == model.RUNNING:
        say("The task is running; the change takes effect in its next iteration.")
    return OK


def _typed(task: Task) -> Edit:
    """Open the task in the user's editor, and return the changes."""
    if not (questions.at_terminal() or os.environ.get("VISUAL") or os.environ.get("EDITOR")):
        raise UsageProblem("There is no terminal for an editor.", "Change it with --text, --gate, --after, --priority.")
    before = editing.form(task)
    try:
        after = click.edit(before, extension=".md", require_save=False)
    except click.ClickException as problem:
        raise Undecided(f"{problem.format_message()}. Nothing was changed.", "Set EDITOR to another editor.") from None
    return Edit() if after in (None, before) else editing.parsed(str(after))


edit = click.Command(
    "edit",
    params=[
        ID,
        click.Option(["--text"], metavar="TEXT", help="The new text."),
        click.Option(["--no-gates"], is_flag=True, help="Remove the task's own gates."),
        *own_options(),
    ],
    callback=_edit,
    help="Change a task: in $EDITOR, or with the options. A running loop gets the change in its next iteration.\n\n"
    "--gate replaces all of the task's own gates; --after '' removes all tasks that it waits for.",
    short_help="Change a task.",
    context_settings=DASH_H,
)
