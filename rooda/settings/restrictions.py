"""What an agent may do: settings of a run that become words of the agent's command line."""

import shlex
from typing import Any

from rooda.agents.records import Agent
from rooda.errors import ConfigProblem
from rooda.settings.lookup import Found, Lookup
from rooda.settings.programs import located

_OPTIONS = {"allowed_tools": "allow", "denied_tools": "deny"}


def restricted(look: Lookup, agent: Agent) -> Agent:
    """The agent with the restrictions that are set. One that can't be told of them is refused, not run without."""
    table = look.settings.table("agents").get(agent.name, {}) if agent.name else {}
    command = agent.command
    if found := _set(look, "read_only"):
        command = located(look.settings, ("agents", agent.name, "read_only"), _known(found, agent, table, "read_only"))
    for setting, key in _OPTIONS.items():
        if found := _set(look, setting):
            command += f" {option_words(_known(found, agent, table, key), found.value)}"
    if found := _set(look, "call_budget"):
        _known(found, agent, table, "budget")
        agent = agent._replace(cap=float(found.value))
    return agent._replace(command=command)


def _set(look: Lookup, setting: str) -> Found | None:
    found = look.find(setting)
    return found if found and found.value else None


def _known(found: Found, agent: Agent, table: dict[str, Any], key: str) -> str:
    """What the agent's table says about how this restriction is put."""
    if key in table:
        return str(table[key])
    who = f"the agent {agent.name!r}" if agent.name else f"the command {agent.command!r}"
    where = f"[agents.{agent.name}]" if agent.name else "an [agents.NAME] that describes it"
    raise ConfigProblem(
        f"{found.where}: {who} can't be told this; nothing was started",
        f"Choose an agent that can, or say how in {where}: {key} = …",
    )


def option_words(template: str, tools: list[str]) -> str:
    """{tools} is all of them with commas between; with {tool} the option is repeated."""
    if "{tool}" in template:
        return " ".join(template.replace("{tool}", shlex.quote(tool)) for tool in tools)
    return template.replace("{tools}", shlex.quote(",".join(tools)))
