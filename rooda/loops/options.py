"""Creates the options of all commands that run a loop, from the definitions of the settings."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from rooda.base.json import Json
from rooda.errors import UsageProblem
from rooda.settings.schema import PROCEDURE, SHARED
from rooda.settings.types import FLAG, PARAMETERS, Key, Option, ValueType, shown
from rooda.settings.where import Where, where, with_typed

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from rooda.settings.layers import Settings


class RunOptions(NamedTuple):
    """Options given on the command line. `flags`: values that override settings, keyed by setting."""

    flags: Json
    dry_run: bool = False
    opening: str = ""  # resume | fresh | ""
    json: bool = False
    verbose: bool = False
    quiet: bool = False
    worktree: bool = False
    remembered: tuple[str, ...] = ()  # options reused from an earlier start, see loops/remembered.py
    untrusted: bool = False  # ignore commands and programs configured in the workspace's files
    warn_unknown: bool = False  # warn about misspelled keys instead of refusing them
    task: str = ""  # a procedure's argument TASK; also the first item of the option `context`


_click: Any
for _click in (click.core, click.decorators, click.exceptions, click.types):
    _click._ = str  # click would look for a translation of each message, and load the large module `locale` for it

_FOLDER = click.Path(exists=True, file_okay=False)


class Value(click.ParamType):  # type: ignore[type-arg]  # generic only in newer click
    """Click parameter type of a setting: checks a value by the same rules as in a settings file."""

    name = "value"

    def __init__(self, value_type: ValueType) -> None:
        self._type = value_type

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            read = self._type.read(value)
        except ValueError:
            self.fail(f"{self._type.expected}, got {shown(value)}.", param, ctx)
        for fault in self._type.faults(read):
            self.fail(f"{fault.text}.", param, ctx)
        return read


def of(keys: Mapping[str, Key], group: str, **types: click.ParamType) -> list[click.Option]:  # type: ignore[type-arg]
    """Return the options for a group of settings. `types` overrides the value type of some settings."""
    return [_option(key, row.flag, row, types.get(key)) for key, row in keys.items() if row.flag and row.group == group]


def _option(key: str, flag: Option, row: Key, own: click.ParamType | None) -> click.Option:  # type: ignore[type-arg]
    option = partial(click.Option, flag.named(key), help=flag.help, hidden=flag.hidden)
    if flag.switch or row.type is FLAG:
        return option(is_flag=True, default=None if flag.both else False)
    if row.type.choices:
        return option(type=click.Choice(row.type.choices))
    if flag.many or row.type.read is str:
        return option(multiple=flag.many, metavar=flag.metavar or None, shell_complete=_TAB.get(key))
    return option(type=own or Value(row.type), metavar=flag.metavar or "N")


def tab_procedures(ctx: click.Context, _: click.Parameter, incomplete: str) -> list["CompletionItem"]:
    from rooda.settings import procedures

    return items(procedures.summaries(_settings(ctx)), incomplete)


def tab_agents(ctx: click.Context, _: click.Parameter, incomplete: str) -> list["CompletionItem"]:
    from rooda.settings import agents

    known = _settings(ctx)
    tables = known.agents()
    return items(((name, tables.get(name, {}).get("summary", "")) for name in agents.agents(known)), incomplete)


def _tab_models(ctx: click.Context, _: click.Parameter, incomplete: str) -> list["CompletionItem"]:
    return items(((name, str(full)) for name, full in _settings(ctx).table("models").items()), incomplete)


def _settings(ctx: click.Context) -> "Settings":
    from rooda.loops import configuration

    here = place_of_tab(ctx)
    return configuration.load(here.workspace, here.config)


_TAB = {"agent": tab_agents, "ai_cmd_alias": tab_agents, "model": _tab_models}


def _limit(keys: Mapping[str, Key]) -> list[click.Parameter]:
    return [*of(keys, "call"), *of(keys, "budget")]


def _way(keys: Mapping[str, Key]) -> list[click.Parameter]:
    return [
        *of(keys, "way"),
        click.Option(["-v", "--verbose"], is_flag=True, help="Show the agent's output and details."),
        click.Option(["-q", "--quiet"], is_flag=True, help="Show only warnings and errors."),
        *of(keys, "screen"),
        click.Option(["--json"], is_flag=True, help="Print events as JSON lines instead of text."),
        click.Option(
            ["--untrusted"], is_flag=True, help="Ignore commands and programs configured in the workspace's files."
        ),
        click.Option(["--detach"], is_flag=True, help="Run in the background; control it with rooda logs -f, stop, …."),
        click.Option(["-C", "directory"], metavar="DIR", type=_FOLDER, help="Work in DIR."),
        click.Option(["--config"], metavar="FILE", type=click.Path(), help="Use FILE instead of rooda.toml."),
    ]


def for_start() -> list[click.Parameter]:
    return [
        *_numbers(),
        *of(PROCEDURE, "agent"),
        *of(PROCEDURE, "prompt"),
        click.Option(["-d", "--dry-run"], is_flag=True, help="Show the prompt and exit; run no agent, save no state."),
        click.Option(["--resume"], is_flag=True, help="Resume an interrupted run if there is one."),
        click.Option(["-y", "--yes"], is_flag=True, help="Answer with yes: resume an interrupted run if there is one."),
        click.Option(["--fresh"], is_flag=True, help="Start over, even if a run was interrupted."),
        worktree(),
        *_way(PROCEDURE),
    ]


def _numbers() -> list[click.Parameter]:
    iterations, *others = _limit(PROCEDURE)
    unlimited = click.Option(["-u", "--unlimited"], is_flag=True, help="Same as --max-iterations 0.")
    return [iterations, unlimited, *others]


def worktree() -> click.Option:
    return click.Option(["--worktree"], is_flag=True, help="Work in a new git worktree, on a new branch.")


def for_resume() -> list[click.Parameter]:
    yes = click.Option(["-y", "--yes"], is_flag=True, help="If a goal waits for an answer, answer yes.")
    return [*_numbers(), *of(PROCEDURE, "agent"), *of(PROCEDURE, "prompt"), yes, *_way(PROCEDURE)]


def for_kind() -> list[click.Parameter]:
    """Return the options that all kinds except procedures share: agent, limits and output."""
    return [*of(SHARED, "agent"), *_limit(SHARED), *_way(SHARED)]


def run_options(typed: Json) -> RunOptions:
    """Return the options of a command line as RunOptions; raise UsageProblem if some are mutually exclusive."""
    if typed["verbose"] and typed["quiet"]:
        raise UsageProblem("--verbose and --quiet are mutually exclusive.")
    if typed.get("resume") and typed.get("fresh"):
        raise UsageProblem("--resume and --fresh are mutually exclusive.")
    if typed.get("resume") and typed.get("worktree"):
        raise UsageProblem("--resume and --worktree are mutually exclusive: a new worktree has no earlier run.")
    if typed.get("unlimited") and typed["max_iterations"] is not None:
        raise UsageProblem("--unlimited and --max-iterations are mutually exclusive.")
    flags = flags_of(PROCEDURE, typed)
    if typed.get("unlimited"):
        flags["default_iterations"] = 0
    opening = "resume" if typed.get("resume") else "fresh" if typed.get("fresh") else ""
    how = (typed["json"], typed["verbose"], typed["quiet"], typed.get("worktree", False))
    return RunOptions(
        flags,
        typed.get("dry_run", False),
        opening,
        *how,
        typed.get("remembered", ()),
        typed.get("untrusted", False),
        typed.get("warn_unknown", False),
        typed.get("task") or "",
    )


def context_of(parameters: list[click.Parameter]) -> click.Context:
    """Return a click context with which an earlier command line can be parsed again."""
    return click.Context(click.Command("start", params=parameters), ignore_unknown_options=True)


def parsed(context: click.Context, words: Iterable[str]) -> Json:
    """Parse the words of an earlier command line into options; {} if this version of rooda can't."""
    try:
        typed, _, _ = context.command.make_parser(context).parse_args([*words])
    except click.UsageError:
        return {}
    return dict(typed)


def cast(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Convert the value to the parameter's type; raise ValueError if it is invalid."""
    try:
        return parameter.type_cast_value(context, value)
    except click.BadParameter as problem:
        raise ValueError(problem.message) from None


def flags_of(keys: Mapping[str, Key], typed: Json) -> Json:
    """Return the values of these settings that were given on the command line."""
    flags: Json = {}
    for key, row in keys.items():
        value = typed.get(row.flag.parameter(key)) if row.flag else None
        if row.flag and not is_omitted(value, row.flag.both):
            flags.setdefault(row.flag.sets or key, _read(row, value))
    return flags


def is_omitted(value: Any, both: bool) -> bool:
    """True if the option was not given. `both`: it also has a --no-… form, so the value False means it was given."""
    return value is None or value == () or (value is False and not both)


def _read(row: Key, value: Any) -> Any:
    if row.type is PARAMETERS:
        return _parameters(value)
    return list(value) if row.flag and row.flag.many else value


def _parameters(pairs: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise UsageProblem(f"--param {pair!r} is not of the form NAME=VALUE.")
        found[name] = value
    return found


# Shared by all groups of commands
DASH_H = {"help_option_names": ["-h", "--help"]}  # context settings of a group


SYNONYMS = {"log": "logs", "logs": "log", "clean": "prune", "prune": "clean"}  # each works where the other is defined


class InOrder(click.Group):
    """A group whose help lists commands in the order of their definition, without their synonyms.

    `default` is the command that is meant if the first word is a task, as in `rooda goal "Make it"`.
    """

    def __init__(self, *args: Any, default: str = "", **how: Any) -> None:
        super().__init__(*args, **how)
        self.default = default

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return self.commands.get(name) or self.commands.get(SYNONYMS.get(name, ""))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {word for option in self.get_params(ctx) for word in option.opts}
        first = args[0] if args else ""
        if first[:1] == "-" and not {first, first[:2], first.partition("=")[0]} & own:  # rooda goal --file SPEC
            args = [self.default, *args] if self.default else args
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.default and is_task(args[0]):
            args = [self.default, *args]
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        known = [(name, command.get_short_help_str()) for name, command in self.commands.items()]
        also = [(SYNONYMS[name], about) for name, about in known if SYNONYMS.get(name, name) not in self.commands]
        return super().shell_complete(ctx, incomplete) + items(also, incomplete)


def is_task(word: str) -> bool:
    """True if the argument must be a task: it has several words or none, so it can't be the name of a command."""
    return len(word.split()) != 1


def place_of_tab(ctx: click.Context) -> Where:
    """Return the workspace of the command line that the shell is completing."""
    return with_typed(where(ctx), ctx.params)


def items(offered: Iterable[tuple[str, str]], incomplete: str) -> "list[CompletionItem]":
    """Return shell completions for the offered names that begin with `incomplete`, each with its description."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(name, help=about) for name, about in dict(offered).items() if name.startswith(incomplete)]
