"""`rooda agents`: lists agent CLIs with what rooda knows about them; `test` tries one, `add` defines one."""

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

from rooda.agents import preflight
from rooda.agents.records import Agent
from rooda.base import clock, dirs, files
from rooda.base.json import Json
from rooda.base.json import loads as json_of
from rooda.base.text import columns, escape_line, width
from rooda.errors import FAILED, OK, AgentMissing, ConfigProblem, UsageProblem, code_of_signal
from rooda.loops import configuration, trusting
from rooda.loops.options import DASH_H, RunOptions, tab_agents
from rooda.settings import layers, trust
from rooda.settings.agents import agent_named
from rooda.settings.agents import agents as names
from rooda.settings.check import NAME
from rooda.settings.types import COMMAND, nearest
from rooda.settings.where import where
from rooda.views.agents_table import HEAD, NONE, Row, parts, row_of
from rooda.views.live import is_terminal, size

if TYPE_CHECKING:
    from rooda.agentkit.check import Check
    from rooda.processes.signals import Signals

TESTED = "agents-tested"  # folder in the user's state: one file for each agent that was tested with success
_WORD = {True: "ok  ", False: "FAIL", None: "--  "}


@click.group(invoke_without_command=True, context_settings=DASH_H, short_help="List the agent CLIs, installed or not.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def agents(ctx: click.Context, as_json: bool) -> int:
    """List the configured agents: installed version, whether they work unattended, and what rooda knows about them.

    Tokens and dollars: reported by the CLI, or computed from tokens and list prices. Limits seen: usage limits with
    their end. Tested: when you ran `rooda agents test`, or the version that rooda's own tests run.
    """
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
    _print(rows)
    return OK


def _print(rows: list[Json]) -> None:
    """Print the table, in two parts on a narrow terminal, then how to install the agents that are missing."""
    table = [HEAD, *map(_cells, rows)]
    tables = [columns(table)]
    if is_terminal(sys.stdout) and max(map(width, tables[0])) > size(sys.stdout)[0]:
        tables = [columns(part) for part in parts(table)]
    click.echo("\n\n".join("\n".join(map(escape_line, lines)) for lines in tables))
    missing = [(row["name"], row["install"]) for row in rows if not row["installed"] and row["install"]]
    if missing:
        click.echo("\nTo install:\n" + "\n".join(map(escape_line, columns(missing))))


def _table(found: layers.Settings, name: str) -> Json:
    table: Json = found.agents().get(name, {})
    return table


def _facts(name: str, agent: Agent, found: layers.Settings) -> Json:
    try:
        program = preflight.find_program(agent, found.workspace)
    except AgentMissing:
        program = ""
    env, table = preflight.agent_environment(agent), _table(found, name)
    tested = _tested(name, table)
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
        **row_of(table, bool(tested))._asdict(),
        "tested": tested,
        "documented_only": table.get("documented_only", False),
        "billed": preflight.who_pays(agent, env),
        "install": table.get("install", ""),
    }


def _cells(row: Json) -> tuple[str, ...]:
    version = row["version"] or ("yes" if row["asked"] else trust.NOT_ASKED)
    facts = (row[key] or NONE for key in Row._fields)
    return (row["name"], version if row["installed"] else "not installed", *facts, row["tested"] or "never")


def _tested(name: str, table: Json) -> str:
    """Return when the user tested an agent successfully, else the version that rooda's own tests run; "" if neither."""
    try:
        record = json_of(files.read_ours(dirs.state(TESTED, f"{name}.json")))
        return " ".join(text for text in (str(record["on"]), str(record["version"])) if text)
    except (OSError, ValueError, KeyError, TypeError):
        return f"by rooda: {table['tested']}" if table.get("tested") else ""


def _note_success(name: str, version: str) -> None:
    """Record that the user tested an agent successfully; without a home folder, nothing is recorded."""
    import json

    record = {"on": clock.local_date(clock.now()), "version": version}
    if re.fullmatch(NAME, name):
        with contextlib.suppress(OSError):
            files.replace(os.path.join(dirs.make_state(TESTED), f"{name}.json"), json.dumps(record).encode())


@agents.command("test", short_help="Try an installed agent CLI without an account.")
@click.argument("name", shell_complete=tab_agents)
@click.pass_context
def test(ctx: click.Context, name: str) -> int:
    """Run the installed CLI of NAME against a scripted model server: no account, no network, no cost.

    Prints one line for each behavior of the CLI that rooda relies on. The exit code is 1 if a check fails.
    """
    here = where(ctx)
    found = configuration.load(here.workspace, here.config)
    agent = agent_named(found, name)
    if agent is None:
        known = names(found)
        near = nearest(name, known)
        what = f"Unknown agent {name!r}. Available: {', '.join(known)}."
        raise UsageProblem(what, f"Did you mean {near!r}?" if near else "")
    from rooda.agentkit import check

    if check.subject(found, agent, "") is None:
        set_it = f'Set variables or files: [agents.{name}.test] env = {{ OPENAI_BASE_URL = "{{url}}/v1" }}.'
        known_for = f"Available for: {', '.join(sorted(check.shipped()))}."
        raise UsageProblem(f"rooda can't point {name!r} at rooda's model server.", f"{set_it} {known_for}")
    found = trusting.checked(configuration.refuse_misspelt(found), RunOptions({}), here.config)
    agent = agent_named(found, name) or agent
    program = preflight.find_program(agent, here.workspace)
    if (subject := check.subject(found, agent, program)) is None:
        raise UsageProblem(f"The settings of {name!r} are not trusted.", "Look at them: rooda trust --show")
    code = _trial(lambda folder, signals: _all_pass(check.examine(subject, folder, signals), signals))
    if code == OK:
        _note_success(name, preflight.version_of(agent, program))
    return code


@agents.command("add", short_help="Define an agent of your own by trying its command.")
@click.argument("name")
@click.argument("command")
@click.pass_context
def add(ctx: click.Context, name: str, command: str) -> int:
    """Try COMMAND against a scripted model server; if it works, define it as the agent NAME in your own settings.

    rooda passes the prompt on stdin, or in place of {prompt} in COMMAND. The CLI finds the server by OPENAI_BASE_URL,
    OPENAI_API_KEY, ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY. If a check fails, nothing is written; the exit code is 1.
    """
    from rooda.agentkit import adding, check
    from rooda.processes import supervise

    here = where(ctx)
    path = os.path.realpath(here.config or layers.user_file(os.environ))
    _require_new(configuration.load(here.workspace, here.config), name, command)
    command = adding.absolute(command, here.workspace)
    program = preflight.find_program(Agent(name, command), here.workspace)

    def work(folder: str, signals: "Signals") -> bool:
        found = None
        for tried in adding.tries(name, command, folder, signals):
            click.echo(f"{_WORD[not tried.problem]}  prompt by {tried.way}{tried.problem and f': {tried.problem}'}")
            found = None if tried.problem else tried.subject
        supervise.end_leftovers(signals, 2.0)
        if found is None or not _all_pass(check.examine(found, os.path.join(folder, "checks"), signals), signals):
            click.echo(f"Nothing was written. {adding.HINT}", err=True)
            return False
        _append(path, adding.table_text(found, command), name)
        return True

    code = _trial(work)
    if code == OK:
        _note_success(name, preflight.version_of(Agent(name, command), program))
    return code


def _require_new(found: layers.Settings, name: str, command: str) -> None:
    """Raise UsageProblem if the name or the command can't be used for a new agent."""
    if not re.fullmatch(NAME, name):
        raise UsageProblem(f"{name!r} can't be an agent's name.", "Use letters, digits, '.', '_' and '-'.")
    if name in names(found):
        place = found.location(("agents", name)) or "the agents that ship with rooda"
        raise UsageProblem(f"The agent {name!r} exists already, in {place}.", "Choose another name.")
    for fault in COMMAND.faults(command):
        raise UsageProblem(f"COMMAND {fault.text}")


def _append(path: str, table: str, name: str) -> None:
    """Append a table to a settings file without changing its other text, and print the table."""
    import tomllib

    try:
        old = files.read_ours(path).decode()
    except FileNotFoundError:
        old = ""
    text = f"{old.rstrip()}\n\n{table}" if old.strip() else table
    try:
        tomllib.loads(text)
    except ValueError as problem:
        raise ConfigProblem(
            f"{path}: the agent can't be added ({problem}):\n{table}", "Add the table there yourself."
        ) from problem
    files.make_folder(os.path.dirname(path))
    files.replace(path, text.encode())
    click.echo(f"Written to {path}:\n\n{table}\nUse it: rooda build --agent {name}")


def _all_pass(checks: "Iterable[Check]", signals: "Signals") -> bool:
    """Print each check; return True if all passed, False if one failed or a signal ended them early."""
    passed = True
    for check in checks:
        if signals.count:
            return False
        passed = passed and check.ok is not False
        detail = f" ({check.detail})" if check.detail else ""
        click.echo(f"{_WORD[check.ok]}  {check.what}{detail}")
    return passed


def _trial(work: "Callable[[str, Signals], bool]") -> int:
    """Run `work`, which starts agents, in a new folder that is deleted on success; return the exit code."""
    import tempfile

    from rooda.processes import capture, linux, supervise
    from rooda.processes.signals import Signals

    folder = tempfile.mkdtemp(prefix="rooda-agents-test-")
    linux.adopt_orphans()
    with Signals() as signals:
        try:
            passed = work(os.path.realpath(folder), signals)
        finally:
            supervise.end_leftovers(signals, 2.0)
        if signals.count:
            return code_of_signal(signals.first)
    if not passed:
        click.echo(f"Output of the agent: {folder}", err=True)
        return FAILED
    capture.capture(["rm", "-rf", folder])
    return OK
