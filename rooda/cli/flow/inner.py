"""A composite actuator that is a loop of another kind: rooda runs it, with the controller's plan as its task."""

import shlex
import sys
from collections.abc import Callable

from rooda.errors import FAILED, USAGE, Interrupted
from rooda.model import Agent, Command
from rooda.policy.flow_records import Action, Job, NodeFailed
from rooda.world import files
from rooda.world.session import Session


def loop_of(agent: Agent) -> Callable[[Session, Job, int, str], Action]:
    """The seam between a flow and the other kinds: work at the plan, say in a sentence what became of it."""

    def work(session: Session, job: Job, number: int, plan: str) -> Action:
        keys = dict(job.node.loop)
        name = str(keys.get("procedure", "build"))
        words = _words(name, keys, session.folder.write(f"{number:04d}-plan.md", files.to_bytes(plan)))
        whose = {"ROODA_LOOP_AGENT": agent.name} if agent.name else {"ROODA_LOOP_AI_CMD": agent.command}
        ran = session.run((Command(shlex.join(words), f"loop-{name}", number=number, env=whose),))[0]
        if ran.ended == "interrupted":
            raise Interrupted(session.signalled())
        if ran.code in (FAILED, USAGE):
            said = files.tail(ran.output, 400).decode("utf-8", "replace").strip().splitlines() or [f"exit {ran.code}"]
            raise NodeFailed(f"the procedure {name} failed", said[-1])
        return Action(f"{name}: {'completed' if ran.code == 0 else f'ended with exit {ran.code}'}")

    return work


def _words(name: str, keys: dict[str, object], plan: str) -> list[str]:
    """The procedure's own settings come first; where it has none, it has the flow's agent."""
    words = [sys.executable, "-m", "rooda", "run", name, "--fresh", "--context", plan]
    return words + (["--max-iterations", str(keys["max_iterations"])] if "max_iterations" in keys else [])
