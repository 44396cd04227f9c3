"""Defines the subcommands of `rooda goal` and their options."""

from collections.abc import Callable
from typing import Any

import click

from rooda.loops import options
from rooda.loops.goal.keys import OWN
from rooda.loops.options import DASH_H, InOrder
from rooda.settings.where import where, with_typed


def _verb(name: str, work: str, about: str, *params: click.Parameter) -> click.Command:
    """Return a command that, when run, imports and calls `work`, a "module:function" of this package."""

    @click.pass_context
    def called(ctx: click.Context, /, **typed: Any) -> int:
        import importlib

        module, _, function = work.partition(":")
        act: Callable[..., int] = getattr(importlib.import_module(f"rooda.loops.goal.{module}"), function)
        return act(with_typed(where(ctx), typed), typed)

    return click.Command(name, callback=called, params=[*params], help=about)


def _flag(*names: str, help: str) -> click.Option:
    return click.Option(names, is_flag=True, help=help)


class _Dollars(click.FloatRange):
    """Option type for a finite number above 0; click.FloatRange would accept inf and nan."""

    name = "dollars"

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        dollars = super().convert(value, param, ctx)
        if not dollars < float("inf"):
            self.fail(f"{value!r} is not a number of dollars.", param, ctx)
        return dollars


def _limits() -> list[click.Parameter]:
    """Return the options of `rooda goal run` that limit iterations and cost."""
    limits = options.of(OWN, "limit", max_iterations=_COUNT, budget=_Dollars())
    return [*limits, _force()]


def _more() -> list[click.Parameter]:
    """Return the options of `rooda goal continue` that set or raise the limits on iterations and cost."""
    return [
        click.Option(["-n", "--max-iterations"], type=_COUNT, metavar="N", help="At most N iterations in all."),
        click.Option(["--iterations"], type=_COUNT, metavar="N", help="Raise the iteration limit by N."),
        click.Option(["--budget"], type=_Dollars(), metavar="DOLLARS", help="Raise the cost limit by DOLLARS."),
        _force(),
    ]


_COUNT = click.IntRange(min=1)


def _force() -> click.Option:
    return _flag("--force-limits", help="Allow more than 50 iterations or 100 dollars.")


def _spec() -> list[click.Parameter]:
    return [
        click.Argument(["spec"], required=False),
        click.Option(
            ["-f", "--file"], type=click.Path(), metavar="FILE", help="Read the specification from FILE; - means stdin."
        ),
    ]


_SHAPES = click.Choice(["auto", "tool", "colleague"], case_sensitive=False)
_WORKFLOWS = click.Choice(["A", "B", "C"], case_sensitive=False)


def _planning() -> list[click.Parameter]:
    return [
        click.Option(["--plan"], type=click.Path(), metavar="FILE", help="A plan as JSON or a Markdown task list."),
        click.Option(["--score"], metavar="O,S,C,S,D", help="Replace the plan's five scores, each from 0 to 2."),
        click.Option(["--shape"], type=_SHAPES, help="Set the shape: tool has no gates, colleague three."),
        click.Option(["--workflow"], type=_WORKFLOWS, help="Set the workflow; otherwise rooda derives it from SPEC."),
        click.Option(["--evidence"], metavar="TEXT", help="Evidence that the workflow needs at the start."),
        _flag("--offline", help="Plan without an agent: score by keywords, one step per criterion."),
        click.Option(["--criterion"], multiple=True, metavar="NAME=COMMAND", help="Add a criterion; repeatable."),
        click.Option(["--holdout"], multiple=True, metavar="NAME=COMMAND",
                     help="Add a criterion that the agent never sees; repeatable."),
    ]  # fmt: skip


def _run() -> list[click.Parameter]:
    return [
        *_spec(),
        *_planning(),
        *_limits(),
        _flag("--no-gates", help="Ask nothing: proceed without confirmation."),
        _flag("-y", "--yes", help="Answer every gate with yes."),
        _flag("--headless", help="Never ask; a Colleague-shaped goal runs as a Tool-shaped one."),
        _flag("--high-stakes", help="Run the adversarial pre-check even if the work is easy to undo."),
        _flag("--keep-state", help="Keep .loop/state.json when the goal has ended."),
        _flag("--delete-state", help="Delete .loop/state.json when the goal is completed."),
        _flag("--fresh", help="Start over, even if a goal is unfinished."),
        _flag("--ascii", help="Print only ASCII."),
        options.worktree(),
        *options.for_kind(),
    ]


def _continue() -> list[click.Parameter]:
    return [
        *_more(),
        _flag("-y", "--yes", help="Answer the pending gate with yes."),
        _flag("--no-gates", help="Ask nothing from now on."),
        _flag("--reload-shape", help="Read SHAPE.md again."),
        _flag("--ascii", help="Print only ASCII."),
        *options.for_kind(),
    ]


def _verify() -> list[click.Parameter]:
    return [
        click.Argument(["name"], required=False),
        click.Option(["--command"], metavar="COMMAND", help="Verify the criterion with this command from now on."),
        click.Option(["--expect"], metavar="PATTERN", help="Regex that the output must match, or a bound: '< 200'."),
        click.Option(["--observed"], metavar="NOTE", help="Confirm that you saw the criterion hold; NOTE says how."),
        _flag("--judge", help="Let an agent judge the criterion by the diff."),
        *_plain(),
    ]


def _plain() -> list[click.Parameter]:
    return [click.Option(["--json", "as_json"], is_flag=True, help="Print JSON.")]


VERBS: dict[str, tuple[str, str, Callable[[], list[click.Parameter]]]] = {
    "run": ("start:run", "Work on SPEC until its criteria hold, or a limit is reached.", _run),
    "continue": ("resume:continue_", "Resume a goal that paused or crashed.", _continue),
    "resume": ("resume:continue_", "Same as continue.", _continue),
    "status": ("commands:status", "Show the goal's criteria as a table: type, met, evidence, since.", _plain),
    "cancel": ("commands:cancel", "End the goal and delete its state files.",
               lambda: [_flag("--keep-state", help="Keep the state files.")]),
    "clean": ("clean:clean", "Delete the files of a goal that has ended; SHAPE.md stays.",
              lambda: [_flag("-y", "--yes", help="Don't ask for confirmation.")]),
    "pause": ("commands:pause", "Pause a running goal after the current iteration.", list),
    "score": ("commands:score", "Score how clear SPEC is; start nothing.",
              lambda: [*_spec(), _flag("--offline", help="Score without an agent."), *options.for_kind()]),
    "shape": ("commands:shape", "Write .loop/shape/SHAPE.md from SPEC: criteria, mustNot entries, verification.",
              lambda: [*_spec(), click.Option(["--plan"], type=click.Path(), metavar="FILE", help="The plan to use."),
                       _flag("--fresh", help="Replace an existing file."), *options.for_kind()]),
    "stop-check": ("commands:stop_check", "Print the stop hook's answer for the state file as JSON.",
                   lambda: [click.Argument(["file"], required=False)]),
    "verify": ("commands:verify", "Run the verification commands now, or change how NAME is verified.", _verify),
    "rollback": ("commands:rollback", "Restore the work tree of checkpoint K; without K, list checkpoints.",
                 lambda: [click.Argument(["k"], required=False)]),
}  # fmt: skip


goal = InOrder(
    "goal",
    commands=[_verb(name, work, about, *params()) for name, (work, about, params) in VERBS.items()],
    help="Work on a specification until its criteria hold, with evidence.\n\n"
    '`rooda goal "SPEC"` is short for `rooda goal run "SPEC"`.',
    context_settings=DASH_H,
    default="run",
)
