"""`rooda P` and `rooda run P`: start a procedure."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from rooda.agents import command, preflight
from rooda.base import files
from rooda.base.json import Json
from rooda.errors import OK, ConfigProblem, UsageProblem
from rooda.loops import configuration, options
from rooda.loops.options import DASH_H, RunOptions, items, tab_procedures
from rooda.loops.procedure import effects, settings
from rooda.loops.procedure.model import PHASES, Procedure
from rooda.run import tokens
from rooda.settings import agents, layers, lookup, procedures
from rooda.settings.where import Where, where
from rooda.settings.where import where as place_of
from rooda.views.say import warned

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from rooda.settings.layers import Settings


def procedure_command(name: str, where: Where, words: Sequence[str]) -> click.Command:
    """The command of one procedure; its help speaks of it. An unknown name is refused unless -C may explain it."""
    from rooda.loops import configuration
    from rooda.settings import procedures

    found = configuration.load(where.workspace, where.config)
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
    from rooda.loops.procedure.start import prepared
    from rooda.settings.where import relocated

    there, asked = relocated(where, typed), options.run_options(typed)
    if asked.opening == "resume" and not asked.dry_run:
        return _gone_on(name, there, typed)
    found, procedure = prepared(name, there, asked, known if there == where else None)
    if asked.dry_run:
        pass  # moved

        return show(found, procedure, there, asked)
    from rooda.loops.procedure.start import start

    return start(found, procedure, there, typed)


def _gone_on(name: str, where: Where, typed: Json) -> int:
    """With --resume: as it was started, if something is there to go on with."""
    from rooda.loops.procedure.kind import can_resume
    from rooda.loops.procedure.start import prepared, start
    from rooda.loops.procedure.store import Place
    from rooda.loops.registry import OODA
    from rooda.loops.remembered import taken_over

    if can_resume(Place(where.workspace, name)):
        where, typed = taken_over(where, typed, OODA, name)
    return start(*prepared(name, where, options.run_options(typed)), where, typed)


class _Run(click.Group):
    """`rooda run` takes a procedure's name where other groups take a command's."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        from rooda.loops import configuration
        from rooda.settings import procedures

        here = place_of(ctx)
        return procedures.names(configuration.load(here.workspace, here.config))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        from rooda.loops import configuration
        from rooda.settings import procedures

        here = place_of(ctx)
        known = items(procedures.summaries(configuration.load(here.workspace, here.config)), incomplete)
        return known + click.Command.shell_complete(self, ctx, incomplete)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return procedure_command(name, place_of(ctx), ("-C",))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        return args[0], procedure_command(args[0], place_of(ctx), args), args[1:]


run = _Run("run", help="Run a procedure: `rooda run build` is `rooda build`.", subcommand_metavar="PROCEDURE [OPTIONS]")


# `--dry-run`: what would be done, and the whole prompt. Reads no state, writes nothing, starts no agent.


def show(found: "layers.Settings", procedure: Procedure, where: Where, asked: RunOptions) -> int:
    """Exit 0 means: ready to run. A prompt that is too long is shown, and then refused."""
    setup = procedure.setup
    if setup.agent is None:
        raise ConfigProblem(agents.no_agent_text(found))
    preflight.find_program(setup.agent, where.workspace)
    text = effects.prompt_text(procedure, 1)
    preflight.check(setup.agent, "")
    count, exact = tokens.count(text, setup.token_encoding)
    about = "" if exact else "~"
    budget = f"{setup.token_budget:,}" if setup.token_budget else "unlimited"
    head = (
        f"[DRY RUN] Procedure: {procedure.name}\n"
        f"[DRY RUN] Would execute with: {command.describe(setup.agent)}\n"
        f"[DRY RUN] Token count: {about}{count:,} / {budget} budget\n\n"
    )
    sys.stdout.buffer.write(head.encode("utf-8", "replace") + files.to_bytes(text))
    sys.stdout.flush()
    if 0 < setup.token_budget < count:
        click.echo(f"WARNING: Prompt exceeds token budget: {about}{count} > {setup.token_budget}", err=True)
    preflight.check_size(setup.agent, text)  # refused like a start, but seen
    if asked.verbose:
        for key, value, origin in lookup.decided(found, procedure.name, asked.flags):
            click.echo(f"{key}: {value} (from: {origin})", err=True)
    return OK


# `rooda info P`: what a procedure is made of.
_SHOWN_ABOVE = ("display", "summary", "description", *PHASES)


@click.command(short_help="What one procedure is made of.")
@click.argument("procedure", shell_complete=tab_procedures)
@click.pass_context
def info(ctx: click.Context, procedure: str) -> int:
    """What PROCEDURE is for, the prompt fragments of its four phases, and its own settings."""
    here = where(ctx)
    found = warned(configuration.load(here.workspace, here.config))
    resolved = settings.procedure(found, procedure, {})
    own = procedures.own(found, procedure)
    click.echo("\n".join([*_about(resolved), "", *_phases(resolved), "", *_configuration(own)]))
    return OK


def _about(procedure: Procedure) -> list[str]:
    rows = [f"Procedure: {procedure.name}", f"Display Name: {procedure.display or procedure.name}"]
    if procedure.summary:
        rows.append(f"Summary: {procedure.summary}")
    if procedure.description:
        rows += ["Description:", *(f"  {line}" for line in procedure.description.splitlines())]
    return rows


def _phases(procedure: Procedure) -> list[str]:
    rows = ["OODA Phases:"]
    for phase in procedure.phases:
        count = len(phase.fragments)
        rows.append(f"  {phase.name.capitalize() + ':':<8} {count} fragment{'' if count == 1 else 's'}")
        rows += [f"    {fragment.shown or 'text'}" for fragment in phase.fragments]
    return rows


def _configuration(own: dict[str, object]) -> list[str]:
    rows = [f"  {key} = {value}" for key, value in own.items() if key not in _SHOWN_ABOVE]
    return ["Configuration:", *(rows or ["  (uses global defaults)"])]


# `rooda list`: the procedures there are.


@click.command("list", short_help="The procedures there are.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
@click.pass_context
def list_(ctx: click.Context, as_json: bool) -> int:
    """The procedures there are, yours and the built-in ones, with a line about each."""
    here = where(ctx)
    found = warned(configuration.load(here.workspace, here.config))
    rows = {name: procedures.summary(found, name) for name in procedures.names(found)}
    if as_json:
        import json

        click.echo(json.dumps([{"name": name, "summary": summary} for name, summary in rows.items()]))
        return OK
    click.echo("Available procedures:")
    for name, summary in rows.items():
        cut = summary if len(summary) <= 80 else summary[:77] + "..."
        click.echo(f"  {name:<20} {cut}".rstrip())
    return OK
