"""Failure, progress and success: `count_failures`, `baseline`, `stuck_after`, `blocked_threshold`, exit codes."""

import os
import re
from typing import Any

import pytest

from rooda.loops.procedure.progress import normalised
from tests.kit.workspace import Workspace, until

RED = {"count_failures": "no-progress"}
COUNT = 'n=$(cat broken); echo "$n failed in 0.${RANDOM:-1}s"; test "$n" = 0'


def red_repository(ws: Workspace, loop: dict[str, Any] | None = None, gates: dict[str, str] | None = None) -> None:
    """A repository whose gate `tests` fails as often as the file `broken` says."""
    ws.procedure(loop=RED | (loop or {}), gates={"tests": COUNT, **(gates or {})})
    ws.write("broken", "6\n")
    ws.git("init", "-q")
    ws.git("add", "-A")
    ws.git("commit", "-q", "-m", "the beginning")


def ended(ws: Workspace) -> list[dict[str, Any]]:
    return [event for event in ws.events() if event["event"] == "iteration.ended"]


def hook(ws: Workspace, *moments: str) -> None:
    """Hooks that write their moment into the file `moments`."""
    rows = "".join(f'{each} = "echo {each} >>moments"\n' for each in moments)
    ws.config(ws.read("rooda.toml") + f"\n[hooks]\n{rows}")


def test_E_10_the_baseline_runs_the_gates_before_the_first_iteration(ws: Workspace) -> None:
    """It names red and green gates, costs no iteration, and a resume neither repeats nor forgets it."""
    ws.procedure(loop={"baseline": True}, gates={"tests": "echo x >>ran; exit 1", "lint": "true"})
    ws.side(1, "wc -l <ran >before")
    ws.signal_at(2)
    run = ws.rooda("build", "-n", "2")
    assert run.code == 130 and "Baseline: tests red, lint green" in run.err and "Baseline" not in run.out
    assert ws.read("before").strip() == "1" and ws.state()["iteration"] == 2
    baseline = [event for event in ws.events() if event["event"] == "baseline.ended"]
    assert [(each["failed"], each["passed"]) for each in baseline] == [(["tests"], ["lint"])]
    resumed = ws.rooda("resume", "build", "-n", "3")
    assert "Baseline" not in resumed.both and ws.read("ran") == "x\n" * 3


@pytest.mark.parametrize(("loop", "wanted"), [({}, 0), (RED, 1), (RED | {"baseline": False}, 0)])
def test_E_10_it_is_on_where_progress_counts(ws: Workspace, loop: dict[str, Any], wanted: int) -> None:
    """The default follows count_failures; the key itself wins."""
    ws.procedure(loop=loop, gates={"lint": "true"})
    assert ws.rooda("build", "-n", "1").err.count("Baseline: lint green") == wanted


def test_E_11_a_red_repository_is_repaired_step_by_step(ws: Workspace) -> None:
    """Six failures, one repaired in each call: no iteration fails, and the sixth is accepted as SUCCESS."""
    red_repository(ws, {"promise_signals": True})
    for call in range(1, 7):
        ws.side(call, f"echo {6 - call} >broken")
    ws.out(6, "<promise>SUCCESS</promise>\n")
    run = ws.rooda("build", "-n", "9")
    assert run.code == 0, run.both
    assert len(ws.calls) == 6 and "consecutive failures: 1" not in run.out and "AI signaled SUCCESS" in run.out


def test_E_11_the_builtin_default_counts_every_red_gate(ws: Workspace) -> None:
    """Without the setting the specification's rule holds, however much better the gate gets."""
    red_repository(ws, {"count_failures": "red"})
    for call in range(1, 4):
        ws.side(call, f"echo {6 - call} >broken")
    assert ws.rooda("build", "-n", "9").code == 1 and len(ws.calls) == 3


def test_E_11_neither_output_nor_tree_changed(ws: Workspace) -> None:
    """An iteration that changes no file and no result is a failed one: three of them abort the run."""
    red_repository(ws)
    run = ws.rooda("build", "-n", "9")
    assert run.code == 1 and len(ws.calls) == 3
    assert "Aborting after 3 consecutive failures" in run.out


def test_E_11_a_gate_that_turns_red_fails_the_iteration(ws: Workspace) -> None:
    """Also where another gate gets better."""
    red_repository(ws, gates={"lint": "test ! -e ugly"})
    ws.side(1, "echo 3 >broken; touch ugly")
    ws.side(2, "echo 2 >broken")
    ws.rooda("build", "-n", "2")
    assert [event["outcome"] for event in ended(ws)] == ["failure", "success"]


def test_E_11_success_with_a_red_gate_is_refused(ws: Workspace) -> None:
    """Although the gate got better, which would be no failure otherwise."""
    red_repository(ws, {"promise_signals": True})
    ws.side(1, "echo 1 >broken")
    ws.out(1, "<promise>SUCCESS</promise>\n")
    ws.side(2, "echo 0 >broken")
    assert ws.rooda("build", "-n", "2").code == 0
    assert [event["outcome"] for event in ended(ws)] == ["failure", "success"]


def test_E_11_stuck_ends_a_run_that_stands_still(ws: Workspace) -> None:
    """The tree changes in every call, the red gate never: after stuck_after iterations the run is aborted."""
    red_repository(ws, {"stuck_after": 3})
    hook(ws, "stuck", "failed", "done")
    for call in range(1, 9):
        ws.side(call, f"echo {call} >notes")
    run = ws.rooda("build", "-n", "9")
    assert run.code == 1 and len(ws.calls) == 3
    assert run.lines[-1].endswith("ERROR: Aborting: no progress in 3 iterations: tests")
    assert ws.state()["status"] == "aborted" and ws.read("moments").split() == ["failed", "stuck"]
    ws.rooda("resume", "build")
    assert len(ws.calls) == 6  # the count begins again


def test_E_11_the_count_survives_a_kill(ws: Workspace) -> None:
    """Iterations without progress before a SIGKILL count after the resume, and so do the gates' results."""
    red_repository(ws, {"stuck_after": 3})
    for call in (1, 2, 4):
        ws.side(call, f"echo {call} >notes")
    ws.side(3, "kill -9 $PPID; sleep 30")
    running = ws.start("build", "-n", "9")
    running.finish()
    until(lambda: not ws.leftovers(), what="the agent to be ended")
    run = ws.rooda("resume", "build")
    assert run.code == 1 and len(ws.calls) == 4, run.both
    assert "no progress in 3 iterations" in run.out


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3 failed, 12 passed in 0.34s", "3 failed, 12 passed in 12.01s"),
        ("ok  pkg 0.003s", "ok  pkg 1.2s"),
        ("took 1m2.5s", "took 59 seconds"),
        ("took 3 min", "took 2h30m"),
        ("at 2026-02-06T10:00:45.213Z", "at 2026-02-07 11:12:13"),
        ("[10:00:57] red", "[23:59:01.250] red"),
        ("Thu Nov 19 2026", "Thu Nov 20 2026"),
        ("<Thing object at 0x7f00aa>", "<Thing object at 0x7fffbb>"),
        ("wrote /tmp/pytest-of-me/pytest-1/x.txt: no", "wrote /tmp/pytest-of-me/pytest-22/x.txt: no"),
        ("in /run/own/ab/c", "in /run/own/xy/c"),
        ("pid 4711 died", "pid 23 died"),
        ("==99== leak", "==100== leak"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("a failed\nb failed", "b failed\na failed"),
    ],
)
def test_E_11_what_does_not_count_as_a_change(one: str, other: str) -> None:
    """Durations, times, dates, addresses, temporary paths, PIDs, colours and the order of lines."""
    assert normalised(one, "/home/me/project", ["/run/own"]) == normalised(other, "/home/me/project", ["/run/own"])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3 failed, 12 passed in 0.34s", "2 failed, 13 passed in 0.34s"),
        ("main.c:10:15: error", "main.c:10:16: error"),
        ("assert 0 == 1", "assert 0 == 2"),
        ("/home/me/project/a.py:3", "/home/me/project/b.py:3"),
        ("exit 1", "exit 2"),
    ],
)
def test_E_11_what_counts_as_a_change(one: str, other: str) -> None:
    """Counts, places and values."""
    assert normalised(one, "/home/me/project") != normalised(other, "/home/me/project")


@pytest.mark.parametrize("loop", [{"count_failures": "red"}, RED])
def test_E_12_a_red_gate_at_the_limit(ws: Workspace, loop: dict[str, Any]) -> None:
    """Exit 1, the state file is gone, `failed` is the hook, and a line on stderr names the gate."""
    red_repository(ws, loop)
    hook(ws, "failed", "done", "stuck")
    ws.side(1, "echo 5 >broken")
    run = ws.rooda("build", "-n", "1")
    assert run.code == 1 and "Reached max iterations: 1" in run.lines[-1]
    assert "Ended with red gates: tests (exit 1); exit code 1" in run.err
    assert ws.state() is None and ws.read("moments") == "failed\n"
    assert [event["status"] for event in ws.events() if event["event"] == "run.ended"] == ["completed"]


def test_E_12_a_failed_agent_at_the_limit(ws: Workspace) -> None:
    """The line says what failed; an earlier failure does not count."""
    ws.exits(3, 0)
    assert ws.rooda("build", "-n", "2").code == 0
    run = ws.rooda("build", "-n", "1", env={"FAKE_EXIT": "7"})
    assert run.code == 1 and "Ended with a failed iteration: AI CLI failed (exit 7); exit code 1" in run.err


def test_E_12_a_resume_at_the_limit_asks_the_events(ws: Workspace) -> None:
    """The last iteration on record decides, also after an abort; with --no-gates only its agent."""
    ws.procedure(gates={"tests": "false"})
    assert ws.rooda("build", "-n", "9", "--failure-threshold", "2").code == 1
    state = ws.read(".rooda/state/build.json")
    assert ws.rooda("resume", "build", "-n", "2").code == 1
    ws.write(".rooda/state/build.json", state)
    assert ws.rooda("resume", "build", "-n", "2", "--no-gates").code == 0
    assert len(ws.calls) == 2


@pytest.mark.parametrize(("failures", "code"), [(1, 1), (0, 0)])
def test_E_12_without_events_the_failures_in_a_row_count(ws: Workspace, failures: int, code: int) -> None:
    """A state file alone, as after a copy to another machine."""
    ws.put_state(iteration=3, max_iterations=3, consecutive_failures=failures)
    run = ws.rooda("resume", "build")
    assert (run.code, len(ws.calls)) == (code, 0)
    assert ("Ended with a failed iteration; exit code 1" in run.err) == bool(code)


def test_E_12_a_red_baseline_and_a_cut_off_iteration(ws: Workspace) -> None:
    """A resume at the limit runs the gates, and must not end with 0."""
    red_repository(ws)
    ws.side(1, "kill -INT $PPID; sleep 30")
    assert ws.rooda("build", "-n", "1").code == 130
    run = ws.rooda("resume", "build")
    assert run.code == 1 and "Ended with red gates: tests (exit 1); exit code 1" in run.err, run.both
    assert len(ws.calls) == 1


@pytest.mark.parametrize(("left", "code"), [("bad", 1), ("good", 0)])
def test_E_12_the_gates_judge_a_last_iteration_that_was_cut_off(ws: Workspace, left: str, code: int) -> None:
    """With nothing red on record; exit 0 means that they are green now. A signal during the check decides nothing."""
    stop = "test ! -e stop || { rm stop; kill -TERM $PPID; sleep 30; }"
    ws.procedure(gates={"tests": f"{stop}; test ! -e bad"})
    ws.side(2, f"touch {left} stop; kill -INT $PPID; sleep 30")
    assert ws.rooda("build", "-n", "2").code == 130
    assert ws.rooda("resume", "build").code == 143 and ws.state()["status"] == "interrupted"
    run = ws.rooda("resume", "build")
    assert run.code == code and "Iteration 2 was cut off; running the quality gates" in run.err, run.both
    assert ("red gates: tests (exit 1)" in run.err) == bool(code)
    assert len(ws.calls) == 2 and ws.state() is None


BLOCKED = {"promise_signals": True, "blocked_threshold": 2}


def blocked(ws: Workspace, *reasons: str) -> None:
    for call, reason in enumerate(reasons, 1):
        ws.out(call, f"I tried.\n<promise>FAILURE</promise>\n{reason}\n")


@pytest.mark.parametrize("git", [True, False])
def test_E_14_the_same_answer_is_not_bought_three_times(ws: Workspace, git: bool) -> None:
    """Two promises of FAILURE and an unchanged tree end the run with the reason; without git equal reasons do."""
    ws.procedure(loop=BLOCKED)
    if git:
        ws.git("init", "-q")
    hook(ws, "needs_person", "failed")
    blocked(ws, "The key is missing.", "The key is missing." if not git else "I need the key.")
    run = ws.rooda("build", "-n", "9")
    assert run.code == 1 and len(ws.calls) == 2
    reason = "I need the key." if git else "The key is missing."
    assert run.lines[-1].endswith(f"ERROR: Aborting: blocked twice: {reason}")
    assert ws.state()["status"] == "aborted" and ws.read("moments").split() == ["failed", "needs_person"]
    ws.rooda("resume", "build", "-n", "3")
    assert len(ws.calls) == 3


def test_E_14_what_changes_something_is_not_the_same_answer(ws: Workspace) -> None:
    """A changed file begins the count again; without git another reason does. Then the failure threshold decides."""
    ws.procedure(loop=BLOCKED)
    blocked(ws, "No key.", "No network.", "No disk.")
    run = ws.rooda("build", "-n", "9")
    assert len(ws.calls) == 3 and "Aborting after 3 consecutive failures" in run.out
    ws.git("init", "-q")
    ws.forget_calls()
    for call in (1, 2, 3):
        ws.side(call, f"echo {call} >file")
    assert "Aborting after 3 consecutive failures" in ws.rooda("build", "-n", "9").out and len(ws.calls) == 3


def test_E_14_a_built_in_zero_leaves_the_failure_threshold_alone(ws: Workspace) -> None:
    """Without the setting, and without promise signals, nothing ends earlier than the specification says."""
    ws.git("init", "-q")
    blocked(ws, "No key.", "No key.", "No key.")
    for loop in ({"promise_signals": True}, {"promise_signals": False, "blocked_threshold": 2}):
        ws.procedure(loop=loop | {"blocked_threshold": loop.get("blocked_threshold")})
        ws.forget_calls()
        assert "blocked" not in ws.rooda("build", "-n", "3").both and len(ws.calls) == 3


def test_ordinary_iterations_start_no_git(ws: Workspace) -> None:
    """With what is built in, and with green gates under what `rooda init` writes but snapshots, git is not started."""
    ws.write("bin/git", '#!/bin/sh\necho "$@" >>"$FAKE/git"\nexit 1\n', 0o755)
    path = {"PATH": ws.file("bin") + os.pathsep + ws.env["PATH"]}
    for loop in ({}, RED):
        ws.procedure(loop=loop, gates={"lint": "true"})
        assert ws.rooda("build", "-n", "2", env=path).code == 0
    assert not os.path.exists(os.path.join(ws.fake, "git"))


def test_the_facts_are_in_the_events(ws: Workspace) -> None:
    """Results with their hashes are remembered only where a setting asks for it."""
    red_repository(ws)
    ws.rooda("build", "-n", "1")
    kept = ended(ws)[0]["remembered"]
    assert kept["gates"]["tests"].startswith("exit 1 ") and kept["stuck"] == 1
    ws.procedure(loop={"count_failures": "red"}, gates={"tests": COUNT})
    ws.rooda("build", "-n", "1")
    assert "remembered" not in ended(ws)[0]


def test_E_11_E_14_init_writes_both_with_a_comment(bare: Workspace) -> None:
    """A new project counts progress, and does not ask a blocked agent three times."""
    lines = bare.rooda("init", "--print").lines
    for line in ('count_failures = "no-progress"  # or "red"', "blocked_threshold = 2  # or 0"):
        assert lines[lines.index(line) - 1].startswith("# ")


def test_E_10_the_summary_names_what_was_red_before(ws: Workspace) -> None:
    """Beside the last results of the gates."""
    red_repository(ws, gates={"lint": "true"})
    ws.side(1, "echo 0 >broken")
    run = ws.rooda("build", "-n", "1")
    assert run.code == 0 and re.search(r"gates +tests green, lint green; baseline: tests red", run.err), run.err
