"""Hold or kill a flow at a chosen answer of its agents, and compare what is left."""

import os
import shutil
import signal
from pathlib import Path

from .flow import Flow
from .workspace import until


def outcome(flow: Flow) -> tuple[list[str], str, str]:
    """Subjects and bodies, the tree, and the state of the work tree."""
    log = [commit.subject + "\n" + "\n".join(commit.body) for commit in flow.log()]
    return log, flow.ws.git("ls-tree", "-r", "HEAD"), flow.ws.git("status", "--porcelain")


def held(flow: Flow, key: str, after: bool = False) -> None:
    """Make this answer reach its gate and wait there; `after`: when its file has been written."""
    script = Path(flow.ws.fake, key)
    if not script.exists():
        shutil.copy(script.with_suffix(".1"), script)
    wait = f"!sh touch {flow.ws.fake}/reached\n!wait {flow.ws.fake}/gate\n"
    script.write_text(wait + script.read_text())


def kill_at(
    flow: Flow, key: str, number: int = signal.SIGKILL, whole: bool = False, words: tuple[str, ...] = ("do it",)
) -> int:
    """Start, and kill the loop while the agent with this answer works; then the answer is as it was."""
    script = Path(flow.ws.fake, key)
    before = script.read_text() if script.exists() else None
    held(flow, key)
    running = flow.ws.start("flow", "run", *words)
    until(lambda: Path(flow.ws.fake, "reached").exists(), 30, f"{key} to be reached")
    if whole:
        os.killpg(os.getpgid(running.pid), signal.SIGKILL)
    else:
        running.signal(number)
    code = running.finish()
    os.remove(f"{flow.ws.fake}/reached")
    script.write_text(before) if before is not None else script.unlink()
    if not whole:  # else the next start ends them
        until(lambda: not flow.ws.leftovers(), 15, "its agents to be gone")
    return code
