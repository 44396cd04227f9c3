"""Resuming an earlier run after a signal, a crash or a reboot: offered, refused, or started over."""

import json
import os
import signal
from typing import Any

import pytest

from tests.kit.workspace import SAMPLE, Workspace, masked, until


def first_lines(lines: list[str]) -> list[str]:
    """The first three lines without their stamps."""
    return [line[11:] for line in lines[:3]]


def test_O_019_OA_01_OA_07_after_a_signal(bare: Workspace) -> None:
    """A run interrupted in iteration 3 continues with 4; the line says 3, the number of closed iterations."""
    bare.procedure("migrate")
    bare.signal_at(3)
    assert bare.rooda("migrate", "--max-iterations", "6").code == 130
    ran = bare.rooda("resume", "migrate")
    assert ran.code == 0
    assert masked(ran.lines)[:3] == [
        "[T] Resuming procedure: migrate from iteration 3 (max 6)",
        "[T] Previous session: 3 iterations completed in D",
        "[T] Iteration 4/6 starting...",
    ]
    assert len(bare.calls) == 6
    assert bare.state("migrate") is None


def test_O_020_after_a_crash(ws: Workspace) -> None:
    """A loop killed in call 3 counts two iterations; resume warns and repeats the third."""
    ws.side(3, 'while kill -0 "$PPID" 2>/dev/null; do sleep 0.01; done')
    running = ws.start("build", "--max-iterations", "4")
    ws.wait_calls(3)
    os.kill(ws.json(".rooda/state/build.lock")["pid"], signal.SIGKILL)
    running.finish()
    until(lambda: not ws.leftovers(), what="the agent to be gone")
    assert (ws.state()["status"], ws.state()["iteration"]) == ("running", 2)
    ran = ws.rooda("resume", "build")
    assert ran.code == 0
    assert masked(ran.lines)[0] == "[T] Resuming procedure: build from iteration 2 (max 4)"
    assert masked(ran.lines)[2] == "[T] Iteration 3/4 starting..."
    assert "did not end cleanly" in ran.err
    assert [call.env["ROODA_ITERATION"] for call in ws.calls] == ["1", "2", "3", "3", "4"]


def test_O_021_OA_03_after_a_reboot(bare: Workspace) -> None:
    """The file alone is enough: no lock, no pid, no run folder."""
    bare.procedure("review")
    bare.put_state("review", iteration=2, status="running", elapsed_per_iteration=["30.0s", "15.0s"], max_iterations=4)
    ran = bare.rooda("resume", "review")
    assert ran.code == 0
    assert first_lines(ran.lines) == [
        "Resuming procedure: review from iteration 2 (max 4)",
        "Previous session: 2 iterations completed in 45s",
        "Iteration 3/4 starting...",
    ]
    assert "WARNING" in ran.err
    assert len(bare.calls) == 2


@pytest.mark.parametrize("status", ["interrupted", "paused"])
def test_O_046_OA_05_resume_is_offered(ws: Workspace, status: str) -> None:
    """Without a terminal, a start reports what it found and both commands, and leaves the file alone."""
    ws.put_state(status=status)
    before = ws.read(".rooda/state/build.json")
    ran = ws.rooda("build")
    assert ran.code == 3
    assert "iteration 3 of 10" in ran.err
    assert "rooda resume build" in ran.err
    assert "rooda build --fresh" in ran.err
    assert ws.calls == []
    assert ws.read(".rooda/state/build.json") == before
    assert ws.rooda("resume", "build").code == 0
    assert len(ws.calls) == 7


def test_OA_05_paused_is_never_written(ws: Workspace) -> None:
    """A run resumed from `paused` is running, and interrupted afterwards."""
    ws.put_state(status="paused")
    ws.copy_state_at(1)
    ws.signal_at(2)
    assert ws.rooda("resume", "build").code == 130
    assert ws.copies[1]["status"] == "running"
    assert ws.state()["status"] == "interrupted"


def test_OA_05_nor_at_a_limit(ws: Workspace) -> None:
    """What may not continue for its cost, its tokens or its time waits as interrupted."""
    assert ws.rooda("build", "--max-duration", "0.001").code == 4
    assert ws.state()["status"] == "interrupted"


@pytest.mark.parametrize("words", [("resume", "build"), ("build", "--resume")], ids=" ".join)
def test_OA_03_a_crash_is_reported_before_the_resume(ws: Workspace, words: tuple[str, ...]) -> None:
    """Whichever way it is asked for."""
    ws.put_state(status="running")
    ran = ws.rooda(*words)
    assert ran.code == 0 and "WARNING: The last run of 'build' did not end cleanly; resuming it." in ran.err


@pytest.mark.parametrize("words", [("resume",), ("resume", "build")], ids=" ".join)
def test_a_damaged_state_is_kept_at_a_resume(ws: Workspace, words: tuple[str, ...]) -> None:
    """Its bytes are kept next to it, exit 2, whether or not it was named."""
    ws.write(".rooda/state/build.json", "{broken")
    ran = ws.rooda(*words)
    assert ran.code == 2 and "damaged" in ran.err and "build.json.corrupt" in ran.err
    assert ws.read(".rooda/state/build.json.corrupt") == "{broken" and not ws.exists(".rooda/state/build.json")


@pytest.mark.parametrize(
    "change",
    [
        {"started_at": "yesterday"},
        {"last_iteration_at": "12:00"},
        {"elapsed_per_iteration": ["-9s"]},
        *({key: None} for key in ("iteration", "last_iteration_at", "procedure_name")),
    ],
    ids=str,
)
def test_O_032_a_state_that_cannot_be(ws: Workspace, change: dict[str, Any]) -> None:
    """No times, negative ones, or a key that is not there (None): nothing is resumed from it."""
    ws.put_state(**change)
    state = ws.json(".rooda/state/build.json")
    kept = {key: value for key, value in state.items() if key not in change or change[key]}
    ws.write(".rooda/state/build.json", json.dumps(kept))
    ran = ws.rooda("resume", "build")
    assert (ran.code, ws.calls) == (2, []) and "damaged" in ran.err


@pytest.mark.parametrize("way", ["piped yes", "terminal Enter", "--resume", "setting"])
def test_O_048_accepted_everything_comes_back(ws: Workspace, way: str) -> None:
    """Accepted by any road, the run continues with the stored start, durations, limit, threshold and failures."""
    ws.put_state(consecutive_failures=2, failure_threshold=4, iteration=3)
    ws.exits(0, 1)
    ws.copy_state_at(1, 2)
    if way == "terminal Enter":
        running = ws.terminal("build")
        until(lambda: "[Y/n]" in running.out, what="the question")
        running.type("\r")
        code, text = running.finish(), running.out
    else:
        flags = ["--resume"] if way == "--resume" else []
        env = {"ROODA_LOOP_ON_INTERRUPTED": "resume"} if way == "setting" else {}
        ran = ws.rooda("build", *flags, stdin=b"y\n" if way == "piped yes" else None, env=env)
        code, text = ran.code, ran.out
    assert code == 0
    assert "Resuming procedure: build from iteration 3 (max 10)" in text
    kept = ("started_at", "max_iterations", "failure_threshold", "consecutive_failures", "elapsed_per_iteration")
    stored = SAMPLE | {"consecutive_failures": 2, "failure_threshold": 4}
    assert {key: ws.copies[1][key] for key in kept} == {key: stored[key] for key in kept}
    assert ws.copies[2]["started_at"] == SAMPLE["started_at"]
    assert ws.copies[2]["elapsed_per_iteration"][:3] == SAMPLE["elapsed_per_iteration"]
    assert len(ws.calls) == 7


def test_O_048_declined_it_starts_over(ws: Workspace) -> None:
    """The answer no starts with iteration 1 and forgets the earlier run."""
    ws.put_state()
    ws.copy_state_at(1)
    ran = ws.rooda("build", "-n", "2", stdin=b"no\n")
    assert ran.code == 0
    assert masked(ran.lines)[1] == "[T] Iteration 1/2 starting..."
    assert (ws.copies[1]["iteration"], ws.copies[1]["elapsed_per_iteration"]) == (0, [])
    assert ws.copies[1]["started_at"] > SAMPLE["started_at"]


@pytest.mark.parametrize("name", ["build", "nightly"])
def test_O_049_running_is_refused(bare: Workspace, name: str) -> None:
    """A file that says running: a warning, no start, no call, and not a byte of it changed."""
    bare.procedure(name)
    bare.put_state(name, status="running")
    before = bare.read(f".rooda/state/{name}.json")
    ran = bare.rooda(name, "-n", "1", stdin=b"y\n")
    assert ran.code == 3
    assert "WARNING" in ran.err
    assert "concurrent execution" in ran.err
    assert f"rooda resume {name}" in ran.err
    assert bare.calls == []
    assert bare.read(f".rooda/state/{name}.json") == before


@pytest.mark.parametrize("status", ["aborted", "completed", None])
def test_O_050_anything_else_is_a_fresh_start(ws: Workspace, status: str | None) -> None:
    """After an abort, a completed run, or nothing at all, a start begins with 1 and asks nothing."""
    if status:
        ws.put_state(status=status, iteration=6, consecutive_failures=3)
    ws.copy_state_at(1)
    ran = ws.rooda("build", "--max-iterations", "2")
    assert ran.code == 0
    assert masked(ran.lines)[1] == "[T] Iteration 1/2 starting..."
    assert (ws.copies[1]["iteration"], ws.copies[1]["consecutive_failures"]) == (0, 0)
    assert ran.notes == ""


def test_OA_03_a_live_owner_is_respected(ws: Workspace) -> None:
    """While the loop lives neither a start, nor a resume, nor a fresh start gets in; afterwards resume does."""
    ws.side(1, "sleep 30 & wait")
    running = ws.start("build", "-n", "2")
    ws.wait_calls(1)
    for arguments in (["build"], ["build", "--fresh"], ["build", "--resume"], ["resume", "build"]):
        ran = ws.rooda(*arguments)
        assert ran.code == 3, arguments
        assert str(ws.json(".rooda/state/build.lock")["pid"]) in ran.err
    assert len(ws.calls) == 1
    running.signal(signal.SIGINT)
    assert running.finish() == 130
    assert ws.rooda("resume", "build").code == 0
    assert len(ws.calls) == 2


@pytest.mark.parametrize("way", ["--fresh", "--resume", "delete"])
def test_OA_04_the_guard_can_be_got_round(ws: Workspace, way: str) -> None:
    """A file left at running by a dead loop is passed by --fresh, by --resume, and by deleting it."""
    ws.put_state(status="running", iteration=8)
    if way == "delete":
        os.remove(ws.state_file())
    ran = ws.rooda("build", "-n", "10", *([] if way == "delete" else [way]))
    assert ran.code == 0
    assert len(ws.calls) == (2 if way == "--resume" else 10)
