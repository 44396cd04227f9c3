"""What people use today, one row each: how it is made to work on and on with a real agent CLI, and to go on again.

The agent CLIs talk to the scripted model server of `rooda/agentkit`. Each tool finds them first on its PATH, as
scripts that set the variables for this server, because some tools pass on only a few variables.
"""

import os
from collections.abc import Callable
from typing import NamedTuple

from benchmarks.bench import PROGRAMS

CLAUDE, CODEX = "@anthropic-ai/claude-code", "@openai/codex"
LEAST = "0.001"  # dollars: less than one call of the model costs
Words = Callable[[str, bool], list[str]]  # of the tool's command, and whether the least limit is set


class Tool(NamedTuple):
    """One tool. `begin` starts it; `again` is what its users type after it was killed, or has stopped."""

    title: str
    name: str  # of the package
    registry: str
    version: str
    program: str
    begin: Words
    again: Words
    judge: str  # who decides that the work is done, and
    trust: str  # does it ask before commands of a cloned project start: as its documents say, see docs/comparison.md
    agent: str = "claude"
    python: str = ""  # the oldest Python it runs on, if that is newer than rooda's
    tasks: bool = False  # it works through a list of tasks in sessions of minutes: no gap, and no limit to try


def _limit(option: str, is_limited: bool) -> list[str]:
    return [option, LEAST] if is_limited else []


def _goal(command: str, is_limited: bool) -> list[str]:
    return [command, *_claude(is_limited), "/goal The file x exists"]


def _goal_again(command: str, is_limited: bool) -> list[str]:
    return [command, *_claude(is_limited), "--continue", "Go on"]


def _claude(is_limited: bool) -> list[str]:
    return ["-p", "--dangerously-skip-permissions", *_limit("--max-budget-usd", is_limited)]


def _codex(command: str, is_limited: bool) -> list[str]:
    return ["python3", os.path.join(PROGRAMS, "codex_goal.py"), command, "100" if is_limited else "0"]


def _ralph(command: str, is_limited: bool) -> list[str]:
    return [command, "run", "-a", "claude", "-p", "Make the file x", "--no-git", *_limit("--max-cost", is_limited)]


def _bernstein(command: str, is_limited: bool) -> list[str]:
    return [command, "run", "plan.yaml", "--cli", "claude", "--auto-approve", "--quiet", "--wait", "3600"]


def _rooda(command: str, is_limited: bool) -> list[str]:
    return [command, "bench", *_limit("--max-cost", is_limited)]


PLAN = "name: one\nstages:\n  - name: only\n    steps:\n      - {title: Make x, role: backend, description: Make x}\n"
TOOLS = (
    Tool(
        "Claude Code `/goal`", CLAUDE, "npm", "2.1.328", "claude", _goal, _goal_again,
        "a model that reads the session", "not with `-p`",
    ),
    Tool(
        "Codex goals", CODEX, "npm", "0.169.0", "codex", _codex, _codex,
        "the agent", "for hooks", agent="codex",
    ),
    Tool(
        "ralph-orchestrator", "ralph-orchestrator", "PyPI", "1.2.3", "ralph", _ralph, _ralph,
        "the agent", "not found in its documents",
    ),
    Tool(
        "Bernstein", "bernstein", "PyPI", "3.23.0", "bernstein", _bernstein, _bernstein,
        "its gates", "for hooks and workflow commands", python="3.12", tasks=True,
    ),
)  # fmt: skip
OURS = Tool(
    "rooda", "rooda", "", "", "rooda", _rooda, lambda command, _: [command, "resume", "bench"],
    "your checks (`rooda build`)", "yes",
)  # fmt: skip
