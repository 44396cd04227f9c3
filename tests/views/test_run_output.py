"""How much a run says and in which form: levels, stamps, JSON, statistics, the log on disk."""

import json
import re

import pytest

from tests.kit.workspace import Workspace, masked

KEYS = ["v", "ts", "run", "loop", "procedure", "seq", "event"]


def failing(ws: Workspace) -> None:
    """Call 2 of the run fails, and the budget is too small."""
    ws.procedure("build", loop={"token_budget": 10})
    ws.exits(0, 1)


def test_a_pipe_sees_the_catalogue_only(ws: Workspace) -> None:
    """Without --verbose a raw command prints M01–M08 on stdout; stderr has the summary of the run alone (E-21)."""
    ws.out(1, "noise\n")
    ws.err(1, "noise\n")
    ran = ws.rooda("build", "-n", "1")
    assert masked(ran.err.splitlines()) == [
        "[T] build: completed, after 1 of 1 iteration",
        "[T]   iterations  1 in D",
        "[T]   cost        unknown, 1 call",
    ]
    assert masked(ran.lines) == [
        "[T] Starting procedure: build (max 1 iterations)",
        "[T] Iteration 1/1 starting...",
        "[T] Iteration 1/1 completed in D",
        "[T] Reached max iterations: 1 (total: D)",
    ]


@pytest.mark.parametrize("words", [("-q",), ("--quiet",), ("--log-level", "warn")], ids=" ".join)
def test_OU_22_quiet_is_warnings_and_errors(ws: Workspace, words: tuple[str, ...]) -> None:
    """Quiet drops what is not a warning; a run without trouble is silent."""
    failing(ws)
    ran = ws.rooda("build", "-n", "2", *words)
    budget = "[T] WARNING: Prompt exceeds token budget: 30 > 10"
    failure = "[T] WARNING: AI CLI failed (exit 1), consecutive failures: 1/3"
    assert masked(ran.lines) == [budget, budget, failure]
    ws.procedure("build", loop={"token_budget": 0})
    ran = ws.rooda("build", "-n", "1", *words)
    assert (ran.code, ran.both) == (0, "")


def test_OU_22_error_level(ws: Workspace) -> None:
    """--log-level error leaves only what ends the run."""
    ws.exits(1, 1, 1)
    ran = ws.rooda("build", "--log-level", "error")
    assert ran.code == 1 and len(ran.lines) == 1
    assert "ERROR: Aborting after 3 consecutive failures" in ran.out


def test_OU_22_quiet_still_shows_how_to_resume(ws: Workspace) -> None:
    """An interruption is said in quiet as well."""
    ws.signal_at(1)
    ran = ws.rooda("build", "-q")
    assert ran.code == 130
    assert masked(ran.lines) == ["[T] Interrupted. State saved. Resume with: rooda resume build"]


def test_OU_22_levels_from_elsewhere(ws: Workspace) -> None:
    """log_level of the settings holds, the environment sets it, a flag beats both."""
    ws.procedure("build", loop={"log_level": "error"})
    assert ws.rooda("build", "-n", "1").out == ""
    assert len(ws.rooda("build", "-n", "1", "--log-level", "info").lines) == 4
    assert "Prompt:" in ws.rooda("build", "-n", "1", env={"ROODA_LOOP_LOG_LEVEL": "debug"}).out
    assert ws.rooda("build", "-n", "1", "-q", env={"ROODA_LOOP_LOG_LEVEL": "debug"}).out == ""


@pytest.mark.parametrize(
    ("form", "stamp"),
    [
        ("time", r"\[\d\d:\d\d:\d\d\] "),
        ("time-ms", r"\[\d\d:\d\d:\d\d\.\d{3}\] "),
        ("relative", r"\[\+\d+\.\d{3}s\] "),
        ("iso", r"\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\] "),
        ("none", ""),
    ],
)
def test_OU_23_stamps(ws: Workspace, form: str, stamp: str) -> None:
    """log_timestamp_format decides how each line begins."""
    ws.procedure("build", loop={"log_timestamp_format": form})
    lines = ws.rooda("build", "-n", "1").lines
    assert re.fullmatch(stamp + r"Starting procedure: build \(max 1 iterations\)", lines[0])
    assert re.fullmatch(stamp + r"Reached max iterations: 1 \(total: \d+s\)", lines[-1])


def test_OU_23_local_time(ws: Workspace) -> None:
    """The default stamp is local time: a zone half a day away shows another hour."""
    hours = [ws.rooda("build", "-n", "1", env={"TZ": zone}).out[1:3] for zone in ("UTC+6", "UTC-6")]
    assert (int(hours[1]) - int(hours[0])) % 24 in (12, 13)


def test_OU_25_timing(ws: Workspace) -> None:
    """With --verbose the run ends with the statistics of its iterations; the spread only from two on."""
    line = ws.rooda("build", "-n", "1", "-v").lines[-1]
    assert re.search(r"\] Iteration timing: count=1 min=\d+\.\ds max=\d+\.\ds mean=\d+\.\ds$", line)
    line = ws.rooda("build", "-n", "3", "-v").lines[-1]
    assert re.search(r"\] Iteration timing: count=3 min=\d+\.\ds max=\d+\.\ds mean=\d+\.\ds stddev=\d+\.\ds$", line)
    assert ws.events()[-1]["timing"]["count"] == 3


def test_json_is_the_log(ws: Workspace) -> None:
    """With --json every line of stdout is an event with the documented keys, as on disk; nothing else is said."""
    ws.procedure("build", loop={"token_budget": 10}, gates={"tests": "true"})
    ws.exits(0, 1)
    ws.out(1, "noise\n")
    ran = ws.rooda("build", "-n", "2", "--json")
    records = [json.loads(line) for line in ran.lines]
    assert ran.err == "" and records == ws.events()
    for number, record in enumerate(records, 1):
        assert list(record)[:7] == KEYS
        assert (record["v"], record["loop"], record["procedure"], record["seq"]) == (1, "ooda", "build", number)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", record["ts"])
    assert len({record["run"] for record in records}) == 1
    kinds = [record["event"] for record in records]
    assert kinds[0] == "run.started" and kinds[-1] == "run.ended"
    turn = ["iteration.started", "prompt.assembled", "budget.exceeded", "agent.started", "agent.ended"]
    assert [kind for kind in kinds if kind in turn] == turn * 2
    assert kinds.count("gate.started") == kinds.count("gate.ended") == kinds.count("gates.ended") == 1


def test_json_of_a_resume_and_of_levels(ws: Workspace) -> None:
    """A resumed run begins with run.resumed; neither -q nor -v nor a level changes what --json gives."""
    ws.put_state(max_iterations=4)
    kinds = []
    for words in (("resume", "build"), ("build", "-n", "1", "-q"), ("build", "-n", "1", "-v")):
        records = [json.loads(line) for line in ws.rooda(*words, "--json").lines]
        kinds.append([record["event"] for record in records])
    assert kinds[0][0] == "run.resumed" and kinds[1] == kinds[2]
    assert kinds[0][1:] == kinds[1][1:]


def test_json_keeps_any_text(ws: Workspace) -> None:
    """Names that are no ASCII come through --json readable, whatever the agent wrote."""
    ws.procedure("build", gates={"prüfung → ✓": "exit 3"})
    ran = ws.rooda("build", "-n", "1", "--json")
    ended = next(record for line in ran.lines if (record := json.loads(line))["event"] == "iteration.ended")
    assert ended["gates_failed"] == "prüfung → ✓ (exit 3)"
    assert "prüfung" in ran.out


def test_json_of_a_failed_start(ws: Workspace) -> None:
    """Nothing started: the sentence on stderr, no event."""
    ran = ws.rooda("build", "--json", "--ai-cmd", "no-such-agent")
    assert (ran.code, ran.out) == (2, "")
    assert "AI command binary not found" in ran.err


def test_a_screen_without_the_characters(ws: Workspace) -> None:
    """An output whose encoding lacks a character shows `?` for it and everything else; the log has it."""
    ws.procedure("build", gates={"prüfung": "false"})
    ran = ws.rooda("build", "-n", "1", env={"PYTHONIOENCODING": "ascii"})
    assert ran.code == 1 and "Quality gates failed: pr?fung (exit 1)" in ran.out
    assert "Reached max iterations: 1" in ran.lines[-1]
    assert any(event.get("gates_failed") == "prüfung (exit 1)" for event in ws.events())


def test_gates_in_the_details(ws: Workspace) -> None:
    """With --verbose each gate is shown with its verdict and time."""
    ws.procedure("build", gates={"lint": "true", "tests": "exit 2"})
    lines = masked(ws.rooda("build", "-n", "1", "-v").lines)
    assert "[T] Gate lint: pass in D" in lines and "[T] Gate tests: exit 2 in D" in lines
