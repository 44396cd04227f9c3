"""Job control, signals to the whole group, signals at start-up: the user at a terminal, a service manager, a shell."""

import os
import random
import shlex
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.kit.stalled import Stalled
from tests.kit.swarm import loop_of
from tests.kit.workspace import Running, Terminal, Workspace, until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
WORK = 'while [ ! -e "$FAKE/enough" ]; do echo t >>"$FAKE/ticks"; sleep 0.02; done'
TIDY = 'trap \'echo asked >>"$FAKE/asked"; sleep 0.4; echo tidied >"$FAKE/tidied"; exit\' TERM\n'
READY = ': >"$FAKE/ready"; while :; do sleep 0.02; done'


def state_of(pid: int) -> str:
    """The letter of /proc/PID/stat; T is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


def ticks(ws: Workspace) -> int:
    path = Path(ws.fake, "ticks")
    return path.stat().st_size if path.exists() else 0


def await_ticks(ws: Workspace, count: int) -> None:
    until(lambda: ticks(ws) >= count, what="the agent to go on")


def await_stopped(*pids: int) -> None:
    """D: a shell that waits, between vfork and exec, for a child which is stopped: as still as T."""
    until(lambda: all(state_of(pid) in ("T", "D") for pid in pids), what="all to stop")


def await_word(terminal: Terminal, word: str, times: int = 1) -> None:
    until(lambda: terminal.out.count(word) == times, what=word)


def shell(ws: Workspace) -> Terminal:
    """An interactive shell with job control on a terminal."""
    env = ws.env | {"TERM": "dumb", "PS1": "$ ", "HISTFILE": "/dev/null"}
    terminal = Terminal(["/usr/bin/env", "bash", "--norc", "--noprofile", "-i"], env, ws.path, 24, 200)
    ws.running.append(terminal)
    return terminal


def test_suspend_and_continue_from_a_shell(ws: Workspace) -> None:
    """Ctrl+Z stops guardian, loop and agent; `fg` continues them; the pause counts for no timeout."""
    ws.procedure(keys="iteration_timeout = 1.5\nidle_timeout = 1.2\n")
    ws.side(1, WORK)
    terminal = shell(ws)
    terminal.type(shlex.join(ws.command("build", "-n", "1")) + "; echo code=$?\n")
    until(lambda: ticks(ws), what="the agent to work")
    agent = ws.wait_calls(1)[0]
    guardian = int(Path(f"/proc/{agent.ppid}/stat").read_text().rpartition(") ")[2].split()[1])
    for turn in range(2):
        terminal.type("\x1a")
        await_stopped(guardian, agent.ppid, agent.pid)
        await_word(terminal, "Stopped", turn + 1)
        done = ticks(ws)
        time.sleep(1.0)
        assert ticks(ws) <= done + 2  # a tick that was under way
        terminal.type("fg\n")
        await_ticks(ws, done + 8)
    Path(ws.fake, "enough").touch()
    until(lambda: "Reached max iterations: 1" in terminal.out, what="the end")
    assert [event["ended"] for event in ws.events() if event["event"] == "agent.ended"] == ["exit"]
    assert float(next(event["elapsed"] for event in ws.events() if event["event"] == "agent.ended")) < 1.5
    terminal.type("exit\n")
    terminal.finish()


def test_stopped_in_the_background_of_a_shell_that_leaves(ws: Workspace) -> None:
    """The terminal is closed over a stopped run: it is continued by the hang-up and ends in order."""
    ws.side(1, WORK)
    terminal = shell(ws)
    terminal.type(shlex.join(ws.command("build", "-n", "1")) + "\n")
    until(lambda: ticks(ws), what="the agent to work")
    agent = ws.wait_calls(1)[0]
    terminal.type("\x1a")
    until(lambda: state_of(agent.pid) == "T" and "Stopped" in terminal.out, what="the agent to stop")
    os.kill(terminal.pid, signal.SIGHUP)
    until(lambda: ws.leftovers() == [], what="everybody to be gone")
    assert ws.state()["status"] == "interrupted"


def test_TSTP_and_CONT_to_the_visible_pid(ws: Workspace) -> None:
    """Without a terminal: kill -TSTP stops all three, kill -CONT continues them."""
    ws.side(1, WORK)
    running = ws.start("build", "-n", "1")
    until(lambda: ticks(ws), what="the agent to work")
    agent = ws.wait_calls(1)[0]
    for _ in range(3):
        running.signal(signal.SIGTSTP)
        await_stopped(running.pid, agent.ppid, agent.pid)
        done = ticks(ws)
        running.signal(signal.SIGCONT)
        await_ticks(ws, done + 6)
    Path(ws.fake, "enough").touch()
    assert running.finish() == 0


def test_a_loop_that_stops_after_a_continue_is_woken(ws: Workspace) -> None:
    """While the guardian is awake the loop is: the process that stops it, or however late it stops itself."""
    ws.side(1, READY)
    running = ws.start("build", "-n", "1")
    ready(ws)
    loop = ws.wait_calls(1)[0].ppid
    os.kill(loop, signal.SIGSTOP)
    until(lambda: state_of(loop) != "T", what="the loop to be woken")
    os.kill(loop, signal.SIGSTOP)
    running.signal(signal.SIGTERM)
    assert running.finish() == 143


def test_a_suspension_between_calls_does_not_stop_the_next_call(ws: Workspace) -> None:
    """Suspended and continued while no agent runs: the next call is not suspended for good."""
    run = Stalled(ws, "build", "-n", "1", room=0)
    until(ws.events, what="the run to have begun")
    loop = loop_of(run.process.pid)
    run.process.send_signal(signal.SIGTSTP)
    until(lambda: state_of(run.process.pid) == "T", what="the guardian to stop")
    run.process.send_signal(signal.SIGCONT)
    until(lambda: state_of(run.process.pid) != "T" and state_of(loop) != "T", what="both to go on")
    run.drain()
    assert run.code == 0
    assert len(ws.calls) == 1


def asked_and_tidied(ws: Workspace) -> tuple[int, bool]:
    """How often the agent was asked, and whether it was given the time it needs."""
    return len(Path(ws.fake, "asked").read_text().splitlines()), Path(ws.fake, "tidied").exists()


def ready(ws: Workspace) -> None:
    until(lambda: Path(ws.fake, "ready").exists(), what="the agent to be ready")


def test_OA_44_ctrl_c_on_a_terminal_counts_once(ws: Workspace) -> None:
    """It reaches guardian and loop; the agent is asked once and has its grace."""
    ws.side(1, TIDY + READY)
    terminal = ws.terminal("build", "-n", "2")
    ready(ws)
    terminal.type("\x03")
    assert terminal.finish() == 130
    assert asked_and_tidied(ws) == (1, True)


def test_OA_44_ctrl_c_twice_skips_the_grace(ws: Workspace) -> None:
    """An agent with ten minutes to tidy up is ended by the second Ctrl+C, with a child of its own that ignores all."""
    ws.procedure(keys="kill_grace = 600\n")
    ws.side(1, "trap 'echo asked >>\"$FAKE/asked\"' TERM\n(trap '' TERM; exec setsid sleep 1000) &\n" + READY)
    terminal = ws.terminal("build", "-n", "2")
    ready(ws)
    terminal.type("\x03")
    until(lambda: Path(ws.fake, "asked").exists(), what="the agent to be asked")
    terminal.type("\x03")
    assert terminal.finish() == 130
    assert ws.leftovers() == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)])
def test_OA_44_a_signal_to_the_whole_group_counts_once(ws: Workspace, number: int, code: int) -> None:
    """As service managers and `kill -- -PGID` send it."""
    ws.side(1, TIDY + READY)
    running = ws.start("build", "-n", "2")
    ready(ws)
    os.killpg(running.pid, number)
    assert running.finish() == code
    assert asked_and_tidied(ws) == (1, True)


def test_under_nohup_a_hang_up_is_ignored(ws: Workspace) -> None:
    """A user who starts rooda with SIGHUP ignored wants it to outlive the terminal; SIGTERM still ends it."""
    ws.side(1, 'until [ -e "$FAKE/enough" ]; do sleep 0.02; done')
    ws.side(2, READY)
    real = ws.command
    ws.command = lambda *words: ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh", *real(*words)]  # type: ignore[method-assign]
    running = ws.start("build", "-n", "2")
    ws.wait_calls(1)
    os.killpg(running.pid, signal.SIGHUP)
    running.signal(signal.SIGHUP)
    Path(ws.fake, "enough").touch()
    ready(ws)
    running.signal(signal.SIGTERM)
    assert running.finish() == 143
    assert (ws.state()["iteration"], ws.state()["status"]) == (2, "interrupted")


def at_start_up(ws: Workspace, delay: float) -> None:
    """SIGTERM so long after exec: 143 (or killed by it, before Python listens), and nothing left."""
    ws.procedure(loop={"ai_cmd": "sleep 1000"})
    running: Running = ws.start("build", "-n", "1", "--fresh")
    time.sleep(delay)
    running.signal(signal.SIGTERM)
    assert running.finish() in (143, -signal.SIGTERM), running.both
    assert ws.leftovers() == []
    assert "Traceback" not in running.both
    state = ws.state()
    assert state is None or state["status"] == "interrupted", state


@pytest.mark.parametrize("place", range(8))
def test_O_051_a_signal_at_start_up(ws: Workspace, place: int) -> None:
    """Somewhere in the first quarter of a second."""
    at_start_up(ws, (place + random.Random(place).random()) * 0.03)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_signal_at_every_moment_of_start_up(ws: Workspace) -> None:
    """Every 2 ms from exec on, five times over."""
    for _ in range(5):
        for step in range(120):
            at_start_up(ws, step * 0.002)
