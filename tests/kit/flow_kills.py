"""Hold or kill a flow at a chosen answer of its agents, and compare what is left."""

import os
import signal
from pathlib import Path

from .flow import Flow
from .workspace import until


def outcome(flow: Flow) -> tuple[list[str], str, str]:
    """Subjects and bodies, the tree, and the state of the work tree."""
    log = [commit.subject + "\n" + "\n".join(commit.body) for commit in flow.log()]
    return log, flow.ws.git("ls-tree", "-r", "HEAD"), flow.ws.git("status", "--porcelain")


def held(flow: Flow, name: str) -> None:
    """Make this answer reach its gate and wait there."""
    text = flow.scripts.get(name, flow.scripts[f"{name.rpartition('.')[0]}.1"])
    flow.script(name, f"!sh touch {flow.ws.fake}/reached\n!wait {flow.ws.fake}/gate\n{text}")


def kill_at(
    flow: Flow, key: str, number: int = signal.SIGKILL, whole: bool = False, words: tuple[str, ...] = ("do it",)
) -> int:
    """Start, and kill the loop while the agent with this answer works; then the answer is as it was."""
    before = flow.scripts.get(key)
    held(flow, key)
    running = flow.ws.start("flow", "run", *words)
    until(lambda: Path(flow.ws.fake, "reached").exists(), 30, f"{key} to be reached")
    if whole:
        os.killpg(os.getpgid(running.pid), signal.SIGKILL)
    else:
        running.signal(number)
    code = running.finish()
    os.remove(f"{flow.ws.fake}/reached")
    flow.script(key, before) if before is not None else flow.forget(key)
    if not whole:  # else the next start ends them
        until(lambda: not flow.ws.leftovers(), 15, "its agents to be gone")
    return code
