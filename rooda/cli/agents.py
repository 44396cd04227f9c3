"""`rooda agents` lists agent CLIs with what rooda knows about them; `rooda agents test NAME` tests one."""

import os
from typing import Any

import click

from rooda.agents import preflight
from rooda.agents.records import Agent
from rooda.base.json import Json
from rooda.base.text import escape_line
from rooda.errors import FAILED, OK, AgentMissing, UsageProblem, code_of_signal
from rooda.loops import configuration, trusting
from rooda.loops.options import DASH_H, RunOptions, tab_agents
from rooda.settings import layers, trust
from rooda.settings.agents import agent_named
from rooda.settings.agents import agents as names
from rooda.settings.types import nearest
from rooda.settings.where import where

_WORD = {True: "ok  ", False: "FAIL", None: "--  "}


@click.group(invoke_without_command=True, context_settings=DASH_H, short_help="List the agent CLIs, installed or not.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
@click.pass_context
def agents(ctx: click.Context, as_json: bool) -> int:
    """List the configured agents: version, how they take the prompt, and what their output reports."""
    if ctx.invoked_subcommand:
        return OK
    here = where(ctx)
    found = configuration.load(here.workspace, here.config)
    known = ((name, agent_named(found, name)) for name in names(found))
    rows = [_facts(name, agent, found) for name, agent in known if agent]
    if as_json:
        import json

        click.echo(json.dumps(rows, indent=2))
        return OK
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        click.echo(escape_line(f"{row['name']:<{width}}  {_line(row)}".rstrip()))
    return OK


def _table(found: layers.Settings, name: str) -> Json:
    table: Json = found.agents().get(name, {})
    return table


def _facts(name: str, agent: Agent, found: layers.Settings) -> Json:
    try:
        program = preflight.find_program(agent, found.workspace)
    except AgentMissing:
        program = ""
    env, table = preflight.agent_environment(agent), _table(found, name)
    trusted = bool(program) and trust.may_be_started(found, name, program)
    return {
        "name": name,
        "summary": table.get("summary", ""),
        "installed": bool(program),
        "program": program,
        "version": preflight.version_of(agent, program) if trusted else "",
        "asked": trusted or not program,
        "command": agent.command,
        "prompt": agent.prompt,
        "size_limit": agent.size_limit,
        "character_limit": agent.character_limit,
        "known": table.get("known", []),
        "documented_only": table.get("documented_only", False),
        "billed": preflight.who_pays(agent, env),
        "install": table.get("install", ""),
    }


def _line(row: Json) -> str:
    if not row["installed"]:
        return f"{'not installed':<14}{row['install']}"
    reported = ", ".join(row["known"]) or "nothing but text and exit code"
    limit = f" up to {row['size_limit']:,} bytes" if row["size_limit"] else ""
    limit = f" up to {row['character_limit']:,} characters" if row["character_limit"] else limit
    untried = "; not tested, described from the vendor's documentation" if row["documented_only"] else ""
    version = row["version"] or ("installed" if row["asked"] else f"{trust.NOT_ASKED}; ")
    return f"{version:<14}prompt by {row['prompt']}{limit}; reports {reported}{untried}"


@agents.command("test", short_help="Try an installed agent CLI without an account.")
@click.argument("name", shell_complete=tab_agents)
@click.pass_context
def test(ctx: click.Context, name: str) -> int:
    """Run the installed CLI of NAME against a scripted model server: no account, no network, no cost.

    Prints one line for each behaviour of the CLI that rooda relies on. The exit code is 1 if a check fails.
    """
    here = where(ctx)
    found = configuration.load(here.workspace, here.config)
    agent = agent_named(found, name)
    if agent is None:
        known = names(found)
        near = nearest(name, known)
        what = f"Unknown agent {name!r}; known are {', '.join(known)}."
        raise UsageProblem(what, f"Did you mean {near!r}?" if near else "")
    from rooda.agentkit import check

    if name not in (testable := check.testable()):
        able = ", ".join(testable)
        raise UsageProblem(f"There is no scripted model server for {name!r}.", f"Available for: {able}.")
    found = trusting.checked(found, RunOptions({}), here.config)
    preflight.find_program(agent, here.workspace)
    return _examine(name, _table(found, name))


def _examine(name: str, table: dict[str, Any]) -> int:
    import tempfile

    from rooda.agentkit import check as agentkit_check
    from rooda.processes import capture, linux, supervise
    from rooda.processes.signals import Signals

    folder = tempfile.mkdtemp(prefix="rooda-agents-test-")
    linux.adopt_orphans()
    failed = False
    with Signals() as signals:
        try:
            for check in agentkit_check.examine(name, table, os.path.realpath(folder), signals):
                if signals.count:
                    break
                failed = failed or check.ok is False
                detail = f" ({check.detail})" if check.detail else ""
                click.echo(f"{_WORD[check.ok]}  {check.what}{detail}")
        finally:
            supervise.end_leftovers(signals, 2.0)
        if signals.count:
            return code_of_signal(signals.first)
    if failed:
        click.echo(f"Output of the agent: {folder}", err=True)
        return FAILED
    capture.capture(["rm", "-rf", folder])
    return OK
