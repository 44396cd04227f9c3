"""What counts as a failure, how failures add up, and what the agent's end looks like."""

import os
import shutil
import signal

import pytest

from tests.kit.stalled import Stalled
from tests.kit.workspace import FAKE_AI, Workspace, alive, masked, until


def warnings(lines: list[str]) -> list[str]:
    """The warnings, without their stamps."""
    return [line[11:] for line in lines if "WARNING" in line]


def failed(code: int, count: int, threshold: int = 3) -> str:
    """The warning of a failed call."""
    return f"WARNING: AI CLI failed (exit {code}), consecutive failures: {count}/{threshold}"


def test_O_015_O_058_the_exit_status_is_read(bare: Workspace) -> None:
    """One failing call among good ones gives one warning with its code, before its own completed line."""
    bare.procedure("refactor")
    bare.exits(0, 7, 0)
    ran = bare.rooda("refactor", "--max-iterations", "3")
    assert ran.code == 0
    assert warnings(ran.lines) == [failed(7, 1)]
    assert masked(ran.lines)[3:6] == [
        "[T] Iteration 2/3 starting...",
        "[T] " + failed(7, 1),
        "[T] Iteration 2/3 completed in D",
    ]


@pytest.mark.parametrize(
    ("arguments", "count"), [((), 3), (("--failure-threshold", "2"), 2), (("--failure-threshold", "5"), 5)]
)
def test_O_016_O_053_the_threshold_aborts(ws: Workspace, arguments: tuple[str, ...], count: int) -> None:
    """A run of failures as long as the threshold, three by default, ends the loop with an error and exit 1."""
    ran = ws.rooda("build", "-n", "9", *arguments, env={"FAKE_EXIT": "1"})
    assert ran.code == 1
    assert len(ws.calls) == count
    assert warnings(ran.lines) == [failed(1, n, count) for n in range(1, count + 1)]
    end = f"[T] ERROR: Aborting after {count} consecutive failures ({count} iterations completed, total: D)"
    assert masked(ran.lines)[-1] == end


def test_O_016_one_failure_is_enough_if_asked(ws: Workspace) -> None:
    """With a threshold of 1 the first failure aborts."""
    ws.procedure(keys="failure_threshold = 1\n")
    ws.exits(0, 0, 4)
    ran = ws.rooda("build", "-n", "9")
    assert ran.code == 1
    assert len(ws.calls) == 3
    assert warnings(ran.lines) == [failed(4, 1, 1)]


def test_O_017_O_030_O_059_a_success_forgives(ws: Workspace) -> None:
    """Two failures, a success, two failures: no abort, and the counter on disk follows."""
    ws.exits(1, 1, 0, 1, 1, 0)
    ws.copy_state_at(*range(1, 7))
    ran = ws.rooda("build", "--max-iterations", "6")
    assert ran.code == 0
    assert len(ws.calls) == 6
    assert [copy["consecutive_failures"] for copy in ws.copies.values()] == [0, 1, 2, 0, 1, 2]
    assert warnings(ran.lines) == [failed(1, 1), failed(1, 2)] * 2


def test_O_057_O_062_a_failed_iteration_is_closed_like_any_other(ws: Workspace) -> None:
    """After a failed call the counter, the durations and the time of the last iteration have moved on."""
    ws.exits(1, 0)
    ws.copy_state_at(1, 2, 3)
    assert ws.rooda("build", "-n", "3").code == 0
    before, failure, success = ws.copies.values()
    assert before["last_iteration_at"] is None
    assert failure["last_iteration_at"] is not None
    assert [copy["iteration"] for copy in (failure, success)] == [1, 2]
    assert [len(copy["elapsed_per_iteration"]) for copy in (failure, success)] == [1, 2]


def test_OA_06_every_started_call_counts_once(ws: Workspace) -> None:
    """Success, failure, timeout and a killed agent are one iteration each."""
    ws.exits(0, 3)
    ws.side(3, "sleep 30 & wait")
    ws.side(4, "kill -9 $$")
    ws.copy_state_at(5)
    ran = ws.rooda("build", "-n", "5", "--iteration-timeout", "0.4", "--failure-threshold", "9")
    assert ran.code == 0
    assert ws.copies[5]["iteration"] == 4
    assert ws.copies[5]["consecutive_failures"] == 3
    assert warnings(ran.lines) == [
        failed(3, 1, 9),
        "WARNING: AI CLI timed out after 0.4s, consecutive failures: 2/9",
        failed(137, 3, 9),
    ]


def test_OA_09_failures_come_before_the_limit(ws: Workspace) -> None:
    """When the last allowed iteration is also the third failure, the run is aborted and its state kept."""
    ran = ws.rooda("build", "-n", "3", env={"FAKE_EXIT": "1"})
    assert ran.code == 1
    assert "ERROR: Aborting after 3 consecutive failures (3 iterations completed, total: " in ran.lines[-1]
    assert "Reached max" not in ran.out
    assert ws.state()["status"] == "aborted"


def test_OA_09_too_few_failures_leave_a_limit_a_limit(ws: Workspace) -> None:
    """Two failures in two iterations are no abort: the limit was reached. The exit code is 1, as E-12 says."""
    ran = ws.rooda("build", "-n", "2", env={"FAKE_EXIT": "1"})
    assert ran.code == 1
    assert ran.lines[-1][11:].startswith("Reached max iterations: 2 (total: ")
    assert ws.state() is None


def test_OA_10_OA_11_the_aborting_iteration_has_no_completed_line(ws: Workspace) -> None:
    """After the last warning comes the abort line, in the words of the examples; the log has the iteration whole."""
    ws.exits(0, 2, 2)
    ran = ws.rooda("build", "-n", "8", "--failure-threshold", "2")
    assert masked(ran.lines)[-3:] == [
        "[T] Iteration 3/8 starting...",
        "[T] " + failed(2, 2, 2),
        "[T] ERROR: Aborting after 2 consecutive failures (3 iterations completed, total: D)",
    ]
    ended = [record for record in ws.events() if record["event"] == "iteration.ended"]
    assert [(record["display"], record["outcome"]) for record in ended] == [
        (1, "success"),
        (2, "failure"),
        (3, "failure"),
    ]


@pytest.mark.parametrize("command", ["no-such-agent --flag", "./not-there", "./plain-file"])
def test_OA_35_an_agent_that_cannot_run_is_found_at_the_start(ws: Workspace, command: str) -> None:
    """A missing or not executable agent ends the start with exit 2 and its name, before any state is written."""
    ws.write("plain-file", "not a program\n", mode=0o644)
    ran = ws.rooda("build", "-n", "1", "--ai-cmd", command)
    assert ran.code == 2
    assert command.split(" ", maxsplit=1)[0].removeprefix("./") in ran.err
    assert "Traceback" not in ran.both
    assert not ws.exists(".rooda/state/build.json")


@pytest.mark.parametrize(("loss", "code"), [('rm "$0"', 127), ('chmod -x "$0"', 126)])
def test_OA_35_an_agent_that_disappears_fails(ws: Workspace, loss: str, code: int) -> None:
    """An agent lost in mid-run is a failed iteration with the shell's code, not a crash; it aborts in time."""
    if code == 126 and os.geteuid() == 0:
        loss += '; mkdir "$0.d"; mv "$0" "$0.d/old"; mkdir "$0"'  # root may run anything but a folder
    agent = shutil.copy(FAKE_AI, ws.file("agent"))
    ws.side(1, loss)
    ran = ws.rooda("build", "-n", "9", "--ai-cmd", agent)
    assert ran.code == 1
    assert warnings(ran.lines) == [failed(code, n) for n in (1, 2, 3)]
    assert (ws.state()["iteration"], ws.state()["status"]) == (4, "aborted")


@pytest.mark.parametrize(("name", "code"), [("KILL", 137), ("TERM", 143), ("ABRT", 134)])
def test_OA_36_an_agent_killed_by_a_signal(ws: Workspace, name: str, code: int) -> None:
    """An agent that dies of a signal has failed; its code is 128 and the signal's number."""
    ws.side(1, f"ulimit -c 0; kill -{name} $$; sleep 5")
    ran = ws.rooda("build", "-n", "2")
    assert ran.code == 0
    assert warnings(ran.lines) == [failed(code, 1)]


def test_OA_37_exit_130_of_the_agents_own_is_a_failure(ws: Workspace) -> None:
    """An agent that exits 130 or 143 by itself interrupts nothing."""
    ws.exits(130, 143, 0)
    ran = ws.rooda("build", "-n", "3")
    assert ran.code == 0
    assert warnings(ran.lines) == [failed(130, 1), failed(143, 2)]


@pytest.mark.parametrize("code", [0, 9])
def test_OA_37_a_signal_during_the_call_decides(ws: Workspace, code: int) -> None:
    """A signal while the agent works makes the iteration interrupted, however the agent then exits."""
    ws.exits(1)
    ws.side(2, f"trap 'exit {code}' TERM\nkill -INT $PPID\nwhile :; do sleep 0.02; done")
    ran = ws.rooda("build", "-n", "9")
    assert ran.code == 130
    assert masked(ran.lines)[-2:] == [
        "[T] Iteration 2/9 starting...",
        "[T] Interrupted. State saved. Resume with: rooda resume build",
    ]
    assert (ws.state()["consecutive_failures"], ws.state()["iteration"]) == (1, 2)


def test_OA_37_signal_and_exit_at_the_same_time(ws: Workspace) -> None:
    """A loop that finds both a signal of its own and the agent's good end calls the iteration interrupted."""
    ws.side(1, "kill -STOP $(ps -o ppid= -p $PPID) $PPID; kill -INT $PPID; exit 0")  # a guardian would wake it
    running = ws.start("build", "-n", "5")
    (call,) = ws.wait_calls(1)
    until(lambda: not alive(call.pid), what="the agent's end")
    running.signal(signal.SIGCONT)
    assert running.finish() == 130
    assert "completed" not in running.out
    assert (ws.state()["status"], ws.state()["iteration"]) == ("interrupted", 1)
    assert len(ws.calls) == 1


def test_OA_37_a_signal_after_the_call_falls_between_iterations(ws: Workspace) -> None:
    """An agent that had ended before the signal has a normal iteration with its line; then the loop stops."""
    ws.exits(6)
    ws.side(1, 'until [ -e "$FAKE/go" ]; do sleep 0.01; done')
    run = Stalled(ws, "build", "-n", "7")
    ws.wait_calls(1)
    run.fill()
    ws.write("../fake/go", "")
    until(lambda: (ws.state() or {})["iteration"] == 1, what="the state to count iteration 1")
    run.signal(signal.SIGINT)
    lines = masked(run.drain())
    assert run.code == 130
    assert lines[-3:] == [
        "[T] " + failed(6, 1),
        "[T] Iteration 1/7 completed in D",
        "[T] Interrupted. State saved. Resume with: rooda resume build",
    ]
    state = ws.state()
    assert (state["status"], state["iteration"], state["consecutive_failures"]) == ("interrupted", 1, 1)
    assert len(ws.calls) == 1


@pytest.mark.parametrize("command", ["true", "sh -c 'exec <&-; exit 0'", "head -c 10"])
def test_OA_38_an_agent_need_not_read(ws: Workspace, command: str) -> None:
    """An agent that ignores a prompt longer than any pipe, or closes it early, succeeds."""
    ws.write("prompts/observe_build.md", "one word after the other\n" * 10_000)
    ran = ws.rooda("build", "-n", "2", "--token-budget", "0", "--ai-cmd", command)
    assert ran.code == 0, ran.both
    assert not warnings(ran.lines)


def test_OA_38_a_grandchild_with_the_output_open_delays_nothing(ws: Workspace) -> None:
    """A server that an agent leaves behind, with the agent's output open, delays neither loop nor next call."""
    ws.side(1, 'sleep 300 & echo $! >"$FAKE/server"')
    ws.side(2, 'ps -o stat= -p "$(cat "$FAKE/server")" | grep -v Z >"$FAKE/met"')
    assert ws.rooda("build", "-n", "2").code == 0
    assert len(ws.calls) == 2
    assert ws.read("../fake/met") == ""
