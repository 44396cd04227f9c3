"""Checks before a call that the agent is installed and the prompt fits, and finds out who pays."""

import os
import sys
from collections.abc import Mapping, Sequence

from rooda.agents import command
from rooda.agents.reader import ACP, of_program
from rooda.agents.records import Agent, Prompt
from rooda.base import files
from rooda.errors import AgentMissing, ConfigProblem, PromptProblem

ARGUMENT = 131_071 if sys.platform == "linux" else 900_000  # bytes of one argument; macOS limits the sum of all
SHORTEST_SECRET = 12  # characters; of a shorter key, the last four would reveal too much


def find_program(agent: Agent, workspace: str) -> str:
    """Return the path of the agent's program; raise AgentMissing if it is missing or not executable."""
    program = command.argv(agent, "")[0]
    hint = "Install it, correct the command, or choose another agent with --agent or --ai-cmd."
    if os.sep in program:
        found = [os.path.join(workspace, program)]
    else:
        places = agent.env.get("PATH", os.environ.get("PATH", os.defpath)).split(os.pathsep)
        found = [os.path.join(place, program) for place in places if place]
    there = [path for path in found if os.path.isfile(path)]
    for path in there:
        if os.access(path, os.X_OK):
            return path
    if there:
        raise AgentMissing(f"AI command is not executable: {there[0]}", f"Make it executable: chmod +x {there[0]}")
    raise AgentMissing(f"AI command binary not found: {program}", hint)


def check(agent: Agent, prompt: str) -> None:
    """Raise an error if a call would fail at once or waste money.

    For a raw command, check only whether the prompt is too long.
    """
    check_size(agent, prompt)
    if agent.name:
        argv = command.argv(agent, "")
        refusal = of_program(os.path.basename(argv[0])).refusal
        what, hint = refusal(argv, agent_environment(agent), os.geteuid() == 0) if refusal else ("", "")
        if what:
            raise ConfigProblem(what, hint)


def check_size(agent: Agent, prompt: str) -> None:
    """Raise PromptProblem if the prompt is too long for the agent."""
    if why := size_problem(agent, prompt):
        raise PromptProblem(
            f"The prompt is too long: it has {why}. Nothing was started.",
            "Shorten it (--dry-run shows it), let the agent read files by itself, or choose another agent.",
        )


def size_problem(agent: Agent, prompt: str) -> str:
    """Return a message with the size and the limit if the prompt is too long; "" if it fits."""
    size, who = len(prompt.encode("utf-8", "replace")), agent.name or "the AI command"
    if agent.size_limit and size > agent.size_limit:
        return f"{size:,} bytes, and {who} takes at most {agent.size_limit:,}"
    if agent.character_limit and len(prompt) > agent.character_limit:
        return f"{len(prompt):,} characters, and {who} takes at most {agent.character_limit:,}"
    if agent.prompt == "argument" and size > ARGUMENT // 2:
        longest = max(len(word.encode("utf-8", "replace")) for word in command.argv(agent, prompt))
        if longest > ARGUMENT:
            return f"{size:,} bytes, and one command-line argument has at most {ARGUMENT:,}"
    return ""


def size_problem_on_disk(agent: Agent, prompt: Prompt) -> str:
    """Like `size_problem`, for a prompt in a file; reads the file only if its size exceeds a limit of the agent."""
    limits = (agent.size_limit, agent.character_limit, ARGUMENT // 2 if agent.prompt == "argument" else 0)
    doubtful = any(limit and prompt.size > limit for limit in limits)
    return size_problem(agent, files.to_text(files.read_ours(prompt.path))) if doubtful else ""


def warnings(agent: Agent) -> list[str]:
    """Return warnings about a command line that will probably fail; none for raw commands."""
    if not agent.name:
        return []
    argv = command.argv(agent, "")
    if agent.output == ACP:  # its command has no options for a call without a user
        return []
    return likely_problems(os.path.basename(argv[0]), argv, agent_environment(agent))


def likely_problems(program: str, argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """Return the reasons why this command line will probably fail or hang, without reading the CLI's own settings.

    docs/agents.md has the measurements behind them.
    """
    known, found = of_program(program), []
    powerless = known.powerless
    if powerless and not any(command.has_option(argv, word) for word in powerless.words):
        found.append(f"{powerless.what}, but still exits with 0. Add {powerless.cure} to its command.")
    return [*found, *(known.warnings(argv, env) if known.warnings else ())]


def describe(agent: Agent, program: str) -> list[str]:
    """Return lines that show the agent, its version and who pays; none for a raw command."""
    if not agent.name or not (agent.version or agent.account):
        return []
    version = version_of(agent, program)
    name = f"{agent.name} {version}" if version else agent.name
    found = [f"Agent: {name} ({program}), prompt by {agent.prompt}"]
    if payer := who_pays(agent, agent_environment(agent)):
        found.append(f"Billed: {payer}")
    return found


def version_of(agent: Agent, program: str) -> str:
    """Return the program's version; "" unless it is the agent's own CLI, whose version option rooda knows."""
    from rooda.agents import versions  # loads the process code, which a dry run does not need

    option = agent.version if os.path.basename(program) == agent.cli else ""
    return versions.version_of(program, option, agent_environment(agent))


def who_pays(agent: Agent, env: Mapping[str, str]) -> str:
    """Return the name of the account that pays; if a key pays, also its variable and its last four characters."""
    for variable, who in agent.billing.items():
        value = env.get(variable, "")
        if value:
            return f"{who} ({variable}{f' …{value[-4:]}' if len(value) >= SHORTEST_SECRET else ''})"
    return agent.account


def agent_environment(agent: Agent) -> dict[str, str]:
    """Return the agent's environment, without rooda's own variables."""
    return {**command.without_denied(command.base_environment(), agent.env_deny), **agent.env}
