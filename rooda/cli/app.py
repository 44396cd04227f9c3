"""Defines the `rooda` command as a click group. A word that is not in the table of commands names a procedure."""

import importlib
import os
import platform
from collections.abc import Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from rooda.cli.words import OPTIONS, SYNONYMS, WORDS, help_text, version_text
from rooda.errors import OK, UsageProblem
from rooda.loops import registry
from rooda.loops.options import DASH_H, items
from rooda.settings.where import Where, in_folder, nearest, with_typed

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


FLEET, LOCAL = "--fleet", "--local"  # after `tasks`: on many machines, on this one
_CONFIG = "Use FILE instead of the rooda.toml found."
PLACELESS = ("tokens", "completion", "version")  # commands that need no workspace


class App(click.Group):
    """Group that loads a command's module when the command is called, and creates a command for each procedure."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name, _ in self._rows(ctx)]

    def get_command(self, ctx: click.Context, name: str, rest: Sequence[str] = ()) -> click.Command | None:
        """Return the command `name`, or the command that runs the procedure `name`.

        `rest`: the words that follow it. A kind's command gets the shared verbs unless `rest` begins with one of its
        own commands.
        """
        if (name := SYNONYMS.get(name, name)) in WORDS:
            module, _, attribute = WORDS[name].target.partition(":")
            command: click.Command = getattr(importlib.import_module(module), attribute)
            if name in registry.KINDS and not _has(command, rest):
                from rooda.cli import verbs

                verbs.complete(command, name)
            if name == "completion":  # never refused, because shells run it at start-up
                return command
            if name in PLACELESS:
                return _refusing_reserved(command)
            return _refusing_reserved(_with_place(command), says_place=name != "init")
        return _procedure(name, _where(ctx), ("-C",))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        ctx.obj = _where(ctx)
        if name == "tasks":
            are_fleets, rest = _whose_tasks(args[1:])
            if are_fleets:
                command = importlib.import_module("rooda.fleet.cli_tasks").tasks
                return name, _refusing_reserved(_with_place(command), says_place=True), rest
            args = [name, *rest]
        known = name in WORDS or name in SYNONYMS
        command = self.get_command(ctx, name, args[1:]) if known else _procedure(name, _where(ctx), args)
        return name, command, args[1:]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list["CompletionItem"]:
        """Complete the names of commands and procedures without loading the commands' modules."""
        also = [(word, WORDS[name].help) for word, name in SYNONYMS.items()]
        return items([*self._rows(ctx), *also], incomplete) + click.Command.shell_complete(self, ctx, incomplete)

    def _rows(self, ctx: click.Context) -> list[tuple[str, str]]:
        """Return the names and summaries of all commands and procedures."""
        from rooda.errors import RoodaError
        from rooda.loops import configuration
        from rooda.settings import procedures

        words = [(name, word.help) for name, word in WORDS.items()]
        try:
            here = _where(ctx)
            return words + procedures.summaries(configuration.load(here.workspace, here.config))
        except RoodaError:
            return words

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(help_text())


def _whose_tasks(args: list[str]) -> tuple[bool, list[str]]:
    """Return whether `rooda tasks ARGS` means the fleet's tasks, and the words of ARGS without --fleet and --local."""
    end = args.index("--") if "--" in args else len(args)
    words = [*(word for word in args[:end] if word not in (FLEET, LOCAL)), *args[end:]]
    if FLEET in args[:end] or LOCAL in args[:end]:
        return FLEET in args[:end], words
    from rooda.settings import layers

    return layers.users_own("fleet", os.environ).get("default") is True, words


def _procedure(name: str, where: Where, words: Sequence[str]) -> click.Command:
    return registry.procedure_command(name, where, words)


def _where(ctx: click.Context) -> Where:
    if isinstance(ctx.obj, Where):
        return ctx.obj
    return located(ctx.params.get("directory"), ctx.params.get("config"))


def _with_place(command: click.Command) -> click.Command:
    """Add -C and --config to a command, so that they may also follow its name."""
    if not any("-C" in parameter.opts for parameter in command.params):
        folder = click.Path(exists=True, file_okay=False)
        how: dict[str, Any] = {"expose_value": False, "callback": _move}
        command.params += [
            click.Option(["-C", "_directory"], metavar="DIR", type=folder, help="Work in DIR.", **how),
            click.Option(["--config", "_config"], metavar="FILE", type=click.Path(), help=_CONFIG, **how),
        ]
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        _with_place(inner)
    return command


def _has(group: click.Command, rest: Sequence[str]) -> bool:
    """True if the first of these words is a command of the group."""
    return isinstance(group, click.Group) and len(rest) > 0 and rest[0] in group.commands


def _refusing_reserved(command: click.Command, says_place: bool = False) -> click.Command:
    """Make a command fail if a configured procedure has the name of a command.

    With `says_place`, the command also prints the workspace if that is not the current directory.
    """
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            _refusing_reserved(inner, says_place)
    elif work := command.callback:

        @wraps(work)
        def checked(*words: Any, **options: Any) -> Any:
            from rooda.loops.configuration import refuse_reserved

            ctx = click.get_current_context()
            here = _where(ctx)
            refuse_reserved(here.workspace, here.config)
            if says_place and here.note and not ctx.invoked_subcommand:
                from rooda.views.say import say_place

                say_place(with_typed(here, options))
            return work(*words, **options)

        command.callback = checked
    return command


def _move(ctx: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value:
        here = _where(ctx)
        is_folder = parameter.name == "_directory"
        ctx.obj = in_folder(here, value) if is_folder else here._replace(config=os.path.abspath(value))


def located(directory: str | None, config: str | None) -> Where:
    try:
        config = os.path.abspath(config) if config else None
        if directory:
            return Where(os.path.abspath(directory), config)
        return nearest(os.getcwd(), config, _has_unfinished_run)
    except FileNotFoundError:
        raise UsageProblem("The current directory was deleted.", "cd to another, or name one: rooda -C DIR …") from None


def _has_unfinished_run(workspace: str) -> bool:
    from rooda.processes import lock

    return any(registry.resumable(workspace)) or any(lock.is_held(loop.lock) for loop in registry.known(workspace))


def _version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(version_text(), nl=False)
        ctx.exit(0)


@click.group(cls=App, context_settings=DASH_H, no_args_is_help=False, help=OPTIONS)
@click.option("-C", "directory", metavar="DIR", type=click.Path(exists=True, file_okay=False))
@click.option("--config", metavar="FILE", type=click.Path())
@click.option("--version", is_flag=True, callback=_version, expose_value=False, is_eager=True)
def app(directory: str | None, config: str | None) -> None:
    """Do nothing: subcommands find the workspace and the settings themselves."""


@click.command(short_help="Print the versions of rooda, Python and the system.")
def version() -> int:
    """Print the versions of rooda, Python and the system, for bug reports."""
    click.echo(version_text() + f"Python {platform.python_version()}\n{platform.system()} {platform.release()}")
    return OK
