"""An actuator that is a loop of another kind: rooda runs it with the controller's plan as its task."""

import shlex
from collections.abc import Callable
from typing import TypeAlias

from rooda.agents.records import Agent
from rooda.base import files
from rooda.errors import FAILED, UNDECIDED, USAGE, Interrupted
from rooda.loops.flow.model import Action, Node, NodeFailed
from rooda.processes import detach
from rooda.run.records import Command
from rooda.run.session import Session

Keys: TypeAlias = dict[str, object]


def run_loop(session: Session, agent: Agent, node: Node, number: int, plan: str) -> Action:
    """Run the loop that is the node's actuator as a child process, with the plan as its task."""
    keys = dict(node.loop)
    kind = str(keys.get("loop", "ooda"))
    name = str(keys.get("procedure", "build")) if kind == "ooda" else kind
    path = session.folder.write(f"{number:04d}-plan.md", files.to_bytes(plan))
    text = "; ".join(shlex.join([*detach.rooda_command(), *words]) for words in _WORDS[kind](keys, path))
    env = {"ROODA_LOOP_AGENT": agent.name} if agent.name else {"ROODA_LOOP_AI_CMD": agent.command}
    ran = session.run((Command(text, f"loop-{name}", number=number, env=env),))[0]
    if ran.ended == "interrupted":
        raise Interrupted(session.signalled())
    if ran.code in (FAILED, USAGE, UNDECIDED):
        rows = files.tail(ran.output, 400).decode("utf-8", "replace").strip().splitlines() or [f"exit {ran.code}"]
        raise NodeFailed(f"the {'procedure' if kind == 'ooda' else 'loop'} {name} failed", rows[-1])
    return Action(f"{name}: {'completed' if ran.code == 0 else f'ended with exit {ran.code}'}")


def _procedure(keys: Keys, plan: str) -> list[list[str]]:
    """The procedure's own settings override the flow's agent."""
    name = str(keys.get("procedure", "build"))
    return [["run", name, "--fresh", "--context", plan, *_limit(keys, "--max-iterations")]]


def _reflex(keys: Keys, plan: str) -> list[list[str]]:
    """The plan is the task. flow.yaml confirms rules and limit; a loop left by a crash is stopped first."""
    rules = ["--rules", str(keys["rules"])] if "rules" in keys else ["--template", str(keys["template"])]
    limit = [str(keys.get("max_iterations", 4))]
    confirmed = ["--confirm-criteria", "--max-iterations", *limit, "--confirm-max-iterations", *limit]
    task = files.text(plan).strip()
    return [["reflex", "stop", "superseded"], ["reflex", "new", *rules, *confirmed, "--", task]]


def _goal(keys: Keys, plan: str) -> list[list[str]]:
    """The plan is the specification, and no question is asked."""
    return [["goal", "run", "--fresh", "--yes", "--headless", "--file", plan, *_limit(keys, "--iterations")]]


def _limit(keys: Keys, option: str) -> list[str]:
    return [option, str(keys["max_iterations"])] if "max_iterations" in keys else []


_WORDS: dict[str, Callable[[Keys, str], list[list[str]]]] = {"ooda": _procedure, "reflex": _reflex, "goal": _goal}
