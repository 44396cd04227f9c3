"""The agent of a flow's calls: its model and its tools."""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from rooda.agents.reader import of_program
from rooda.agents.records import Agent
from rooda.base import files
from rooda.loops import configuration
from rooda.loops.flow.model import Node, chain
from rooda.loops.flow.yaml import lenient
from rooda.settings.agents import option_words, translate_model
from rooda.settings.lookup import Lookup
from rooda.settings.setup import setup
from rooda.settings.where import Where

DENIED = ("Bash",)


class FlowAgents(NamedTuple):
    """The configured agent, adapted to each kind of call."""

    look: Lookup
    agent: Agent

    def for_call(self, kind: str, keys: Mapping[str, Any], word: str) -> Agent:
        """The agent with its tools and model. `word` is the call's model; --model and [flow] model override it."""
        found = self.look.find("model")
        own = found is not None and found.path[0] != "loop"
        model = self.agent.model if own else translate_model(self.look.settings, word)
        fallback = tuple(_with_tools(self.look, each, kind, keys) for each in self.agent.fallback)
        return _with_tools(self.look, self.agent, kind, keys)._replace(model=model, fallback=fallback)


def _with_tools(look: Lookup, agent: Agent, kind: str, keys: Mapping[str, Any]) -> Agent:
    """Allow and deny tools as the agent file says, by the CLI's own options; the actuator gets no shell."""
    table = look.settings.table("agents").get(agent.name, {}) if agent.name else {}
    denied = _names(keys.get("disallowedTools"))
    if kind == "actuator":
        denied = list(dict.fromkeys([*DENIED, *denied]))
    if shell := of_program(agent.name).shell:
        denied = [*shell] if kind == "actuator" else []
    command = agent.command
    if (allowed := _names(keys.get("tools"))) and "allow" in table and _speaks_claude(agent):
        command += f" {option_words(str(table['allow']), [name for name in allowed if name not in denied])}"
    if denied and "deny" in table:
        command += f" {option_words(str(table['deny']), denied)}"
    return agent._replace(command=command)


def _runs_commands(agent: Agent) -> bool:
    return agent.name != "demo" and of_program(agent.name).runs_commands


def _speaks_claude(agent: Agent) -> bool:
    """True if the CLI knows the tool names that agent files use."""
    return os.path.basename(agent.command.split()[0]) == "claude"


def _names(value: object) -> list[str]:
    """The names in a list, or in a text with commas."""
    parts = value if isinstance(value, list) else str(value or "").split(",")
    return [str(part).strip() for part in parts if str(part).strip()]


def warnings(look: Lookup, agent: Agent, words: list[str]) -> list[str]:
    """Warn of what a flow needs and this agent, or a fallback, does not support."""
    tables = look.settings.table("agents")
    found = []
    for each in agent.choices:
        if "deny" not in tables.get(each.name, {}) and _runs_commands(each):
            who, lack = each.name or "the AI command", "has no option to deny tools"
            found.append(f"{who} {lack}: only the prompt stops the actuator from running commands")
    known = look.settings.table("models")
    foreign = agent.name and agent.output != "text" and not _speaks_claude(agent)
    if foreign and "{model}" in agent.command and (unknown := [word for word in words if word not in known]):
        found.append(f"the model words {', '.join(unknown)} are passed to {agent.name} unchanged; map them in [models]")
    return found


def check(where: Where, root: Node) -> list[str]:
    """Warn of what the configured agent does not support; nothing else is checked."""
    found = configuration.load(where.workspace, where.config)
    made, look = setup(found, "flow", {})
    if made.agent is None:
        return ["no agent is configured; a run needs one: [flow] agent, or --agent, or --ai-cmd"]
    words = {"haiku": 1, "sonnet": 1}
    for node in chain(root):
        words[str(lenient(files.text(f"{where.workspace}/{node.controller}")).get("model") or "opus")] = 1
    return warnings(look, made.agent, list(words))
