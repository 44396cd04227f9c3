"""Pause, continue, stop and signals that cross each other, or the beginning or the end of a run."""

import os
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.kit.workspace import Workspace, until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
BUSY = "for i in $(seq 300); do sleep 1000 & done; touch began; wait"
HOOK = "touch ended; while [ ! -e go ]; do sleep 0.02; done"


def state_of(pid: int) -> str:
    """The letter of /proc/PID/stat; T is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


def child_of(pid: int) -> int:
    return int(until(lambda: Path(f"/proc/{pid}/task/{pid}/children").read_text().split(), what="a child")[0])


def at_its_end(ws: Workspace, name: str = "build") -> None:
    """The run has said its last word, and waits for a hook that the test lets go."""
    ws.procedure(name)
    ws.config(f"{ws.read('rooda.toml')}\n[hooks]\ndone = {{ command = '{HOOK}', timeout = 60 }}\n")
    assert ws.rooda(name, "-n", "1", "--detach").code == 0
    until(lambda: ws.exists("ended"), what="the hook")


def test_a_pause_at_the_end_leaves_no_process(ws: Workspace) -> None:
    """It comes while the last snapshot is made: the loop ends, and its guardian does not stay behind, asleep."""
    ws.git("init", "-q")
    ws.side(1, "touch worked")
    held = "if [ -e worked ]; then touch held; while [ ! -e go ]; do sleep 0.02; done; fi\n"
    ws.write("bin/git", f'#!/bin/sh\n{held}exec {shutil.which("git")} "$@"\n', 0o755)
    run = ws.start("build", "-n", "1", "--safety", "snapshot", env={"PATH": f"{ws.file('bin')}:{ws.env['PATH']}"})
    until(lambda: ws.exists("held"), what="the last snapshot")
    run.signal(signal.SIGTSTP)
    until(lambda: state_of(run.pid) == "T", what="the guardian to stand still")
    ws.write("go", "")
    assert run.finish(10) == 0


def test_a_run_that_ends_by_itself_is_not_called_stopped(ws: Workspace) -> None:
    """`stop` and `continue` that come so late say that it has ended; names keep their letters."""
    at_its_end(ws, "Audit")
    assert ws.rooda("continue").out == "Procedure 'Audit' is not paused. Watch it with: rooda attach Audit\n"
    stop = ws.start("stop")
    until(lambda: "order" in os.listdir(ws.file(f".rooda/runs/{os.listdir(ws.file('.rooda/runs'))[0]}")), what="stop")
    ws.write("go", "")
    assert stop.finish() == 0
    assert stop.out == "Procedure 'Audit' has ended; there is nothing to resume.\n"


def test_a_continue_while_a_pause_is_carried_out(ws: Workspace) -> None:
    """Its agents are suspended and the loop is not yet: a continue at that moment is not followed by a suspension."""
    ws.write("agent.sh", BUSY)
    assert ws.rooda("build", "-n", "1", "--ai-cmd", "bash agent.sh", "--detach").code == 0
    until(lambda: ws.exists("began"), what="the agents")
    guardian = ws.json(".rooda/state/build.lock")["pid"]
    loop = child_of(guardian)
    agent = child_of(loop)
    for _ in range(10):
        os.kill(guardian, signal.SIGTSTP)
        while state_of(agent) != "T":
            pass
        os.kill(guardian, signal.SIGCONT)
        until(lambda: "T" not in {state_of(guardian), state_of(loop), state_of(agent)}, what="all to go on")
        time.sleep(0.01)  # what has gone on stays so
        assert "T" not in {state_of(guardian), state_of(loop)}
    assert ws.rooda("stop", "--now").out.startswith("Stopped procedure 'build'.")


def test_a_stop_wakes_a_loop_paused_after_it(ws: Workspace) -> None:
    """The agent takes its time to end; a pause in that time does not keep the run."""
    ends = "touch asked; while [ ! -e go ]; do sleep 0.02; done; exit"
    ws.write("agent.sh", f"trap '{ends}' TERM; touch began; while :; do sleep 0.02; done")
    ws.procedure(loop={"kill_grace": 60})
    assert ws.rooda("build", "-n", "1", "--ai-cmd", "sh agent.sh", "--detach").code == 0
    until(lambda: ws.exists("began"), what="the agent")
    guardian = ws.json(".rooda/state/build.lock")["pid"]
    stop = ws.start("stop")
    until(lambda: ws.exists("asked"), what="the agent to be asked")
    os.kill(guardian, signal.SIGTSTP)
    ws.write("go", "")
    assert stop.finish(10) == 0 and stop.out.startswith("Stopped procedure 'build'."), stop.both


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_start_ended_before_the_run_begins(ws: Workspace, number: int, code: int) -> None:
    """If `rooda build --detach` is ended while it starts, no run appears in the background later."""
    ws.write("bin/slow", "#!/bin/sh\ntouch asked; while [ ! -e go ]; do sleep 0.02; done\n", 0o755)
    ws.config(f'[agents.slow]\ncommand = "{ws.file("bin/slow")}"\nversion = "--version"\n')
    starting = ws.start("build", "--agent", "slow", "--verbose", "--detach")
    until(lambda: ws.exists("asked"), what="the start to be under way")
    starting.signal(number)
    assert starting.finish() == code, starting.both
    ws.write("go", "")
    until(lambda: ws.leftovers() == [], what="everybody to be gone")
    assert "Started" not in starting.out and not ws.calls
