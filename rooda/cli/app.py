"""The click group: command words by table, every other word a procedure."""

import importlib
import os
import platform
from collections.abc import Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from rooda.cli.words import OPTIONS, WORDS, help_text, version_text
from rooda.errors import OK, UsageProblem
from rooda.loops.options import DASH_H, items
from rooda.settings.where import Where

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


_CONFIG = "Use FILE, not the rooda.toml found."
PLACELESS = ("tokens", "completion", "version")  # these do not care where they are


class App(click.Group):
    """Loads a verb's module when it is called, and builds a command for any procedure."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name, _ in self._rows(ctx)]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in WORDS:
            module, _, attribute = WORDS[name].target.partition(":")
            command = getattr(importlib.import_module(module), attribute)
            assert isinstance(command, click.Command)
            return command if name == "completion" else _careful(command if name in PLACELESS else _with_place(command))
        return _procedure(name, _where(ctx), ("-C",))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        ctx.obj = _where(ctx)
        return name, self.get_command(ctx, name) if name in WORDS else _procedure(name, _where(ctx), args), args[1:]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list["CompletionItem"]:
        """From the tables: TAB loads no verb and builds no command."""
        return items(self._rows(ctx), incomplete) + click.Command.shell_complete(self, ctx, incomplete)

    def _rows(self, ctx: click.Context) -> list[tuple[str, str]]:
        """Every word that may come first, and what it does."""
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


def _procedure(name: str, where: Where, words: Sequence[str]) -> click.Command:
    from rooda.loops import registry

    return registry.procedure_command(name, where, words)


def _where(ctx: click.Context) -> Where:
    """Also before any command has been found."""
    if isinstance(ctx.obj, Where):
        return ctx.obj
    return located(ctx.params.get("directory"), ctx.params.get("config"))


def _with_place(command: click.Command) -> click.Command:
    """-C and --config may stand behind any word, not only in front of it."""
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


def _careful(command: click.Command) -> click.Command:
    """Refuses to work where a procedure bears the name of a command. A shell's start-up is spared (completion)."""
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            _careful(inner)
    elif work := command.callback:

        @wraps(work)
        def careful(*words: Any, **options: Any) -> Any:
            from rooda.loops.configuration import refuse_reserved

            refuse_reserved(*_where(click.get_current_context()))
            return work(*words, **options)

        command.callback = careful
    return command


def _move(ctx: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value:
        here, path = _where(ctx), os.path.abspath(value)
        ctx.obj = here._replace(workspace=path) if parameter.name == "_directory" else here._replace(config=path)


def located(directory: str | None, config: str | None) -> Where:
    try:
        return Where(os.path.abspath(directory or "."), os.path.abspath(config) if config else None)
    except FileNotFoundError:
        raise UsageProblem("The current directory is gone.", "cd into another, or name one: rooda -C DIR …") from None


def _version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(version_text(), nl=False)
        ctx.exit(0)


@click.group(cls=App, context_settings=DASH_H, no_args_is_help=False, help=OPTIONS)
@click.option("-C", "directory", metavar="DIR", type=click.Path(exists=True, file_okay=False))
@click.option("--config", metavar="FILE", type=click.Path())
@click.option("--version", is_flag=True, callback=_version, expose_value=False, is_eager=True)
def app(directory: str | None, config: str | None) -> None:
    """Where the command works is decided when its word is found."""


# `rooda version`: what is installed.


@click.command(short_help="The version of rooda and of what it stands on.")
def version() -> int:
    """The version of rooda, of Python and of the system, for a report of a problem."""
    click.echo(version_text() + f"Python {platform.python_version()}\n{platform.system()} {platform.release()}")
    return OK
