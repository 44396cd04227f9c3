"""`rooda tasks land`: runs the merge queue."""

from collections.abc import Callable, Sequence
from typing import Any

import click

from rooda.errors import UsageProblem
from rooda.loops import configuration
from rooda.loops.options import DASH_H, Value
from rooda.settings.types import DURATION
from rooda.settings.where import where
from rooda.tasks.model import Task
from rooda.tasks.store import Store, place_of
from rooda.views.say import say


def register(group: click.Group) -> None:
    group.add_command(land)


_LANDING = (
    click.option(
        "--attempts",
        type=click.IntRange(0),
        default=2,
        show_default=True,
        metavar="N",
        help="How many times a task goes back to its agent after conflicts or red gates.",
    ),
    click.option("--no-gates", is_flag=True, help="Land even if there are no gates to check the work."),
    click.option("-y", "--yes", is_flag=True, help="Land changes to rooda.toml, gates and CI files without asking."),
    click.option("--target", default="", metavar="BRANCH", help="Land only tasks that have this target branch."),
)


def landing_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that `rooda tasks land` and the fleet's `land` share."""
    for option in reversed(_LANDING):
        command = option(command)
    return command


@click.command(short_help="Bring finished work to its target branch.", context_settings=DASH_H)
@landing_options
@click.option("--pr", "pull", is_flag=True, help="Push each branch and open a pull request through gh or glab instead.")
@click.option("--merge", is_flag=True, help="With --pr: merge pull requests whose checks are green.")
@click.option("--watch", is_flag=True, help="With --pr: poll the pull requests until all are merged.")
@click.option(
    "--every",
    type=Value(DURATION),
    default="30s",
    show_default=True,
    metavar="TIME",
    help="With --watch: time between two polls.",
)
@click.option("--patient", is_flag=True, hidden=True, help="If another landing is running, wait until it ends.")
@click.pass_context
def land(
    ctx: click.Context, /, attempts: int, no_gates: bool, yes: bool, target: str, patient: bool, **typed: Any
) -> int:
    """Bring completed tasks to their target branch, one at a time, each rebased and checked by the gates.

    After a conflict, a red gate or a failed check of a pull request, the task goes back to its agent.
    """
    from rooda.loops.options import RunOptions
    from rooda.loops.trusting import checked
    from rooda.settings.setup import new_worktree
    from rooda.tasks.landing import Asked, Queue, Wishes

    here = where(ctx)
    options = RunOptions({})
    found = checked(configuration.load(here.workspace, here.config), options, here.config)
    store = Store(place_of(here.workspace))
    if typed["pull"]:
        from rooda.tasks import pulls

        watch = float(typed["every"]) if typed["watch"] else 0.0
        asked_for = pulls.Wishes(attempts, typed["merge"], no_gates, yes, watch, target)
        return pulls.Pulls(store, found, asked_for, say).run()
    if typed["merge"] or typed["watch"]:
        raise UsageProblem("--merge and --watch need --pr.")
    wishes = Wishes(attempts, no_gates, yes, target, patient)
    asked = Asked(say, _allow, lambda there: checked(there, options, here.config))
    return Queue(store, found, new_worktree(found), wishes, asked).run()


def _allow(task: Task, names: Sequence[str]) -> bool:
    """Ask the user whether a branch may change files that decide what is run or checked. False without a terminal."""
    from rooda.run import questions

    say(f"Task {task.id} changes files that decide what is run or checked: {', '.join(names)}")
    say(f"See the change: git diff {task.target}...{task.branch} -- {' '.join(names)}")
    if not questions.at_terminal():
        say("Land it with: rooda tasks land --yes")
        return False
    return (questions.typed_answer("Land it? [y/N] ") or "").strip().lower() in ("y", "yes")
