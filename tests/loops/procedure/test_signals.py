"""Signals: the agent is ended, the state is saved, the message says how to continue, no process is left."""

import signal
import sys
import time

import pytest

from tests.kit.stalled import Stalled
from tests.kit.workspace import SUMMARY, Workspace, alive, masked, until

ENDINGS = [("INT", 130), ("TERM", 143), ("HUP", 143)]


@pytest.mark.parametrize(("name", "code"), ENDINGS)
@pytest.mark.parametrize("procedure", ["build", "deep-clean"])
def test_O_025_O_026_O_066_O_065_a_signal_during_a_call(bare: Workspace, procedure: str, name: str, code: int) -> None:
    """INT, TERM and HUP end agent and loop: state saved, the resume command named, the fitting code, no traceback."""
    bare.procedure(procedure)
    bare.side(2, 'sleep 30 & echo $! >"$FAKE/child"\nkill -' + name + " $PPID\nwait")
    ran = bare.rooda(procedure, "-n", "4")
    assert ran.code == code
    assert masked(ran.lines)[-2:] == [
        "[T] Iteration 2/4 starting...",
        f"[T] Interrupted. State saved. Resume with: rooda resume {procedure}",
    ]
    assert masked(ran.err.splitlines())[0].startswith("[T] Stopping: the agent has 5 s.")
    state = bare.state(procedure)
    assert (state["status"], state["iteration"], state["consecutive_failures"]) == ("interrupted", 2, 0)
    assert not alive(bare.calls[1].pid)
    assert not alive(int(bare.read("../fake/child")))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_O_051_OA_01_handlers_before_the_first_line(ws: Workspace, number: int, code: int) -> None:
    """A signal that arrives while the very first line is being written ends the loop in order; nothing is closed."""
    run = Stalled(ws, "build", "-n", "4", room=0)
    until(ws.events, what="the run to have begun")
    run.signal(number)
    lines = masked(run.drain())
    assert run.code == code
    assert lines == [
        "[T] Starting procedure: build (max 4 iterations)",
        "[T] Interrupted. State saved. Resume with: rooda resume build",
    ]
    assert [line for line in run.err.splitlines() if not SUMMARY.search(line)] == []
    state = ws.state()
    assert (state["status"], state["iteration"], state["elapsed_per_iteration"]) == ("interrupted", 0, [])
    assert ws.calls == []


@pytest.mark.skipif(sys.platform != "linux", reason="needs a pipe of a known size")
def test_OA_01_a_signal_before_the_call_closes_nothing(ws: Workspace) -> None:
    """A signal while `Iteration 1/4 starting...` is being written: no agent is started, no iteration counted."""
    first = "[00:00:00] Starting procedure: build (max 4 iterations)\n"
    run = Stalled(ws, "build", "-n", "4", room=len(first))
    until(lambda: "iteration.started" in [record["event"] for record in ws.events()], what="the iteration to begin")
    run.signal(signal.SIGINT)
    lines = masked(run.drain())
    assert run.code == 130
    assert lines[1:] == [
        "[T] Iteration 1/4 starting...",
        "[T] Interrupted. State saved. Resume with: rooda resume build",
    ]
    state = ws.state()
    assert (state["status"], state["iteration"], state["elapsed_per_iteration"]) == ("interrupted", 0, [])
    assert ws.calls == []


def test_OA_01_the_killed_iteration_is_closed(ws: Workspace) -> None:
    """Killed in 5 of 10: the counter is 5, the durations are five, and resume continues with 6."""
    ws.exits(0, 0, 0, 1)
    ws.copy_state_at(5)
    ws.signal_at(5)
    assert ws.rooda("build", "-n", "10").code == 130
    state = ws.state()
    assert ws.copies[5]["iteration"] == 4
    assert (state["iteration"], len(state["elapsed_per_iteration"]), state["consecutive_failures"]) == (5, 5, 1)
    assert state["last_iteration_at"] >= ws.copies[5]["last_iteration_at"]
    ran = ws.rooda("resume", "build")
    assert masked(ran.lines)[0] == "[T] Resuming procedure: build from iteration 5 (max 10)"
    assert masked(ran.lines)[2] == "[T] Iteration 6/10 starting..."
    assert len(ws.calls) == 10


def test_OA_01_the_last_iteration_may_be_the_killed_one(ws: Workspace) -> None:
    """Killed in 2 of 2: interrupted all the same; resume finds nothing left to do and completes."""
    ws.signal_at(2)
    assert ws.rooda("build", "-n", "2").code == 130
    assert (ws.state()["status"], ws.state()["iteration"]) == ("interrupted", 2)
    ran = ws.rooda("resume", "build")
    assert ran.code == 0
    assert [line[11:41] for line in ran.lines] == [
        "Resuming procedure: build from",
        "Previous session: 2 iterations",
        "Reached max iterations: 2 (tot",
    ]
    assert len(ws.calls) == 2
    assert ws.state() is None


def test_OA_02_the_agent_is_asked_first(ws: Workspace) -> None:
    """An agent gets TERM, and time to put its things in order before it must go."""
    ws.side(1, "trap 'sleep 0.1; echo tidied >tidied; exit 0' TERM\nkill -INT $PPID\nwhile :; do sleep 0.02; done")
    assert ws.rooda("build", "-n", "3").code == 130
    assert ws.exists("tidied")


def test_OA_02_a_stubborn_agent_is_killed(ws: Workspace) -> None:
    """An agent that ignores TERM is killed after the grace, its children with it, and the iteration is closed."""
    ws.procedure(keys="kill_grace = 0.2\n")
    ws.side(1, "trap '' TERM\nsleep 31 &\nkill -INT $PPID\nwhile :; do sleep 0.1; done")
    ran = ws.rooda("build", "-n", "3")
    assert ran.code == 130
    assert (ws.state()["status"], ws.state()["iteration"]) == ("interrupted", 1)
    assert not alive(ws.calls[0].pid)
    assert ws.leftovers() == []


def test_E_23_one_grace_covers_the_whole_tree(ws: Workspace) -> None:
    """A child outside the agent's group gets TERM while the agent still has its time; both ignore it and are killed."""
    grace = 2.0
    ws.procedure(keys=f"kill_grace = {grace}\n")
    child = 'trap "kill -0 $AGENT && echo asked >asked" TERM; echo >ready; while :; do sleep 0.05; done'
    ws.side(1, f"AGENT=$$ setsid sh -c '{child}' &\ntrap '' TERM\nwhile :; do sleep 0.1; done")
    running = ws.start("build", "-n", "3")
    until(lambda: ws.exists("ready"), what="the child to be ready")
    began = time.monotonic()
    running.signal(signal.SIGINT)
    until(lambda: "Stopping: the agent has 2 s. Press Ctrl+C again to end it now." in running.err, what="the answer")
    assert running.process.poll() is None
    assert running.finish() == 130
    assert time.monotonic() - began < 2 * grace  # two graces, one after the other, would take longer
    assert ws.exists("asked") and ws.leftovers() == []
    stopping = next(event for event in ws.events() if event["event"] == "stopping")
    assert (stopping["signal"], stopping["grace"], stopping["what"]) == (signal.SIGINT, grace, "agent")


def test_OA_02_a_second_signal_skips_the_grace(ws: Workspace) -> None:
    """While a stubborn agent is given its time, a second signal ends it at once; the first decides the code."""
    ws.procedure(keys="kill_grace = 600\n")
    ws.side(1, "trap 'echo asked >asked' TERM\nwhile :; do sleep 0.05; done")
    running = ws.start("build", "-n", "3")
    ws.wait_calls(1)
    running.signal(signal.SIGTERM)
    until(lambda: ws.exists("asked"), what="the agent to be asked")
    assert running.process.poll() is None
    running.signal(signal.SIGINT)
    assert running.finish() == 143
    assert ws.state()["status"] == "interrupted"
    assert not alive(ws.calls[0].pid)


def test_O_065_every_ending_has_its_code(ws: Workspace) -> None:
    """Completed is 0, aborted 1, wrong usage 2, undecided 3, INT 130, TERM 143."""
    assert ws.rooda("build", "-n", "1").code == 0
    assert ws.rooda("build", "-n", "5", env={"FAKE_EXIT": "1"}).code == 1
    assert ws.rooda("build", "--no-such-option").code == 2
    made = len(ws.calls)
    ws.signal_at(made + 1)
    assert ws.rooda("build", "-n", "5").code == 130
    assert ws.rooda("build", "-n", "5").code == 3
    ws.signal_at(made + 2, "TERM")
    assert ws.rooda("build", "-n", "5", "--fresh").code == 143
