"""The fine print: disks that refuse, states that lack something, limits of a resumed run, a killed guardian."""

import json
import os
import shlex
import shutil
import signal
import sys

import pytest

from tests.kit.stalled import Stalled
from tests.kit.workspace import SAMPLE, Workspace, masked, until


def test_a_rooda_folder_that_cannot_be(ws: Workspace) -> None:
    """With a file in the place of `.rooda` the loop uses a private folder, and says so once per iteration at most."""
    ws.write(".rooda", "in the way\n")
    ran = ws.rooda("build", "-n", "3")
    assert ran.code == 0 and len(ws.calls) == 3
    assert masked(ran.lines)[-1] == "[T] Reached max iterations: 3 (total: D)"
    assert 1 <= ran.err.count("writing files of this run to") <= 3
    assert ws.read(".rooda") == "in the way\n" and "Traceback" not in ran.both
    folder = next(line for line in ran.err.splitlines() if "writing files of this run to" in line).rpartition(" ")[2]
    assert os.stat(folder).st_mode & 0o077 == 0
    shutil.rmtree(folder)


def test_an_interruption_that_cannot_be_saved(ws: Workspace) -> None:
    """Where no state can be written the last line does not promise a resume."""
    ws.write(".rooda", "in the way\n")
    ws.signal_at(1)
    ran = ws.rooda("build", "-n", "3")
    assert ran.code == 130
    assert masked(ran.lines)[-1] == "[T] Interrupted. State could not be saved."


def test_a_lock_that_cannot_be(ws: Workspace) -> None:
    """An unwritable lock file is reported and does not stop the start."""
    os.makedirs(ws.file(".rooda/state/build.lock/x"))
    ran = ws.rooda("build", "-n", "2")
    assert ran.code == 0 and len(ws.calls) == 2
    assert "build.lock can't be locked" in ran.err and "Traceback" not in ran.err


@pytest.mark.parametrize("key", [key for key in SAMPLE if key != "last_iteration_at"])
def test_a_state_without_a_key_is_damaged(ws: Workspace, key: str) -> None:
    """A missing key: resume keeps the bytes and exits 2, build warns and starts fresh."""
    text = json.dumps({name: value for name, value in SAMPLE.items() if name != key})
    ws.write(".rooda/state/build.json", text)
    ran = ws.rooda("resume", "build")
    assert ran.code == 2 and key in ran.err and "rooda build" in ran.err
    assert ws.read(".rooda/state/build.json.corrupt") == text and not ws.exists(".rooda/state/build.json")
    ws.write(".rooda/state/build.json", text)
    ran = ws.rooda("build", "-n", "1")
    assert ran.code == 0 and "WARNING" in ran.err and "Iteration 1/1 starting" in ran.out


@pytest.mark.parametrize(
    ("words", "bound"), [((), "max 10"), (("-n", "4"), "max 4"), (("-u", "--ai-cmd", "false"), "unlimited iterations")]
)
def test_M11_shows_the_limit_in_force(ws: Workspace, words: tuple[str, ...], bound: str) -> None:
    """A resumed run begins with the limit that it goes by, not with the saved one."""
    ws.put_state()
    lines = masked(ws.rooda("resume", "build", *words).lines)
    assert lines[0] == f"[T] Resuming procedure: build from iteration 3 ({bound})"


def test_the_budget_warning_has_its_place(ws: Workspace) -> None:
    """The warning is after M03 and before the call is made, in every iteration."""
    ws.procedure("build", loop={"token_budget": 7})
    ws.side(1, "until [ -e go ]; do sleep 0.01; done")
    run = ws.start("build", "-n", "2")
    ws.wait_calls(1)
    before = masked(run.lines)
    ws.write("go", "")
    assert run.finish() == 0
    warning = "[T] WARNING: Prompt exceeds token budget: 30 > 7"
    assert before[1:] == ["[T] Iteration 1/2 starting...", warning]
    assert masked(run.lines)[4:6] == ["[T] Iteration 2/2 starting...", warning]


def test_a_signal_just_before_a_gate(ws: Workspace) -> None:
    """A signal that arrives between the agent's end and the gate's start is not lost: the gate is ended at once."""
    ws.procedure("build", gates={"slow": "sleep 60"})
    ws.side(1, "until [ -e go ]; do sleep 0.01; done")
    run = Stalled(ws, "build", "--json")
    ws.wait_calls(1)
    run.fill()
    ws.write("go", "")
    until(lambda: any(event["event"] == "agent.ended" for event in ws.events()), what="the agent's end")
    os.kill(ws.calls[0].ppid, signal.SIGINT)  # the loop itself: what goes through the guardian may come later
    run.drain()
    assert run.code == 130
    state = ws.state()
    assert state is not None
    assert (state["status"], state["iteration"], state["consecutive_failures"]) == ("interrupted", 1, 0)


def test_no_process_outlives_a_killed_guardian(ws: Workspace) -> None:
    """KILL of the process that the user sees: the agent and its children end, and the run can continue."""
    ws.side(1, "sleep 60 & wait")
    run = ws.start("build", "-n", "3")
    ws.wait_calls(1)
    run.signal(signal.SIGKILL)
    assert run.finish() == -9
    until(lambda: not ws.leftovers(), what="everybody to be gone")
    ran = ws.rooda("resume", "build")
    assert ran.code == 0, ran.both
    assert masked(ran.lines)[-1] == "[T] Reached max iterations: 3 (total: D)"


def test_a_child_in_its_own_session_is_swept(ws: Workspace) -> None:
    """What an agent started in a session of its own is ended when the run is over."""
    ws.write("child.py", "import os, time\nos.setsid()\nopen('ready', 'w').close()\ntime.sleep(60)\n")
    ws.side(1, f"{shlex.quote(sys.executable)} child.py & until [ -e ready ]; do sleep 0.01; done")
    ran = ws.rooda("build", "-n", "1")
    assert ran.code == 0
    until(lambda: not ws.leftovers(), what="the child to be gone")
