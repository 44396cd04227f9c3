"""Defines the commands for procedures: `rooda P`, `rooda run P`, `rooda info`, `rooda list`."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from rooda.agents import command, preflight
from rooda.base import files
from rooda.base.json import Json
from rooda.base.text import counted
from rooda.errors import OK, ConfigProblem, RoodaError, UsageProblem
from rooda.loops import configuration, options
from rooda.loops.options import DASH_H, RunOptions, items, tab_procedures
from rooda.loops.procedure import effects, gates, settings
from rooda.loops.procedure.model import PHASES, Procedure
from rooda.run import tokens
from rooda.settings import agents, layers, lookup, procedures
from rooda.settings.where import Where, where
from rooda.views.say import say, say_bytes, say_place, warned

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from rooda.settings.layers import Settings


class _Start(click.Command):
    """A procedure's command. It adds -n to the long options; otherwise click first searches them for similar names."""

    def make_parser(self, ctx: click.Context) -> Any:
        parser: Any = super().make_parser(ctx)
        parser._long_opt |= parser._short_opt
        return parser


def procedure_command(name: str, where: Where, words: Sequence[str]) -> click.Command:
    """Return a procedure's command.

    Raise UsageProblem for an unknown name, unless `words` contains -C or --config, whose settings may define it.
    """
    found = configuration.load(where.workspace, where.config)
    if name in procedures.names(found):
        summary = procedures.summary(found, name)
    elif any(word.startswith(("-C", "--config")) for word in words):
        summary = ""
    else:
        raise _unknown(name, warned(found))
    return _Start(
        name,
        params=[click.Argument(["task"], required=False), *options.for_start()],
        callback=lambda **typed: begin(name, where, typed, found),
        help=f"{summary or f'Run the procedure {name}.'}\n\nIts phases and settings: rooda info {name}",
        context_settings=DASH_H,
    )


def _unknown(name: str, found: "Settings") -> UsageProblem:
    from rooda.settings.schema import COMMANDS
    from rooda.settings.types import nearest

    near = f"build --context-file {name}" if os.sep in name or os.path.isfile(name) else ""
    near = near or nearest(name, [*procedures.names(found), *COMMANDS])
    near = f"build --agent {name}" if name in agents.agents(found) else near
    near = near or ("build --context …" if " " in name else "")
    return procedures.unknown(name, f"rooda {near}" if near else "")


def begin(name: str, where: Where, typed: Json, known: "Settings") -> int:
    """Run, resume or dry-run the procedure. `known`: the settings already loaded for `where`."""
    from rooda.settings.where import with_typed

    if typed["task"] is not None:
        if not typed["task"].strip():
            raise UsageProblem("The task is empty.", "Describe what the loop should do.")
        typed = {**typed, "context": (typed["task"], *typed["context"])}
    if typed["yes"] and not (typed["fresh"] or typed["worktree"]):
        typed = {**typed, "resume": True}
    there, asked = with_typed(where, typed), options.run_options(typed)
    say_place(there)
    if asked.opening == "resume" and not asked.dry_run:
        return _resume_or_start(name, there, typed)
    found, procedure = settings.prepared(name, there, asked, known if there == where else None)
    if asked.dry_run:
        return dry_run(found, procedure, there, asked)
    from rooda.loops.procedure.start import start

    return start(found, procedure, there, typed)


def _resume_or_start(name: str, where: Where, typed: Json) -> int:
    """Run `rooda P --resume`: resume with the options of the interrupted run, or start if there is none."""
    from rooda.loops.procedure.kind import can_resume
    from rooda.loops.procedure.start import start
    from rooda.loops.procedure.store import Place
    from rooda.loops.registry import OODA
    from rooda.loops.remembered import with_remembered

    if can_resume(Place(where.workspace, name)):
        where, typed = with_remembered(where, typed, OODA, name)
    return start(*settings.prepared(name, where, options.run_options(typed)), where, typed)


class _Run(click.Group):
    """A command group whose subcommands are the procedures."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        here = where(ctx)
        return procedures.names(configuration.load(here.workspace, here.config))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        here = where(ctx)
        known = items(procedures.summaries(configuration.load(here.workspace, here.config)), incomplete)
        return known + click.Command.shell_complete(self, ctx, incomplete)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return procedure_command(name, where(ctx), ("-C",))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        return args[0], procedure_command(args[0], where(ctx), args), args[1:]


run = _Run("run", help="Run a procedure: `rooda run build` is `rooda build`.", subcommand_metavar="PROCEDURE [OPTIONS]")


def dry_run(found: "layers.Settings", procedure: Procedure, where: Where, asked: RunOptions) -> int:
    """Print what a run would do and its whole prompt, without reading state, writing files or starting an agent.

    A missing agent is only reported. A prompt that is too long for the agent is printed before the error.
    """
    setup = procedure.setup
    refusals = _refusals(found, procedure := gates.with_gates(found, procedure), where.workspace)
    procedure = gates.without_secrets(procedure, where.workspace)
    text = effects.prompt_text(where.workspace, procedure, 1, gates.first_status(procedure))
    count, exact = tokens.count(text, setup.token_encoding)
    about = "" if exact else "~"
    budget = f"{setup.token_budget:,}" if setup.token_budget else "unlimited"
    lines = [
        f"Procedure: {procedure.name}",
        f"Would execute with: {command.describe(setup.agent) if setup.agent else 'no agent'}",
        f"Token count: {about}{count:,} / {budget} budget{_without_commands(procedure)}",
        *(f"Quality gate {gates.described(gate)}" for gate in procedure.gates or ()),
        *gates.left_out(procedure),
        *(f"A start would be refused: {each}" for each in refusals),
    ]
    head = "".join(f"[DRY RUN] {line}\n" for line in lines)
    say_bytes(f"{head}\n".encode("utf-8", "replace") + files.to_bytes(text))
    if 0 < setup.token_budget < count:
        say(f"WARNING: Prompt exceeds token budget: {about}{count} > {setup.token_budget}", to_stderr=True)
    if setup.agent:
        preflight.check_size(setup.agent, text)
    if asked.verbose:
        for key, value, origin in lookup.decided(found, procedure.name, asked.flags):
            say(f"{key}: {value} (from: {origin})", to_stderr=True)
    return OK


def _without_commands(procedure: Procedure) -> str:
    count = sum(bool(fragment.command) for phase in procedure.phases for fragment in phase.fragments)
    return f", without the output of {counted(count, 'command')}" if count else ""


def _refusals(found: "layers.Settings", procedure: Procedure, workspace: str) -> list[str]:
    """Return reasons why a start would be refused, such as a misspelled key or a missing agent, gate or repository."""
    agent = procedure.setup.agent
    problems: list[RoodaError] = [ConfigProblem(each) for each in found.misspelt]
    problems += [] if agent else [ConfigProblem(agents.no_agent_text(found))]
    for each in agent.choices if agent else ():
        try:
            preflight.find_program(each, workspace)
            preflight.check(each, "")
        except RoodaError as problem:
            problems.append(problem)
    problems += gates.problems(procedure, workspace)
    try:
        settings.require_git(procedure, workspace)
    except ConfigProblem as problem:
        problems.append(problem)
    return [problem.what.partition("\n")[0] for problem in problems]


_SHOWN_ABOVE = ("display", "summary", "description", *PHASES)


@click.command(short_help="Show a procedure's phases and settings.")
@click.argument("procedure", shell_complete=tab_procedures)
@click.pass_context
def info(ctx: click.Context, procedure: str) -> int:
    """Show what PROCEDURE is for, the prompt fragments of its four phases, and its own settings."""
    here = where(ctx)
    found = warned(configuration.load(here.workspace, here.config))
    resolved = settings.procedure(found, procedure, {})
    own = procedures.own(found, procedure)
    shown = gates.without_secrets(gates.with_gates(found, resolved), here.workspace)
    say("\n".join([*_about(shown), "", *_phases(shown), "", *_gates(shown), "", *_configuration(own)]))
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
        rows.append(f"  {phase.name.capitalize() + ':':<8} {counted(count, 'fragment')}")
        rows += [f"    {fragment.shown or 'text'}" for fragment in phase.fragments]
    return rows


def _gates(procedure: Procedure) -> list[str]:
    rows = [f"  {gates.described(gate)}" for gate in procedure.gates or ()]
    return ["Quality Gates:", *(rows or ["  (none)"])]


def _configuration(own: dict[str, object]) -> list[str]:
    rows = [f"  {key} = {value}" for key, value in own.items() if key not in _SHOWN_ABOVE]
    return ["Configuration:", *(rows or ["  (uses global defaults)"])]


@click.command("list", short_help="List all procedures.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def list_(ctx: click.Context, as_json: bool) -> int:
    """List all procedures, yours and the built-in ones, with a one-line summary of each."""
    here = where(ctx)
    found = warned(configuration.load(here.workspace, here.config))
    rows = {name: procedures.summary(found, name) for name in procedures.names(found)}
    if as_json:
        import json

        say(json.dumps([{"name": name, "summary": summary} for name, summary in rows.items()]))
        return OK
    say("Available procedures:")
    for title, names in _grouped(found).items():
        if title != FIRST:
            say(f"\n{title}:")
        for name in names:
            room = COLUMNS - 4 - max(LONGEST_NAME, len(name))
            cut = rows[name] if len(rows[name]) <= room else rows[name][: max(room, 20) - 3] + "..."
            say(f"  {name:<{LONGEST_NAME}}  {cut}".rstrip())
    return OK


COLUMNS, LONGEST_NAME = 80, 24
FIRST = "Work"  # the first group, printed without a title
_GROUPS = {"build": FIRST, "audit-": "Audit", "draft-plan-": "Plan", "publish-plan": "Plan"}


def _grouped(found: "Settings") -> dict[str, list[str]]:
    """Return the names of all procedures by group: `build` first, then the user's own."""
    shipped = {name for layer in found.shipped for name in layer.table("procedures")}
    groups: dict[str, list[str]] = {title: [] for title in (FIRST, "Yours", "Set up", "Audit", "Plan")}
    for name in procedures.names(found):
        title = next((title for prefix, title in _GROUPS.items() if name.startswith(prefix)), "Set up")
        groups[title if name in shipped else "Yours"].append(name)
    return {title: names for title, names in groups.items() if names}
