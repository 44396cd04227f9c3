"""`rooda tasks`: the commands of the list of tasks."""

from collections.abc import Sequence

import click

from rooda.errors import OK
from rooda.loops import configuration
from rooda.loops.options import DASH_H, InOrder
from rooda.settings.where import where
from rooda.tasks import cli_add, cli_list, cli_run
from rooda.tasks.cli_add import store_of
from rooda.tasks.model import Task
from rooda.views.say import say


@click.group(
    cls=InOrder,
    invoke_without_command=True,
    context_settings=DASH_H,
    short_help="Work off a list of tasks, several at once.",
)
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs; with --watch one line per refresh.")
@click.option("--watch", is_flag=True, help="Refresh every second, until Ctrl+C.")
@click.pass_context
def tasks(ctx: click.Context, as_json: bool, watch: bool) -> int:
    """Work off a list of tasks, each in a clone of its own, and bring their work together.

    Without a command: the board, one line a task.
    """
    return OK if ctx.invoked_subcommand else cli_list.board(where(ctx), as_json, watch)


for _each in (cli_add.add, cli_list.show, cli_list.edit):
    tasks.add_command(_each)


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


cli_run.register(tasks)
