"""The five examples of the specification, line by line: all of stdout, with clock and durations masked."""

import re
from pathlib import Path

from tests.kit.workspace import FAKE_AI, Workspace, masked

STAMPED = re.compile(r"^\[\d\d:\d\d:\d\d\] \S")
SUMMING_TO_270 = ["52.0s", "1m1.5s", "46.5s", "58.0s", "52.0s"]


def test_O_083_O_084_O_085_O_086_O_087_O_088_example_1(ws: Workspace) -> None:
    """Three iterations: exactly eight lines, none of the agent's, then exit 0 and no state file."""
    ws.out("iteration", "the agent's own words\n")
    ws.side(1, "sleep 0.2")
    ran = ws.rooda("build", "--max-iterations", "3")
    assert masked(ran.lines) == [
        "[T] Starting procedure: build (max 3 iterations)",
        "[T] Iteration 1/3 starting...",
        "[T] Iteration 1/3 completed in D",
        "[T] Iteration 2/3 starting...",
        "[T] Iteration 2/3 completed in D",
        "[T] Iteration 3/3 starting...",
        "[T] Iteration 3/3 completed in D",
        "[T] Reached max iterations: 3 (total: D)",
    ]
    assert all(STAMPED.match(line) for line in ran.lines)
    took = [re.search(r" completed in (\d+\.\d)s$", ran.lines[index]) for index in (2, 4, 6)]
    assert all(took) and took[0] and float(took[0][1]) >= 0.2
    assert re.search(r"\(total: \d+s\)$", ran.lines[-1])
    assert (ran.code, ws.state()) == (0, None)
    assert "build: completed, after 3 of 3 iterations" in ran.err
    assert len(ws.calls) == 3


def test_O_089_O_090_O_091_O_092_O_093_example_2(ws: Workspace) -> None:
    """Failures in 4, 5 and 6 of 10: warnings before progress lines, none in the last, then the abort."""
    ws.exits(0, 0, 0, 1, 1, 1)
    ran = ws.rooda("build", "--max-iterations", "10")
    assert masked(ran.lines) == [
        "[T] Starting procedure: build (max 10 iterations)",
        "[T] Iteration 1/10 starting...",
        "[T] Iteration 1/10 completed in D",
        "[T] Iteration 2/10 starting...",
        "[T] Iteration 2/10 completed in D",
        "[T] Iteration 3/10 starting...",
        "[T] Iteration 3/10 completed in D",
        "[T] Iteration 4/10 starting...",
        "[T] WARNING: AI CLI failed (exit 1), consecutive failures: 1/3",
        "[T] Iteration 4/10 completed in D",
        "[T] Iteration 5/10 starting...",
        "[T] WARNING: AI CLI failed (exit 1), consecutive failures: 2/3",
        "[T] Iteration 5/10 completed in D",
        "[T] Iteration 6/10 starting...",
        "[T] WARNING: AI CLI failed (exit 1), consecutive failures: 3/3",
        "[T] ERROR: Aborting after 3 consecutive failures (6 iterations completed, total: D)",
    ]
    state = ws.state()
    assert (ran.code, len(ws.calls)) == (1, 6)
    assert state is not None
    assert (state["status"], state["iteration"], state["consecutive_failures"]) == ("aborted", 6, 3)
    assert len(state["elapsed_per_iteration"]) == 6


def test_O_094_O_095_O_096_O_097_O_098_O_099_O_100_example_3(ws: Workspace) -> None:
    """Ctrl+C in iteration 5 of 10, then `rooda resume build`: five more calls and the old limit."""
    ws.signal_at(5)
    ran = ws.rooda("build", "--max-iterations", "10")
    assert masked(ran.lines) == [
        "[T] Starting procedure: build (max 10 iterations)",
        *(f"[T] Iteration {n}/10 {word}" for n in range(1, 5) for word in ("starting...", "completed in D")),
        "[T] Iteration 5/10 starting...",
        "[T] Interrupted. State saved. Resume with: rooda resume build",
    ]
    state = ws.state()
    assert ran.code == 130
    assert state is not None
    assert (state["status"], state["iteration"], len(state["elapsed_per_iteration"])) == ("interrupted", 5, 5)
    again = ws.rooda("resume", "build")
    assert masked(again.lines) == [
        "[T] Resuming procedure: build from iteration 5 (max 10)",
        "[T] Previous session: 5 iterations completed in D",
        *(f"[T] Iteration {n}/10 {word}" for n in range(6, 11) for word in ("starting...", "completed in D")),
        "[T] Reached max iterations: 10 (total: D)",
    ]
    assert (again.code, len(ws.calls), ws.state()) == (0, 10, None)
    assert "  iterations  10 (1 cut off) in " in again.err


def test_O_098_the_earlier_time_is_the_sum_of_the_durations(ws: Workspace) -> None:
    """Five durations that sum to 270 s are `4m30s`, in whole seconds."""
    ws.put_state(iteration=5, elapsed_per_iteration=SUMMING_TO_270)
    ran = ws.rooda("resume", "build")
    assert ran.lines[1][11:] == "Previous session: 5 iterations completed in 4m30s"


def test_O_101_O_102_O_103_O_104_O_105_example_4(ws: Workspace) -> None:
    """Three lines without stamps, the whole command, commas, one empty line, the very prompt of a run."""
    ws.procedure(loop={"ai_cmd": f"{FAKE_AI} --no-interactive 'two words'"})
    ws.write("prompts/observe_build.md", "word " * 1500 + "\n\n\n")
    dry = ws.rooda("build", "--dry-run")
    assert (dry.code, dry.err, ws.calls, ws.exists(".rooda")) == (0, "", [], False)
    head, _, body = dry.out.partition("\n\n")
    first, second, third = head.split("\n")
    assert first == "[DRY RUN] Procedure: build"
    assert second == f"[DRY RUN] Would execute with: {FAKE_AI} --no-interactive 'two words'"
    assert re.fullmatch(r"\[DRY RUN\] Token count: 1,\d\d\d / 100,000 budget", third)
    phases = "## ORIENT\nORI\n\n## DECIDE\nDEC\n\n## ACT\nACT\n"
    assert body == f"# OODA Loop Iteration\n\n## OBSERVE\n{'word ' * 1500}\n\n{phases}"
    assert ws.rooda("build", "--max-iterations", "1").code == 0
    (call,) = ws.calls
    assert call.prompt == body.encode()
    assert call.argv == ["--no-interactive", "two words"]


def test_O_106_O_107_O_108_O_109_O_110_example_5(ws: Workspace) -> None:
    """Unlimited by configuration, one failure in 3: no `/M`, one warning, counter 0 after 4, ended only by Ctrl+C."""
    ws.procedure(loop={"default_iterations": 0})
    ws.exits(0, 0, 1, 0, 0)
    ws.copy_state_at(4, 5)
    ws.signal_at(6)
    ran = ws.rooda("build")
    assert masked(ran.lines) == [
        "[T] Starting procedure: build (unlimited iterations)",
        "[T] Iteration 1 starting...",
        "[T] Iteration 1 completed in D",
        "[T] Iteration 2 starting...",
        "[T] Iteration 2 completed in D",
        "[T] Iteration 3 starting...",
        "[T] WARNING: AI CLI failed (exit 1), consecutive failures: 1/3",
        "[T] Iteration 3 completed in D",
        "[T] Iteration 4 starting...",
        "[T] Iteration 4 completed in D",
        "[T] Iteration 5 starting...",
        "[T] Iteration 5 completed in D",
        "[T] Iteration 6 starting...",
        "[T] Interrupted. State saved. Resume with: rooda resume build",
    ]
    assert (ran.code, len(ws.calls)) == (130, 6)
    assert (ws.copies[4]["consecutive_failures"], ws.copies[5]["consecutive_failures"]) == (1, 0)
    assert ws.copies[5]["max_iterations"] == 0


def test_O_087_example_1_holds_on_every_pipe(ws: Workspace) -> None:
    """stdout is the same eight lines, whatever the agent writes to either of its own; stderr has the summary (E-21)."""
    ws.out("iteration", "out\n")
    ws.err("iteration", "err\n")
    ran = ws.rooda("build", "--max-iterations", "3")
    assert len(ran.lines) == 8 and len(ran.err.splitlines()) == 3
    transcripts = sorted(Path(ws.path, ".rooda", "runs").glob("*/*.out"))
    assert [path.read_text() for path in transcripts] == ["out\nerr\n"] * 3
