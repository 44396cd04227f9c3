"""Defines the subcommands of `rooda flow` and their options."""

from typing import TYPE_CHECKING

import click

from rooda.errors import UsageProblem
from rooda.loops import options
from rooda.loops.options import DASH_H, InOrder, items, place_of_tab
from rooda.settings.where import where, with_typed

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def tab_runs(ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    from rooda.loops.flow import repository, runs
    from rooda.run.ended import of_file

    found = runs.find_all(repository.find(place_of_tab(ctx).workspace))
    return items(((run.id, of_file(run.status)) for run in found), incomplete)


@click.command(short_help="Write flow.yaml and its agent files for this project.")
@click.option("--levels", type=click.IntRange(1, 2), metavar="N", help="1: one loop; 2: a loop inside a loop.")
@click.option("--sensor", "sensors", multiple=True, metavar="NAME=COMMAND", help="A sensor; repeatable.")
@click.option("--outer", multiple=True, metavar="NAME=COMMAND", help="A sensor of the outer loop; repeatable.")
@click.option("--demo", metavar="DIR", help="Create a small project with a flow and scripted agents in DIR.")
@click.option("-y", "--yes", is_flag=True, help="Accept all proposals without asking.")
@click.pass_context
def setup(
    ctx: click.Context,
    levels: int | None,
    sensors: tuple[str, ...],
    outer: tuple[str, ...],
    demo: str | None,
    yes: bool,
) -> int:
    """Propose sensors for the project in this folder, and write .ai-loop/flow.yaml and .claude/agents/loop-*.md.

    Safe to repeat: existing files are never changed. Avoid hyphens in sensor names: some commit viewers split names
    at hyphens.
    """
    if demo is not None:
        from rooda.loops.registry import demo_of

        return demo_of("flow")(demo)
    from rooda.loops.flow.setup import Answers, set_up

    return set_up(where(ctx).workspace, Answers(levels, sensors, outer, yes))


@click.command(short_help="Show the topology as a tree, or all its errors.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def check(ctx: click.Context, as_json: bool) -> int:
    """Read .ai-loop/flow.yaml and the agent files it names; show the tree, or every error with its line and node."""
    from rooda.loops.flow.status import show_topology

    return show_topology(where(ctx), as_json)


@click.pass_context
def _run(
    ctx: click.Context,
    /,
    task: tuple[str, ...],
    going: str | None,
    new: bool,
    allow_dirty: bool,
    commit_setup: bool,
    yes: bool,
    **typed: object,
) -> int:
    from rooda.loops.flow import start

    arguments = start.RunArguments(task, going, new, allow_dirty or yes, commit_setup or yes)
    return start.run(with_typed(where(ctx), typed), typed, arguments)


def _limit() -> click.Option:
    return click.Option(
        ["-n", "--max-iterations"],
        type=click.IntRange(min=1),
        metavar="N",
        help="Iteration limit for the top node; overrides its max_iterations.",
    )


run = click.Command(
    "run",
    callback=_run,
    params=[
        click.Argument(["task"], nargs=-1),
        click.Option(
            ["--resume", "going"],
            is_flag=False,
            flag_value="",
            metavar="[RUN]",
            shell_complete=tab_runs,
            help="Resume RUN. Without RUN, resume the open run, or choose one if there are several.",
        ),
        _limit(),
        click.Option(
            ["--new", "--fresh", "new"], is_flag=True, help="Start a new run and leave unfinished runs as they are."
        ),
        click.Option(["-y", "--yes"], is_flag=True, help="Same as --allow-dirty --commit-setup."),
        click.Option(["--allow-dirty"], is_flag=True, help="Include uncommitted changes in the run's first commit."),
        click.Option(["--commit-setup"], is_flag=True, help="First commit new or changed flow files on this branch."),
        options.worktree(),
        *options.for_kind(),
    ],
    help="Work on TASK until the target is met or a limit is reached, on a new branch with one commit per iteration.",
    short_help="Work on a task until the target is met.",
)


@click.pass_context
def _resume(ctx: click.Context, /, name: str | None, **typed: object) -> int:
    from rooda.loops.flow import start

    return start.resume(name, with_typed(where(ctx), typed), typed)


resume = click.Command(
    "resume",
    callback=_resume,
    params=[
        click.Argument(["name"], required=False, metavar="[RUN]", shell_complete=tab_runs),
        _limit(),
        *options.for_kind(),
    ],
    help="Resume an interrupted run on its branch. RUN is its id; the default is the only open run. "
    "A RUN that ended with an error is resumed at the step that failed. A RUN that ended at its limit needs "
    "a higher one: -n N",
    short_help="Resume an interrupted run.",
)


@click.command(short_help="Show a run: nodes, readings, decisions, commits.")
@click.argument("name", required=False, metavar="[RUN]", shell_complete=tab_runs)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def status(ctx: click.Context, name: str | None, as_json: bool) -> int:
    """Show RUN; the default is the open run, else the newest."""
    from rooda.loops.flow.status import show_run

    return show_run(where(ctx), name, as_json)


@click.command(short_help="Show the commits of a run as a tree.")
@click.argument("name", required=False, metavar="[RUN]", shell_complete=tab_runs)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def log(ctx: click.Context, name: str | None, as_json: bool) -> int:
    """Show the commits of RUN, oldest first; commits of an inner node are indented below the parent's iteration."""
    from rooda.loops.flow.status import show_log

    return show_log(where(ctx), name, as_json)


@click.command("list", short_help="List the runs of this project.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def list_runs(ctx: click.Context, as_json: bool) -> int:
    """List the runs of this project, newest first: id, state, branch, task."""
    from rooda.loops.flow.merge import show_runs

    return show_runs(where(ctx), as_json)


@click.command(short_help="Bring a run's work to its base branch.")
@click.argument("name", required=False, metavar="[RUN]", shell_complete=tab_runs)
@click.pass_context
def merge(ctx: click.Context, name: str | None) -> int:
    """Commit the work of RUN on its base branch as one commit, without the run's files. The message has the evidence.

    The default is the newest run that met its target. The run's branch stays.
    """
    from rooda.loops.flow.merge import merge as merge_run

    return merge_run(where(ctx), name)


@click.command(hidden=True)
@click.argument("name", required=False, metavar="[RUN]", shell_complete=tab_runs)
def clean(name: str | None) -> int:
    """Explain how to delete a run: its files are commits on its branch."""
    what = "rooda does not delete a flow's runs: their files are commits on their branches."
    others = f"To remove old snapshots and logs: rooda prune {name or ''}".rstrip()
    raise UsageProblem(what, f"See them: rooda flow list\nDelete one: git branch -D BRANCH\n{others}")


HELP = """A hierarchy of control loops on git.

Sensors measure, a controller compares the readings with the target and decides, an actuator or an inner loop acts;
then the sensors measure again. Each iteration is one commit on the run's own branch. The topology is in
.ai-loop/flow.yaml. `rooda flow "TASK"` is short for `rooda flow run "TASK"`.
"""
flow = InOrder(
    "flow",
    commands=[setup, check, run, resume, status, log, list_runs, merge, clean],
    help=HELP,
    short_help="A hierarchy of control loops on git.",
    context_settings=DASH_H,
    default="run",
)
