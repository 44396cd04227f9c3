"""The edge-case table: Ctrl+C during a call, between calls, and at the very moment a call ends."""

import fcntl
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.kit.workspace import SAMPLE, Ran, Workspace, alive, masked, until


def test_O_069_a_signal_ends_the_agent_and_what_it_started(ws: Workspace) -> None:
    """The agent of the second call and its child are gone, the state says interrupted, and resume works."""
    ws.side(2, 'sleep 60 & echo $! >"$FAKE/child"; kill -INT $PPID; wait')
    ran = ws.rooda("build", "--max-iterations", "4")
    state = ws.state()
    assert ran.code == 130
    assert state is not None and (state["status"], state["iteration"]) == ("interrupted", 2)
    assert not alive(ws.calls[1].pid)
    assert not alive(int(Path(ws.fake, "child").read_text()))
    again = ws.rooda("resume", "build")
    assert (again.code, len(ws.calls), ws.state()) == (0, 4, None)


def pipe_with_room(room: int) -> tuple[int, int]:
    """A pipe that takes `room` more bytes; a writer of more waits for the reader."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        capacity = fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
    else:
        capacity = os.write(write, bytes(1 << 20))
        os.read(read, capacity)
    os.write(write, b"\n" * (capacity - room))
    os.set_blocking(write, True)
    return read, write


def test_O_070_a_signal_between_iterations_closes_nothing(ws: Workspace) -> None:
    """While the reader holds up the progress line of iteration 1 no agent runs; Ctrl+C then leaves one iteration."""
    before = "[10:00:00] Starting procedure: build (max 4 iterations)\n[10:00:00] Iteration 1/4 starting...\n"
    read, write = pipe_with_room(len(before) + 10)
    errors = Path(ws.root, "errors")
    with open(errors, "wb") as err:
        argv = ws.command("build", "--max-iterations", "4")
        loop = subprocess.Popen(argv, cwd=ws.path, env=ws.env, stdout=write, stderr=err, stdin=subprocess.DEVNULL)
    os.close(write)
    try:
        until(lambda: any(event["event"] == "iteration.ended" for event in ws.events()), what="the end of iteration 1")
        os.kill(ws.calls[0].ppid, signal.SIGINT)  # the loop itself: passed on by its guardian it could come too late
        with os.fdopen(read, "rb") as pipe:
            out = pipe.read().decode().strip("\n")
        assert loop.wait(30) == 130
    finally:
        loop.kill()
        loop.wait()
    assert masked(out.splitlines()) == [
        "[T] Starting procedure: build (max 4 iterations)",
        "[T] Iteration 1/4 starting...",
        "[T] Iteration 1/4 completed in D",
        "[T] Interrupted. State saved. Resume with: rooda resume build",
    ]
    state = ws.state()
    assert state is not None
    assert (state["status"], state["iteration"], len(ws.calls)) == ("interrupted", 1, 1)
    assert Ran(0, "", errors.read_text()).notes == ""


@pytest.mark.parametrize("code", [0, 1, 130])
def test_OA_37_a_signal_during_the_call_beats_its_exit_code(ws: Workspace, code: int) -> None:
    """The agent answers our stop with an exit code of its own: interrupted all the same, closed, and no failure."""
    ws.side(1, f'trap "exit {code}" TERM\nkill -INT $PPID\nwhile :; do sleep 0.02; done')
    ran = ws.rooda("build", "--max-iterations", "3")
    state = ws.state()
    assert ran.code == 130
    assert masked(ran.lines)[1:] == [
        "[T] Iteration 1/3 starting...",
        "[T] Interrupted. State saved. Resume with: rooda resume build",
    ]
    assert state is not None
    assert (state["status"], state["iteration"], state["consecutive_failures"]) == ("interrupted", 1, 0)


@pytest.mark.parametrize("code", [0, 1])
def test_OA_37_signal_and_exit_at_the_same_moment(ws: Workspace, code: int) -> None:
    """An agent that signals the loop and exits at once is interrupted, not judged by its exit code."""
    ws.put_state(consecutive_failures=1)
    ws.side(1, "kill -TERM $PPID")
    ws.exits(code)
    ran = ws.rooda("resume", "build")
    state = ws.state()
    assert ran.code == 143
    assert state is not None
    assert (state["status"], state["iteration"], state["consecutive_failures"]) == ("interrupted", 4, 1)
    assert len(state["elapsed_per_iteration"]) == len(SAMPLE["elapsed_per_iteration"]) + 1


def test_OA_37_exit_130_without_a_signal_to_rooda_is_a_failure(ws: Workspace) -> None:
    """An agent that exits 130 by itself, or dies of an INT of its own group, has failed; the loop continues."""
    ws.exits(130)
    ws.side(2, "kill -INT 0; sleep 30")
    ran = ws.rooda("build", "--max-iterations", "3")
    assert (ran.code, len(ws.calls)) == (0, 3)
    assert [line for line in masked(ran.lines) if "WARNING" in line] == [
        "[T] WARNING: AI CLI failed (exit 130), consecutive failures: 1/3",
        "[T] WARNING: AI CLI failed (exit 130), consecutive failures: 2/3",
    ]


def test_OA_37_only_the_loop_gets_the_terminals_ctrl_c(ws: Workspace) -> None:
    """Ctrl+C on the terminal reaches the loop alone: the agent is asked by TERM and never sees an INT."""
    ws.side(
        1, 'trap "echo INT >>\\"$FAKE/seen\\"" INT\ntrap "echo TERM >>\\"$FAKE/seen\\"; exit" TERM\n: >"$FAKE/ready"'
    )
    ws.side(1, "while :; do sleep 0.02; done")
    terminal = ws.terminal("build", "--max-iterations", "3")
    until(lambda: Path(ws.fake, "ready").exists(), what="the agent to be ready")
    terminal.type("\x03")
    assert terminal.finish() == 130
    assert Path(ws.fake, "seen").read_text() == "TERM\n"
    assert "Interrupted. State saved. Resume with: rooda resume build" in terminal.out


def test_OA_37_a_signal_during_a_gate_counts_the_call(ws: Workspace) -> None:
    """The call had ended already: the iteration is closed, failures stay, and no progress line is shown."""
    ws.procedure(gates={"slow": 'kill -INT $PPID; sleep 30 & wait; touch "$FAKE/gate-survived"'})
    ws.put_state(consecutive_failures=2)
    ran = ws.rooda("resume", "build")
    state = ws.state()
    assert ran.code == 130
    assert masked(ran.lines)[2:] == [
        "[T] Iteration 4/10 starting...",
        "[T] Interrupted. State saved. Resume with: rooda resume build",
    ]
    assert state is not None
    assert (state["status"], state["iteration"], state["consecutive_failures"]) == ("interrupted", 4, 2)
    assert not Path(ws.fake, "gate-survived").exists()
