"""The edge-case table of the specification: limits, failures, budget, dry-run and gates."""

from tests.kit.workspace import Workspace, masked

MANY = ["46.0s", "52.0s", "58.0s", "60.0s", "54.0s"]  # five durations that sum to 4m30s


def test_O_067_limit_zero_runs_until_a_signal(ws: Workspace) -> None:
    """Without a limit the loop passes the shipped limit of 5 and every other, until Ctrl+C."""
    ws.signal_at(12)
    ran = ws.rooda("build", "--max-iterations", "0")
    assert ran.code == 130
    assert len(ws.calls) == 12
    assert masked(ran.lines)[:3] == [
        "[T] Starting procedure: build (unlimited iterations)",
        "[T] Iteration 1 starting...",
        "[T] Iteration 1 completed in D",
    ]


def test_O_067_limit_zero_runs_until_the_threshold(ws: Workspace) -> None:
    """Without a limit three failures in a row still end the loop."""
    ran = ws.rooda("build", "--max-iterations", "0", env={"FAKE_EXIT": "1"})
    assert (ran.code, len(ws.calls)) == (1, 3)
    assert "(unlimited iterations)" in ran.lines[0]
    assert masked(ran.lines)[-1] == (
        "[T] ERROR: Aborting after 3 consecutive failures (3 iterations completed, total: D)"
    )


def test_O_068_limit_one_is_one_iteration(ws: Workspace) -> None:
    """One call, a clean end, no state file."""
    ran = ws.rooda("build", "--max-iterations", "1")
    assert (ran.code, len(ws.calls), ws.state()) == (0, 1, None)
    assert masked(ran.lines)[-1] == "[T] Reached max iterations: 1 (total: D)"


def test_O_071_a_failed_call_does_not_end_the_loop(ws: Workspace) -> None:
    """A non-zero exit counts one failure, and the next iteration runs."""
    ws.exits(1, 0)
    ws.copy_state_at(2)
    ran = ws.rooda("build", "--max-iterations", "2")
    assert (ran.code, len(ws.calls)) == (0, 2)
    assert ws.copies[2]["consecutive_failures"] == 1
    assert masked(ran.lines)[2] == "[T] WARNING: AI CLI failed (exit 1), consecutive failures: 1/3"


def test_O_072_three_failures_in_a_row_abort(ws: Workspace) -> None:
    """The loop ends after the third failure, and the state stays with status aborted."""
    ran = ws.rooda("build", "--max-iterations", "10", env={"FAKE_EXIT": "1"})
    state = ws.state()
    assert (ran.code, len(ws.calls)) == (1, 3)
    assert state is not None
    assert (state["status"], state["iteration"], state["consecutive_failures"]) == ("aborted", 3, 3)


def test_O_073_a_success_forgives_two_failures(ws: Workspace) -> None:
    """After two failures a success sets the counter to 0; the next failure is the first again."""
    ws.exits(1, 1, 0, 1)
    ws.copy_state_at(3, 4)
    ran = ws.rooda("build", "--max-iterations", "4")
    assert (ran.code, len(ws.calls)) == (1, 4)
    assert (ws.copies[3]["consecutive_failures"], ws.copies[4]["consecutive_failures"]) == (2, 0)
    counts = [line.rpartition(" ")[2] for line in ran.lines if "WARNING" in line]
    assert counts == ["1/3", "2/3", "1/3"]


def test_O_076_after_five_of_ten_comes_the_sixth(ws: Workspace) -> None:
    """A resume after iteration 5 of 10 makes exactly the five calls that are left."""
    ws.put_state(iteration=5, elapsed_per_iteration=MANY)
    ran = ws.rooda("resume", "build")
    assert (ran.code, len(ws.calls)) == (0, 5)
    assert masked(ran.lines)[:3] == [
        "[T] Resuming procedure: build from iteration 5 (max 10)",
        "[T] Previous session: 5 iterations completed in D",
        "[T] Iteration 6/10 starting...",
    ]
    assert [call.env["ROODA_ITERATION"] for call in ws.calls] == ["6", "7", "8", "9", "10"]


def test_O_077_a_prompt_over_budget_is_warned_of_and_sent(ws: Workspace) -> None:
    """The warning is after each `starting...` line, with both plain numbers, and every call happens."""
    ws.write("prompts/observe_build.md", "word " * 1500)
    ran = ws.rooda("build", "--max-iterations", "2", "--token-budget", "1000")
    warning = next(line for line in ran.lines if "budget" in line)
    assert (ran.code, len(ws.calls)) == (0, 2)
    assert [index for index, line in enumerate(ran.lines) if "budget" in line] == [2, 5]
    assert "Iteration 1/2 starting..." in ran.lines[1]
    left, _, right = warning.partition("WARNING: Prompt exceeds token budget: ")[2].partition(" > ")
    assert int(left) > int(right) == 1000


def test_O_078_dry_run_shows_and_leaves(ws: Workspace) -> None:
    """The prompt is on stdout, no agent ran, and nothing was written."""
    ran = ws.rooda("build", "--dry-run")
    assert ran.code == 0
    assert "## ACT\nACT\n" in ran.out
    assert ws.calls == []
    assert not ws.exists(".rooda")


def test_O_079_a_failing_gate_is_a_failed_iteration(ws: Workspace) -> None:
    """The agent exits 0, the gate does not: the failure is counted and named, and three of them abort."""
    ws.procedure(gates={"tests": "exit 4"})
    ws.copy_state_at(2)
    ran = ws.rooda("build", "--max-iterations", "10")
    assert (ran.code, len(ws.calls)) == (1, 3)
    assert ws.copies[2]["consecutive_failures"] == 1
    assert masked(ran.lines)[2] == "[T] WARNING: Quality gates failed: tests (exit 4), consecutive failures: 1/3"


def test_O_080_without_gates_only_the_exit_code_counts(ws: Workspace) -> None:
    """A project whose own tests fail completes when no gate asks for them, and no word is said of gates."""
    ws.write("Makefile", "test:\n\tfalse\n")
    ws.write("tests/test_bad.py", "def test_bad():\n    assert False\n")
    ws.write("AGENTS.md", "# Project\n\n## Build/Test/Lint Commands\n\n**Test:** `false`\n")
    ran = ws.rooda("build", "--max-iterations", "2")
    assert (ran.code, len(ws.calls)) == (0, 2)
    assert "gate" not in ran.both.lower()
    assert not [event for event in ws.events() if event["event"].startswith("gate")]
