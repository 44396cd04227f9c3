"""rooda inside an agent of rooda, and a guardian that is killed in odd moments."""

import os
import shlex
import signal
import sys
from pathlib import Path

import pytest

from tests.kit.swarm import WAYS, kill, loop_of
from tests.kit.workspace import Running, Workspace, alive, until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def state_of(pid: int) -> str:
    """The letter of /proc/PID/stat; T is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


def nested(ws: Workspace) -> Running:
    """`build`, whose agent runs `inner`, whose agent works and has a daemon."""
    ws.procedure("inner")
    ws.side(1, f"{shlex.join(ws.command('inner', '-n', '1'))} </dev/null")
    ws.side(2, '(setsid sleep 1000 &) ; : >"$FAKE/ready"; sleep 1001')
    running = ws.start("build", "-n", "1")
    until(lambda: Path(ws.fake, "ready").exists(), what="the inner agent to work")
    return running


@pytest.mark.parametrize("way", ["INT", "TERM", "KILL-loop"])
def test_a_run_inside_a_run_ends_with_it(ws: Workspace, way: str) -> None:
    """The inner run is asked to end like any agent, saves its state, and no process of either is left."""
    running = nested(ws)
    kill(running.pid, way)
    assert running.finish() == WAYS[way], running.both
    assert ws.leftovers() == []
    assert ws.state("inner")["status"] == "interrupted"


def test_a_run_inside_a_killed_run_is_ended_by_the_next(ws: Workspace) -> None:
    """No process above the inner run is left; the next start of the outer one ends it, its guardian and its agent."""
    running = nested(ws)
    inner = ws.wait_calls(2)
    kill(running.pid, "KILL-group")
    running.finish()
    assert alive(inner[1].pid)
    assert ws.rooda("resume", "build", "--ai-cmd", "true").code == 0
    assert ws.leftovers() == []


def test_a_suspended_run_whose_guardian_is_killed(ws: Workspace) -> None:
    """The loop sleeps by Ctrl+Z, and so does its agent: the death of the guardian wakes and ends both."""
    ws.side(1, ': >"$FAKE/ready"; while :; do sleep 0.02; done')
    running = ws.start("build", "-n", "1")
    until(lambda: Path(ws.fake, "ready").exists(), what="the agent to work")
    loop = loop_of(running.pid)
    running.signal(signal.SIGTSTP)
    pids = (running.pid, loop, ws.calls[0].pid)
    stopped = (["T", "T", "T"], ["T", "T", "D"])  # D: a shell whose vforked child is stopped
    until(lambda: [state_of(pid) for pid in pids] in stopped, what="all to stop")
    os.kill(running.pid, signal.SIGKILL)
    running.finish()
    until(lambda: ws.leftovers() == [], what="everybody to be gone")
