"""The options of a run, said once: for `rooda P`, `rooda run P` and `rooda resume P`."""

from collections.abc import Callable
from typing import Any, NamedTuple

import click

from rooda.errors import UsageProblem
from rooda.model import Json
from rooda.settings.kinds import shown
from rooda.settings.schema import LOOP
from rooda.terms import PHASES


class Asked(NamedTuple):
    """What was typed: `flags` only where something was."""

    flags: Json
    dry_run: bool = False
    opening: str = ""  # resume | fresh | ""
    json: bool = False
    verbose: bool = False
    quiet: bool = False
    worktree: bool = False
    kept: tuple[str, ...] = ()  # words of earlier starts that still hold, see cli/as_started.py


_FOLDER = click.Path(exists=True, file_okay=False)


class Number(click.ParamType):  # type: ignore[type-arg]  # generic only in newer click
    """A number of [loop], judged and refused in the words of the settings."""

    name = "number"

    def __init__(self, key: str) -> None:
        self._kind = LOOP[key].kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            number = self._kind.read(value)
        except ValueError:
            self.fail(f"{self._kind.expected}, got {shown(value)}.", param, ctx)
        for fault in self._kind.faults(number):
            self.fail(f"{fault.text}.", param, ctx)
        return number


def _limit() -> list[click.Parameter]:
    return [
        _number("-n", "--max-iterations", key="default_iterations", help="Stop after N iterations; 0 = unlimited."),
        click.Option(["-u", "--unlimited"], is_flag=True, help="The same as --max-iterations 0."),
        _number("--failure-threshold", help="Abort after N failures in a row."),
        _number("--token-budget", help="Warn of a prompt above N tokens; 0 = never."),
        _number("--iteration-timeout", help="End an agent call after N seconds; 0 = never."),
        _number("--idle-timeout", help="End it after N seconds without output."),
        *_limits(),
    ]


def _limits() -> list[click.Parameter]:
    return [
        _number("--max-cost", help="Start no further agent after N dollars, resumes counted."),
        _number("--max-tokens", help="… after N tokens."),
        _number("--max-duration", help="… after N seconds, or a time such as 2h30m."),
    ]


def _number(*names: str, key: str = "", help: str) -> click.Option:
    setting = key or names[0].strip("-").replace("-", "_")
    return click.Option(names, type=Number(setting), metavar="N", help=help)


def _agent() -> list[click.Parameter]:
    return [
        click.Option(["--agent"], metavar="NAME", help="An agent of the settings: claude, codex, demo, …"),
        click.Option(["--ai-cmd-alias"], metavar="NAME", help="Older word for --agent.", hidden=True),
        click.Option(["--ai-cmd"], metavar="COMMAND", help="Any command that reads a prompt on stdin."),
        click.Option(["--model"], metavar="NAME", help="Model, as [models] of the settings maps it."),
    ]


def _prompt() -> list[click.Parameter]:
    phases: list[click.Parameter] = [
        click.Option([f"--{phase}"], multiple=True, metavar="TEXT|FILE", help=f"Replace the {phase} phase.")
        for phase in PHASES
    ]
    return [
        *phases,
        click.Option(["-c", "--context"], multiple=True, metavar="TEXT|FILE", help="Add to the prompt; repeatable."),
        click.Option(["--param"], multiple=True, metavar="NAME=VALUE", help="Value of a {{NAME}} placeholder."),
        click.Option(["--preamble/--no-preamble"], default=None, help="Say before the prompt what rooda is."),
    ]


def _way() -> list[click.Parameter]:
    return [
        click.Option(["--no-gates"], is_flag=True, help="Run no quality gates."),
        click.Option(["--safety"], type=click.Choice(["snapshot", "off"]), help="Save the work tree or not."),
        click.Option(["-v", "--verbose"], is_flag=True, help="Show the agent's output and details."),
        click.Option(["-q", "--quiet"], is_flag=True, help="Only warnings and errors."),
        click.Option(["--log-level"], type=click.Choice(["debug", "info", "warn", "error"]), help="How much is said."),
        click.Option(["--json"], is_flag=True, help="Events as JSON lines instead of text."),
        click.Option(["--detach"], is_flag=True, help="Run in the background; see status, logs -f, stop."),
        click.Option(["-C", "directory"], metavar="DIR", type=_FOLDER, help="Work in DIR."),
        click.Option(["--config"], metavar="FILE", type=click.Path(), help="Use FILE instead of the rooda.toml found."),
    ]


def for_start() -> list[click.Parameter]:
    return [
        *_limit(),
        *_agent(),
        *_prompt(),
        click.Option(["-d", "--dry-run"], is_flag=True, help="Show the prompt and stop; no agent, no state."),
        click.Option(["--resume"], is_flag=True, help="Go on with an earlier run if there is one."),
        click.Option(["--fresh"], is_flag=True, help="Start over whatever was there."),
        worktree(),
        *_way(),
    ]


def worktree() -> click.Option:
    return click.Option(["--worktree"], is_flag=True, help="Work in a new git worktree, on a new branch.")


def for_resume() -> list[click.Parameter]:
    return [*_limit(), *_agent(), *_prompt(), *_way()]


def for_kind() -> list[click.Parameter]:
    """What the commands of reflex, flow and goal share: agent, times, and how it is shown."""
    times = [option for option in _limit() if option.name in ("iteration_timeout", "idle_timeout", "token_budget")]
    return [*_agent(), *times, *_limits(), *(option for option in _way() if option.name != "no_gates")]


def asked(typed: Json) -> Asked:
    """The typed options as settings' flags and the rest. UsageProblem for what can't go together."""
    if typed["verbose"] and typed["quiet"]:
        raise UsageProblem("--verbose and --quiet are mutually exclusive.")
    if typed.get("resume") and typed.get("fresh"):
        raise UsageProblem("--resume and --fresh are mutually exclusive.")
    if typed.get("resume") and typed.get("worktree"):
        raise UsageProblem("--resume and --worktree are mutually exclusive: a new worktree has no earlier run.")
    if typed.get("unlimited") and typed["max_iterations"] is not None:
        raise UsageProblem("--unlimited and --max-iterations are mutually exclusive.")
    flags: Json = {}
    for name, take in _FLAGS.items():
        value = typed.get(name)
        untyped = value is None or value == () or (value is False and name != "preamble")  # 0 is typed
        if not untyped:
            flags[take[0]] = take[1](value)
    opening = "resume" if typed.get("resume") else "fresh" if typed.get("fresh") else ""
    how = (typed["json"], typed["verbose"], typed["quiet"], typed.get("worktree", False))
    return Asked(flags, typed.get("dry_run", False), opening, *how, typed.get("kept", ()))


def _parameters(pairs: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise UsageProblem(f"--param {pair!r} is not of the form NAME=VALUE.")
        found[name] = value
    return found


def _same(value: Any) -> Any:
    return value


_FLAGS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "max_iterations": ("default_iterations", _same),
    "unlimited": ("default_iterations", lambda _: 0),
    **{name: (name, _same) for name in ("failure_threshold", "token_budget", "iteration_timeout", "idle_timeout")},
    **{name: (name, _same) for name in ("max_cost", "max_tokens", "max_duration")},
    **{name: (name, _same) for name in ("ai_cmd", "model", "preamble", "no_gates", "safety", "log_level")},
    "ai_cmd_alias": ("agent", _same),
    "agent": ("agent", _same),
    **{name: (name, list) for name in (*PHASES, "context")},
    "param": ("parameters", _parameters),
}
