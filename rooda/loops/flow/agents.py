"""Chooses model and tools for each agent call of a flow, and runs other loops as actuators."""

import os
import shlex
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from rooda.agents.reader import of_program
from rooda.agents.records import Agent
from rooda.base import files, workspace_files
from rooda.base.yaml import lenient
from rooda.errors import FAILED, UNDECIDED, USAGE, Interrupted
from rooda.loops import configuration
from rooda.loops.flow import topology
from rooda.loops.flow.model import Action, Node, NodeFailed, chain
from rooda.processes import detach
from rooda.run.records import Command
from rooda.run.session import Session
from rooda.settings.agents import asks_permission, option_words, translate_model
from rooda.settings.lookup import Lookup
from rooda.settings.setup import setup
from rooda.settings.where import Where

DENIED = ("Bash",)


class FlowAgents(NamedTuple):
    """The configured agent, adapted to each kind of call."""

    look: Lookup
    agent: Agent

    def for_call(self, kind: str, keys: Mapping[str, Any], word: str) -> Agent:
        """Return the agent with the tools for a call and the model `word`, which --model and [flow] model override."""
        found = self.look.find("model")
        own = found is not None and found.path[0] != "loop"
        model = self.agent.model if own else translate_model(self.look.settings, word)
        fallback = tuple(_with_tools(self.look, each, kind, keys) for each in self.agent.fallback)
        return _with_tools(self.look, self.agent, kind, keys)._replace(model=model, fallback=fallback)


def warnings(look: Lookup, agent: Agent, words: list[str]) -> list[str]:
    """Return warnings about features that a flow with the models `words` needs and the agent or a fallback lacks."""
    tables = look.settings.agents()
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
    """Return warnings about features that the flow needs and the agent lacks; raise ConfigProblem for invalid files."""
    found = configuration.load(where.workspace, where.config)
    made, look = setup(found, "flow", {})
    topology.require_outputs(where.workspace, root, look.value("sensors") == "native")
    if made.agent is None:
        return ["no agent is configured; a run needs one: [flow] agent, or --agent, or --ai-cmd"]
    words = {"haiku": 1, "sonnet": 1}
    for node in chain(root):
        words[str(lenient(workspace_files.text(where.workspace, node.controller)).get("model") or "opus")] = 1
    return warnings(look, made.agent, list(words))


Keys: TypeAlias = dict[str, object]


def run_loop(session: Session, agent: Agent, node: Node, number: int, plan: str) -> Action:
    """Run the loop that is the node's actuator in a child process, with the plan as its task."""
    keys = dict(node.loop)
    kind = str(keys.get("loop", "ooda"))
    name = str(keys.get("procedure", "build")) if kind == "ooda" else kind
    path = session.folder.write(f"{number:04d}-plan.md", files.to_bytes(plan))
    text = "; ".join(shlex.join([*detach.rooda_command(), *words]) for words in _WORDS[kind](keys, path))
    env = {"ROODA_LOOP_AGENT": agent.name} if agent.name else {"ROODA_LOOP_AI_CMD": agent.command}
    env |= {"ROODA_LOOP_SANDBOX": agent.sandbox} if agent.sandbox != "off" else {}
    ran = session.run((Command(text, f"loop-{name}", number=number, env=env, outside=True),))[0]
    if ran.ended == "interrupted":
        raise Interrupted(session.signalled())
    if ran.code in (FAILED, USAGE, UNDECIDED):
        rows = files.tail(ran.output, 400).decode("utf-8", "replace").strip().splitlines() or [f"exit {ran.code}"]
        raise NodeFailed(f"the {'procedure' if kind == 'ooda' else 'loop'} {name} failed", rows[-1])
    return Action(f"{name}: {'completed' if ran.code == 0 else f'ended with exit {ran.code}'}")


def _with_tools(look: Lookup, agent: Agent, kind: str, keys: Mapping[str, Any]) -> Agent:
    """Add the CLI's options for the tools that the agent file allows and denies; deny an actuator the shell."""
    table = look.settings.agents().get(agent.name, {}) if agent.name else {}
    denied = _names(keys.get("disallowedTools"))
    if kind == "actuator":
        denied = list(dict.fromkeys([*DENIED, *denied]))
    if asks_permission(agent):
        rules = agent.tools
        no_commands = ("execute",) if kind == "actuator" else ()
        return agent._replace(tools=rules._replace(denied=(*rules.denied, *no_commands)))
    if shell := of_program(agent.cli).shell:
        denied = [*shell] if kind == "actuator" else []
    command = agent.command
    if (allowed := _names(keys.get("tools"))) and "allow" in table and _speaks_claude(agent):
        command += f" {option_words(str(table['allow']), [name for name in allowed if name not in denied])}"
    if denied and "deny" in table:
        command += f" {option_words(str(table['deny']), denied)}"
    return agent._replace(command=command)


def _runs_commands(agent: Agent) -> bool:
    return agent.name != "demo" and of_program(agent.cli).runs_commands


def _speaks_claude(agent: Agent) -> bool:
    """True if the CLI is claude, whose tool names the agent files use."""
    return os.path.basename(agent.command.split()[0]) == "claude"


def _names(value: object) -> list[str]:
    """Return the names in a list or a comma-separated string."""
    parts = value if isinstance(value, list) else str(value or "").split(",")
    return [str(part).strip() for part in parts if str(part).strip()]


def _procedure(keys: Keys, plan: str) -> list[list[str]]:
    """Return the command that runs a procedure on the plan; the procedure's own settings override the flow's agent."""
    name = str(keys.get("procedure", "build"))
    return [["run", name, "--fresh", "--context", plan, *_limit(keys, "--max-iterations")]]


def _reflex(keys: Keys, plan: str) -> list[list[str]]:
    """Return the commands that stop a reflex loop left by a crash and run a new one with the plan as its task."""
    rules = ["--rules", str(keys["rules"])] if "rules" in keys else ["--template", str(keys["template"])]
    limit = [str(keys.get("max_iterations", 4))]
    confirmed = ["--confirm-criteria", "--max-iterations", *limit, "--confirm-max-iterations", *limit]
    task = files.to_text(files.read_ours(plan)).strip()
    return [["reflex", "stop", "superseded"], ["reflex", "new", *rules, *confirmed, "--", task]]


def _goal(keys: Keys, plan: str) -> list[list[str]]:
    """Return the command that runs a goal without questions, with the plan as its specification."""
    return [["goal", "run", "--fresh", "--yes", "--headless", "--file", plan, *_limit(keys, "--iterations")]]


def _limit(keys: Keys, option: str) -> list[str]:
    return [option, str(keys["max_iterations"])] if "max_iterations" in keys else []


_WORDS: dict[str, Callable[[Keys, str], list[list[str]]]] = {"ooda": _procedure, "reflex": _reflex, "goal": _goal}
