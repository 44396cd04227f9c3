"""Builds the agent of a loop from the settings: command, model, restrictions, prices and fallbacks."""

import os
import shlex
from typing import Any

from rooda.agents.reader import ACP, ASKING, NOT_ASKING
from rooda.agents.records import EXIT_GRACE, Agent, ToolRules
from rooda.errors import ConfigProblem, RoodaError, UsageProblem
from rooda.settings.layers import BUILT_IN, FLAG, Settings, ancestors, workspace_file
from rooda.settings.lookup import Found, Lookup
from rooda.settings.toml import Path, toml_value
from rooda.settings.types import COMMAND, nearest


def agent_of(look: Lookup) -> Agent | None:
    """Return the agent that the settings choose for a loop; None if none is configured."""
    found = look.find("ai_cmd", "agent", "ai_cmd_alias")
    if found is None:
        return None
    agent = _raw(look.settings, found) if found.path[-1] == "ai_cmd" else _named(look.settings, found)
    at_limit = {"on_limit": look.value("on_limit"), "fallback": _fallback(look, agent)}
    return with_restrictions(look, agent)._replace(model=_model(look, agent), **at_limit)


def _fallback(look: Lookup, agent: Agent) -> tuple[Agent, ...]:
    """Return the agents to use while the account of `agent` is at a usage limit, each with its own model.

    Only one list is used: that of the procedure or kind of loop, else the agent's own list, else that of [loop].
    """
    found = look.find("fallback")
    if found is None or found.path[0] == "loop":
        found = _own(look.settings, agent.name, "fallback") or found
    named = [_named(look.settings, found._replace(value=name)) for name in found.value] if found else []
    return tuple(
        with_restrictions(look, agent)._replace(model=translate_model(look.settings, agent.model)) for agent in named
    )


def _own(settings: Settings, agent: str, key: str) -> Found | None:
    """Return a setting from the agent's own table, or from that of the agent that it inherits from (`like`)."""
    name = settings.definer(agent, key)
    for layer in settings.layers:
        if key in (table := layer.table("agents", name)):
            return Found(table[key], layer, ("agents", name, key))
    return None


def with_prices(agent: Agent, settings: Settings, raw: bool = False) -> Agent:
    """Return the agent and its fallbacks, with token prices if `raw` is set or one of these agents reports tokens."""
    if not raw and all(each.output == "text" for each in (agent, *agent.fallback)):
        return agent
    from rooda.settings.setup import prices_of

    table = prices_of(settings)
    return agent._replace(prices=table, fallback=tuple(each._replace(prices=table) for each in agent.fallback))


def agents(settings: Settings) -> list[str]:
    """Return every name that --agent accepts, sorted."""
    return sorted({*settings.table("agents"), *settings.table("ai_cmd_aliases")})


def agent_named(settings: Settings, name: str) -> Agent | None:
    """Return the agent defined in [agents] or else [ai_cmd_aliases]; None if the name is unknown or has no command."""
    table = settings.agents().get(name, {})
    if command := table.get("command"):
        path = ("agents", settings.definer(name, "command"), "command")
        made = _agent(name, {**table, "command": with_program_path(settings, path, command)})
        origin = ancestors(settings.table("agents"), name)[-1]
        return made if origin == name else made._replace(like=origin)
    command = settings.table("ai_cmd_aliases").get(name)
    return _agent("", {"command": with_program_path(settings, ("ai_cmd_aliases", name), command)}) if command else None


def translate_model(settings: Settings, word: str) -> str:
    """Return the model name that [models] maps a word to; the word itself if [models] does not list it."""
    return _as_value(str(settings.table("models").get(word, word)), "model")


def _as_value(name: str, kind: str) -> str:
    """Return a name for use on an agent's command line; ConfigProblem if the CLI would parse the name as an option."""
    if name.startswith("-"):
        raise ConfigProblem(
            f"the {kind} {name!r} begins with '-', so the agent would take it for an option",
            "Use a name that does not begin with '-'.",
        )
    return name


def no_agent_text(settings: Settings, table: str = "[procedures.P]") -> str:
    """Return the error message if no agent is configured; `table` is the loop's own settings table."""
    own = f'{table} agent = "NAME"'
    return "\n".join(
        (
            "no AI command configured",
            "Set one via:",
            "  --agent NAME",
            '  --ai-cmd "COMMAND"                (any command that reads the prompt on stdin)',
            f'  {own:<34}in rooda.toml (or ai_cmd = "COMMAND")',
            '  [loop] agent = "NAME"             in rooda.toml (or ai_cmd = "COMMAND")',
            "  ROODA_LOOP_AGENT=NAME             in the environment (or ROODA_LOOP_AI_CMD)",
            "  rooda init                        writes a rooda.toml with the agent found on this machine",
            f"Available agents: {', '.join(agents(settings)) or 'none'}",
            on_this_machine(settings),
        )
    )


def line_to_write(settings: Settings, name: str) -> str:
    """Return a sentence with the settings line that chooses this agent, and the file to write the line to."""
    return f"Write this line under [loop] of {workspace_file(settings.workspace)}: agent = {toml_value(name)}"


def on_this_machine(settings: Settings) -> str:
    """Return a sentence about the agents that are installed, and how to choose one."""
    from rooda.settings.detect import installed_agents

    found = installed_agents()
    if len(found) == 1:
        return f"On this machine: {found[0]}. {line_to_write(settings, found[0])}"
    if found:
        return f"On this machine: {', '.join(found)}"
    return "None of them is installed on this machine. To try a loop without an AI: rooda init --demo DIR"


def _raw(settings: Settings, found: Found) -> Agent:
    typed = found.layer.tier == FLAG
    for fault in COMMAND.faults(found.value) if typed else []:
        raise UsageProblem(f"--ai-cmd {fault.text}")
    if typed:
        return _agent("", {"command": with_program(found.value, settings.workspace, os.getcwd())})
    return _agent("", {"command": with_program_path(settings, found.path, found.value)})


def _named(settings: Settings, found: Found) -> Agent:
    agent = agent_named(settings, found.value)
    if agent is None:
        raise _unknown(settings, found)
    return agent


def _unknown(settings: Settings, found: Found) -> RoodaError:
    name, known = found.value, agents(settings)
    if name in settings.table("agents"):
        where = settings.location(("agents", name))
        base = settings.table("agents")[name].get("like")
        if base and base not in settings.table("agents"):
            return ConfigProblem(f"{where}: agents.{name}.like: unknown agent {base!r}", _meant(base, known))
        return ConfigProblem(f"{where}: agents.{name}: the key 'command' is missing")
    what = f"{found.where}: unknown agent {name!r}; available: {', '.join(known) or 'none'}"
    problem = UsageProblem if found.layer.tier == FLAG else ConfigProblem
    return problem(what, _meant(name, known))


def _meant(name: str, known: list[str]) -> str:
    near = nearest(name, known)
    return f"Did you mean {near!r}?" if near else "Define it as [agents.NAME] in rooda.toml."


def _agent(name: str, table: dict[str, Any]) -> Agent:
    command, output = table["command"], table.get("output", "text")
    way = table.get("prompt", "argument" if "{prompt}" in command else "stdin")
    return Agent(
        name=name,
        command=command,
        prompt="stdin" if output == ACP else way,  # of rooda's client, which sends it over the protocol
        output=output,
        stop=table.get("stop", "TERM"),
        keep_background=table.get("keep_background", False),
        exit_grace=float(table.get("exit_grace", EXIT_GRACE)),
        env=table.get("env", {}),
        model=table.get("model", ""),
        env_deny=tuple(table.get("env_deny", ())),
        size_limit=table.get("size_limit", 0),
        character_limit=table.get("character_limit", 0),
        budget=table.get("budget", ""),
        budget_day=float(table.get("budget_day", 0)),
        billing=table.get("billing", {}),
        account=table.get("account", ""),
        version=table.get("version", "--version" if name else ""),
        idle_timeout=float(table.get("idle_timeout", 0)),
        log=table.get("log", ""),
    )


def _model(look: Lookup, agent: Agent) -> str:
    """Return the model, mapped by [models]: from a flag or the procedure, else from the agent, else from [loop]."""
    found = look.find("model")
    general = found is None or found.path[0] == "loop"
    word = agent.model if agent.model and general else found.value if found else ""
    return translate_model(look.settings, word) if word else ""


# A command in a settings file may give its program's path relative to that file.


def with_program_path(settings: Settings, path: Path, command: str) -> str:
    """Return a command from a settings file; make the program's path absolute if it is relative to that file.

    `path`: the key of the command. If the settings file's folder has no such program, the command is returned
    unchanged; the program's path is then relative to the workspace, in which the command is started.
    """
    folder = settings.folder(path) if os.sep in command else ""
    if not folder or os.path.realpath(folder) == os.path.realpath(settings.workspace):
        return command
    return with_program_in(folder, command)


def with_program(command: str, workspace: str, other: str) -> str:
    """Make a command's relative program path absolute if the program is in `other` but not in the workspace."""
    return command if with_program_in(workspace, command) != command else with_program_in(other, command)


def with_program_in(folder: str, command: str) -> str:
    """Return a command with its relative program path made absolute if the folder has that program."""
    if os.sep not in command:
        return command
    program, *words = shlex.split(command)
    near = os.path.abspath(os.path.join(folder, program))
    if os.sep not in program or os.path.isabs(program) or not os.path.isfile(near):
        return command
    return shlex.join([near, *words])


def with_programs(agent: Agent, workspace: str, other: str) -> Agent:
    """Return the agent with `with_program` applied to its own command and to those of its fallbacks."""
    others = tuple(with_programs(each, workspace, other) for each in agent.fallback)
    return agent._replace(command=with_program(agent.command, workspace, other), fallback=others)


# Restrictions of an agent: settings that become options of its command line, or rules for an agent that asks.
_OPTIONS = {"read_only": "read_only", "allowed_tools": "allow", "denied_tools": "deny"}


def with_restrictions(look: Lookup, agent: Agent) -> Agent:
    """Return the agent with its configured restrictions; ConfigProblem if its CLI has no option for one of them."""
    table = look.settings.agents().get(agent.name, {}) if agent.name else {}
    if agent.output == ACP:
        table = {key: table[key] for key in table if look.settings.definer(agent.name, key) == agent.name}
        agent = _with_rules(look, agent, table)
    command = agent.command
    ignoring = _ignoring_project(look.settings, agent, table)
    for setting, key in _OPTIONS.items():
        found = _set(look, setting)
        if not found or (agent.output == ACP and key not in table):
            continue
        option = _known(found, agent, table, key)
        if setting == "read_only":
            defined = ("agents", look.settings.definer(agent.name, key), key)
            command = with_program_path(look.settings, defined, option)
        else:
            command += f" {option_words(option, found.value)}"
    if found := _set(look, "call_budget"):
        _known(found, agent, table, "budget")
        agent = agent._replace(cap=float(found.value))
    if (found := look.find("idle_timeout")) and found.layer.tier != BUILT_IN:
        agent = agent._replace(idle_timeout=0.0)
    return agent._replace(command=f"{command} {ignoring}".rstrip())


def _with_rules(look: Lookup, agent: Agent, table: dict[str, Any]) -> Agent:
    """Return an ACP agent with rules for the restrictions for which its own table has no option."""
    found = {setting: _set(look, setting) for setting, key in _OPTIONS.items() if key not in table}
    for setting, each in found.items():
        if each and _program(agent) in NOT_ASKING:
            _known(each, agent, {}, _OPTIONS[setting])
    given = {setting: each.value for setting, each in found.items() if each}
    return agent._replace(
        tools=ToolRules(
            read_only=given.get("read_only", False),
            allowed=tuple(given.get("allowed_tools", ())),
            denied=tuple(given.get("denied_tools", ())),
            asks=asks_permission(agent),
        )
    )


def asks_permission(agent: Agent) -> bool:
    """True for an ACP agent that is known to ask before it changes anything, so that rooda's answers restrict it."""
    return agent.output == ACP and _program(agent) in ASKING


def _program(agent: Agent) -> str:
    return os.path.basename(shlex.split(agent.command)[0])


def _ignoring_project(settings: Settings, agent: Agent, table: dict[str, Any]) -> str:
    """Return the options that make the agent ignore its settings files in an untrusted project; "" if not needed."""
    if not settings.untrusted:
        return ""
    if "untrusted" in table:
        return str(table["untrusted"])
    program = _program(agent).removesuffix("-acp").removesuffix("-agent")  # an adapter's CLI reads the files
    if program in settings.own_files:
        raise ConfigProblem(
            f"{program} has untrusted settings here, and no option that makes it ignore them; nothing was started",
            "See the settings: rooda trust --show. Trust them, remove them, or choose another agent.",
        )
    return ""


def _set(look: Lookup, setting: str) -> Found | None:
    found = look.find(setting)
    return found if found and found.value else None


def _known(found: Found, agent: Agent, table: dict[str, Any], key: str) -> str:
    """Return the agent's option for this restriction; ConfigProblem if it has none."""
    if key in table:
        return str(table[key])
    who = f"the agent {agent.name!r}" if agent.name else f"the command {agent.command!r}"
    where = f"[agents.{agent.name}]" if agent.name else "an [agents.NAME] that defines it"
    raise ConfigProblem(
        f"{found.where}: {who} has no option for this; nothing was started",
        f"Choose an agent that has one, or set {key} = … in {where}.",
    )


def option_words(template: str, tools: list[str]) -> str:
    """Return the option with the tools filled in: {tools} becomes a comma-separated list, {tool} repeats the option."""
    tools = [_as_value(tool, "tool") for tool in tools]
    if "{tool}" in template:
        return " ".join(template.replace("{tool}", shlex.quote(tool)) for tool in tools)
    return template.replace("{tools}", shlex.quote(",".join(tools)))
