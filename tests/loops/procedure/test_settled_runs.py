"""Settled points about a run under way: resumes, totals, vanishing prompts, the log, stubborn agents, crashes."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from tests.kit.workspace import SAMPLE, Workspace, alive, masked, until


def test_OA_20_resume_forgives_an_aborted_run(ws: Workspace) -> None:
    """The failures are forgotten, M11 and M12 are printed, and the run continues to its limit."""
    ws.put_state(status="aborted", consecutive_failures=3, max_iterations=5)
    ws.copy_state_at(1)
    ran = ws.rooda("resume", "build")
    assert (ran.code, len(ws.calls), ws.copies[1]["consecutive_failures"]) == (0, 2, 0)
    assert masked(ran.lines)[:2] == [
        "[T] Resuming procedure: build from iteration 3 (max 5)",
        "[T] Previous session: 3 iterations completed in D",
    ]


def test_OA_20_a_start_after_an_abort_asks_nothing(ws: Workspace) -> None:
    """`rooda build` with an aborted state file starts with 1, without a question and without a warning."""
    ws.put_state(status="aborted", consecutive_failures=3)
    ran = ws.rooda("build", "--max-iterations", "1", stdin=b"y\n")
    assert (ran.code, ran.notes, len(ws.calls)) == (0, "", 1)
    assert masked(ran.lines)[:2] == [
        "[T] Starting procedure: build (max 1 iterations)",
        "[T] Iteration 1/1 starting...",
    ]


@pytest.mark.parametrize("status", [None, "completed"])
def test_OA_21_nothing_to_resume(ws: Workspace, status: str | None) -> None:
    """Without a file, or with a completed one: the sentence on stderr, exit 2, no call."""
    if status:
        ws.put_state(status=status)
    ran = ws.rooda("resume", "build")
    assert (ran.code, ran.out, ws.calls) == (2, "", [])
    assert "No saved state for procedure 'build'." in ran.err


def test_OA_21_resume_without_a_name(ws: Workspace) -> None:
    """Nothing: exit 2. One that can continue: it is taken. Several: they are listed, exit 3."""
    assert ws.rooda("resume").code == 2
    ws.procedure("audit-spec")
    ws.put_state("audit-spec", max_iterations=4)
    ws.put_state("other", status="completed")
    ran = ws.rooda("resume")
    assert (ran.code, len(ws.calls)) == (0, 1)
    assert "Resuming procedure: audit-spec" in ran.lines[0]
    ws.put_state("audit-spec")
    ws.put_state("build", status="aborted")
    several = ws.rooda("resume")
    assert (several.code, len(ws.calls)) == (3, 1)
    assert "rooda resume audit-spec" in several.err and "rooda resume build" in several.err


def test_OA_22_options_beat_what_was_saved(ws: Workspace) -> None:
    """Limit, threshold and command given to the resume replace the stored ones, on the screen and in the file."""
    ws.copy_state_at(1)
    ws.put_state()
    ran = ws.rooda("resume", "build", "--max-iterations", "6", "--failure-threshold", "2", env={"FAKE_EXIT": "1"})
    assert ran.code == 1
    assert "(max 6)" in ran.lines[0]
    assert (ws.copies[1]["max_iterations"], ws.copies[1]["failure_threshold"]) == (6, 2)
    assert masked(ran.lines)[-1] == (
        "[T] ERROR: Aborting after 2 consecutive failures (5 iterations completed, total: D)"
    )
    replaced = ws.rooda("resume", "build", "--ai-cmd", "true")
    assert (replaced.code, len(ws.calls)) == (0, 2)


def test_OA_22_a_limit_taken_away(ws: Workspace) -> None:
    """0 on a resume means no limit from now on."""
    ws.put_state(max_iterations=3)
    ws.signal_at(9)
    ran = ws.rooda("resume", "build", "--max-iterations", "0")
    assert (ran.code, len(ws.calls)) == (130, 9)
    assert "Resuming procedure: build from iteration 3 (unlimited iterations)" in ran.lines[0]


@pytest.mark.parametrize("limit", [2, 3])
def test_OA_22_nothing_left_to_do(ws: Workspace, limit: int) -> None:
    """A limit at or below the counter: M11, M12, M08 with that limit, exit 0, and on stderr how to raise it."""
    ws.put_state()
    ran = ws.rooda("resume", "build", "--max-iterations", str(limit))
    assert (ran.code, ws.calls, ws.state()) == (0, [], None)
    assert [line[11:] for line in ran.lines] == [
        f"Resuming procedure: build from iteration 3 (max {limit})",
        "Previous session: 3 iterations completed in 2m16s",
        f"Reached max iterations: {limit} (total: 2m16s)",
    ]
    assert "rooda build --max-iterations N" in ran.err


def test_OA_23_OA_24_downtime_does_not_count(ws: Workspace) -> None:
    """The total is the earlier durations and this session; neither the months since, nor the file's own time span."""
    ws.put_state(elapsed_per_iteration=["1h0m0.0s", "0.0s", "0.0s"], max_iterations=4)
    ws.side(1, "sleep 0.3")
    before = time.monotonic()
    ran = ws.rooda("resume", "build")
    session = time.monotonic() - before
    (ended,) = [event for event in ws.events() if event["event"] == "run.ended"]
    assert 3600.3 <= ended["elapsed"] <= 3600 + session
    assert ran.lines[1][11:] == "Previous session: 3 iterations completed in 1h0m0s"
    assert "(total: 1h0m" in ran.lines[-1]


def test_OA_39_a_prompt_file_that_vanishes(ws: Workspace) -> None:
    """Deleted by the first call: an error line names it, aborted, state kept, exit 1; put back, it can continue."""
    ws.side(1, "rm prompts/orient_build.md")
    ran = ws.rooda("build", "--max-iterations", "3")
    state = ws.state()
    assert (ran.code, len(ws.calls)) == (1, 1)
    assert "ERROR: " in ran.lines[-1] and "orient_build.md" in ran.lines[-1]
    assert state is not None
    assert (state["status"], state["iteration"], state["consecutive_failures"]) == ("aborted", 1, 0)
    missing = ws.rooda("resume", "build")
    assert (missing.code, len(ws.calls)) == (2, 1)
    assert ws.state() == state
    ws.write("prompts/orient_build.md", "ORI\n")
    assert (ws.rooda("resume", "build").code, len(ws.calls)) == (0, 3)


def test_OA_43_the_log_of_a_run(ws: Workspace) -> None:
    """Every record is versioned, numbered and stamped; each loop phase is there with its time, in order."""
    ws.procedure(gates={"ok": "true"}, loop={"token_budget": 1})
    ws.exits(0, 1)
    assert ws.rooda("build", "--max-iterations", "2").code == 1
    events = ws.events()
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert {(event["v"], event["loop"], event["procedure"]) for event in events} == {(1, "ooda", "build")}
    assert len({event["run"] for event in events}) == 1
    assert sorted(event["ts"] for event in events) == [event["ts"] for event in events]
    phases = {
        number: [
            e["phase"]
            for e in events
            if e.get("iteration") == number and e["event"] != "iteration.ended" and "phase" in e
        ]
        for number in (0, 1)
    }
    # The file is first written as the loop begins, and once more when it is over.
    assert [phase for phase in phases[0] if phase != "persist"] == ["assemble", "budget", "execute", "execute", "gates"]
    assert [phase for phase in phases[1] if phase != "persist"] == ["assemble", "budget", "execute", "execute"]
    assert phases[0][-1] == "persist"
    summaries = [event for event in events if event["event"] == "iteration.ended"]
    assert [
        (s["iteration"], s["display"], s["outcome"], s["exit_code"], s["consecutive_failures"]) for s in summaries
    ] == [(0, 1, "success", 0, 0), (1, 2, "failure", 1, 1)]
    assert all(isinstance(summary["elapsed"], float) for summary in summaries)


def test_OA_43_a_torn_line_does_not_spoil_the_log(ws: Workspace) -> None:
    """`rooda logs` passes over a line that a power cut left half-written."""
    assert ws.rooda("build", "--max-iterations", "1").code == 0
    (log,) = Path(ws.path, ".rooda", "runs").glob("*/events.jsonl")
    ws.damages_events = True
    with log.open("ab") as file:
        file.write(b'{"v":1,"ts":"2026')
    ran = ws.rooda("logs", "build")
    assert ran.code == 0
    assert any("Reached max iterations: 1" in line for line in ran.lines)


def test_OA_44_a_second_ctrl_c_ends_a_stubborn_agent_at_once(ws: Workspace) -> None:
    """An agent that ignores TERM would have ten minutes of grace; the second Ctrl+C takes them away."""
    ws.procedure(loop={"kill_grace": 600})
    ws.side(1, 'trap ": >\\"$FAKE/asked\\"" TERM\nwhile :; do sleep 0.02; done')
    loop = ws.start("build", "--max-iterations", "3")
    ws.wait_calls(1)
    loop.signal(signal.SIGINT)
    until(lambda: Path(ws.fake, "asked").exists(), what="the agent to be asked")
    loop.signal(signal.SIGINT)
    assert loop.finish() == 130
    state = ws.state()
    assert not alive(ws.calls[0].pid)
    assert state is not None and (state["status"], state["iteration"]) == ("interrupted", 1)
    assert loop.lines[-1].endswith("Interrupted. State saved. Resume with: rooda resume build")


def test_OA_44_one_ctrl_c_is_enough_when_the_grace_is_over(ws: Workspace) -> None:
    """A stubborn agent is killed after the grace, without a second signal."""
    ws.procedure(loop={"kill_grace": 0.1})
    ws.side(1, 'trap "" TERM\nkill -INT $PPID\nwhile :; do sleep 0.02; done')
    assert ws.rooda("build", "--max-iterations", "3").code == 130
    assert not alive(ws.calls[0].pid)


def test_OA_44_a_hang_up_saves_the_state(ws: Workspace) -> None:
    """SIGHUP, as when a terminal closes: the agent is ended, the state saved, exit 143, and resume continues."""
    ws.signal_at(2, "HUP")
    ran = ws.rooda("build", "--max-iterations", "3")
    state = ws.state()
    assert ran.code == 143
    assert state is not None and (state["status"], state["iteration"]) == ("interrupted", 2)
    assert (ws.rooda("resume", "build").code, len(ws.calls)) == (0, 3)


def test_OA_46_a_crash_before_the_write_repeats_the_iteration(ws: Workspace) -> None:
    """Killed after the agent's end and before the state is written: the resume makes iteration 2 once more."""
    kill = '[ -e "$FAKE/killed" ] || [ "$ROODA_ITERATION" != 2 ] || { : >"$FAKE/killed"; kill -KILL $PPID; }'
    ws.procedure(gates={"crash": kill})
    assert ws.rooda("build", "--max-iterations", "3").code == -signal.SIGKILL
    state = ws.state()
    assert state is not None and (state["status"], state["iteration"]) == ("running", 1)
    assert ws.rooda("build").code == 3
    ran = ws.rooda("resume", "build")
    assert (ran.code, len(ws.calls)) == (0, 4)
    assert [call.env["ROODA_ITERATION"] for call in ws.calls] == ["1", "2", "2", "3"]


def test_OA_46_a_reader_never_sees_half_a_file(ws: Workspace) -> None:
    """Read all the time, the state file is always one whole object, and its counter only grows."""
    loop = ws.start("build", "--max-iterations", "30")
    seen = []
    while loop.process.poll() is None:
        try:
            data = Path(ws.state_file()).read_bytes()
        except FileNotFoundError:
            continue
        seen.append(json.loads(data)["iteration"])
    assert loop.finish() == 0
    assert len(seen) > 10 and seen == sorted(seen)
    assert os.listdir(ws.file(".rooda/state")) == ["build.lock"]


def test_OA_46_a_killed_writers_leavings_are_tidied(ws: Workspace) -> None:
    """What a killed writer left is gone after the next run; another procedure's is not ours."""
    ws.write(".rooda/state/build.json.123.tmp", json.dumps(SAMPLE)[:50])
    ws.write(".rooda/state/other.json.123.tmp", "theirs")
    assert ws.rooda("build", "--max-iterations", "1").code == 0
    assert sorted(os.listdir(ws.file(".rooda/state"))) == ["build.lock", "other.json.123.tmp"]
