"""`rooda P` and `rooda run P`: start a procedure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from rooda.base.json import Json
from rooda.errors import UsageProblem
from rooda.loops import options
from rooda.loops.options import DASH_H, items
from rooda.settings.where import Where, warned
from rooda.settings.where import where as place_of

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from rooda.settings.layers import Settings


def procedure_command(name: str, where: Where, words: Sequence[str]) -> click.Command:
    """The command of one procedure; its help speaks of it. An unknown name is refused unless -C may explain it."""
    from rooda.settings import layers, procedures

    found = layers.load(where.workspace, where.config)
    if name in procedures.names(found):
        summary = procedures.summary(found, name)
    elif any(word.startswith(("-C", "--config")) for word in words):
        summary = ""
    else:
        raise _unknown(name, warned(found))
    return click.Command(
        name,
        params=options.for_start(),
        callback=lambda **typed: begin(name, where, typed, found),
        help=f"{summary or f'Run the procedure {name}.'}\n\nWhat it is made of: rooda info {name}",
        context_settings=DASH_H,
    )


def _unknown(name: str, found: "Settings") -> UsageProblem:
    from rooda.settings import agents, procedures
    from rooda.settings.schema import COMMANDS
    from rooda.settings.types import nearest

    near = nearest(name, [*procedures.names(found), *COMMANDS])
    near = f"build --agent {name}" if name in agents.agents(found) else near
    near = near or ("build --context …" if " " in name else "")
    return procedures.unknown(name, f"rooda {near}" if near else "")


def begin(name: str, where: Where, typed: Json, known: "Settings") -> int:
    """Start the procedure; `known` are the settings of `where`. A dry-run does without what only a run needs."""
    from rooda.loops.procedure.prepare import prepared
    from rooda.settings.where import relocated

    there, asked = relocated(where, typed), options.asked(typed)
    if asked.opening == "resume" and not asked.dry_run:
        return _gone_on(name, there, typed)
    found, procedure = prepared(name, there, asked, known if there == where else None)
    if asked.dry_run:
        from rooda.loops.procedure.dry import show

        return show(found, procedure, there, asked)
    from rooda.loops.procedure.start import start

    return start(found, procedure, there, typed)


def _gone_on(name: str, where: Where, typed: Json) -> int:
    """With --resume: as it was started, if something is there to go on with."""
    from rooda.loops.procedure.kind import can_resume
    from rooda.loops.procedure.prepare import prepared
    from rooda.loops.procedure.start import start
    from rooda.loops.procedure.store import Place
    from rooda.loops.registry import OODA
    from rooda.loops.remembered import taken_over

    if can_resume(Place(where.workspace, name)):
        where, typed = taken_over(where, typed, OODA, name)
    return start(*prepared(name, where, options.asked(typed)), where, typed)


class _Run(click.Group):
    """`rooda run` takes a procedure's name where other groups take a command's."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        from rooda.settings import layers, procedures

        here = place_of(ctx)
        return procedures.names(layers.load(here.workspace, here.config))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        from rooda.settings import layers, procedures

        here = place_of(ctx)
        known = items(procedures.summaries(layers.load(here.workspace, here.config)), incomplete)
        return known + click.Command.shell_complete(self, ctx, incomplete)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return procedure_command(name, place_of(ctx), ("-C",))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        return args[0], procedure_command(args[0], place_of(ctx), args), args[1:]


run = _Run("run", help="Run a procedure: `rooda run build` is `rooda build`.", subcommand_metavar="PROCEDURE [OPTIONS]")
