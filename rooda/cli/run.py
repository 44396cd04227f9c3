"""`rooda P` and `rooda run P`: start a procedure."""

from collections.abc import Sequence

import click

from rooda.cli import options
from rooda.cli.where import Where
from rooda.cli.words import WORDS
from rooda.errors import UsageProblem
from rooda.model import Json


def procedure_command(name: str, where: Where, words: Sequence[str]) -> click.Command:
    """The command of one procedure; its help speaks of it. An unknown name is refused unless -C may explain it."""
    from rooda import settings

    found = settings.load(where.workspace, where.config)
    if name in settings.resolve.names(found):
        summary = settings.resolve.summary(found, name)
    elif any(word.startswith(("-C", "--config")) for word in words):
        summary = ""
    else:
        raise _unknown(name, settings.resolve.names(found))
    return click.Command(
        name,
        params=options.for_start(),
        callback=lambda **typed: begin(name, where, typed),
        help=f"{summary or f'Run the procedure {name}.'}\n\nWhat it is made of: rooda info {name}",
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def _unknown(name: str, procedures: list[str]) -> UsageProblem:
    from rooda.settings.kinds import nearest

    near = nearest(name, [*procedures, *WORDS])
    what = f"Unknown procedure '{name}'. Run 'rooda list' to see available procedures."
    return UsageProblem(what, f"Did you mean 'rooda {near}'?" if near else "")


def begin(name: str, where: Where, typed: Json) -> int:
    from rooda.cli.start import start
    from rooda.cli.where import relocated

    return start(name, relocated(where, typed), options.asked(typed))


class _Run(click.Group):
    """`rooda run` takes a procedure's name where other groups take a command's."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        from rooda import settings

        return settings.resolve.names(settings.load(ctx.obj.workspace, ctx.obj.config))

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return procedure_command(name, ctx.obj, ("-C",))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        return args[0], procedure_command(args[0], ctx.obj, args), args[1:]


run = _Run("run", help="Run a procedure: `rooda run build` is `rooda build`.", subcommand_metavar="PROCEDURE [OPTIONS]")
