"""What other commands learn about a goal, and how `rooda stop` would end it."""

import signal

from rooda.loops.goal import kind
from tests.kit.goal import SPEC, Goals
from tests.kit.processes import until


def test_the_status_row_of_a_goal(g: Goals) -> None:
    """Nothing at first; running, then resumable with its facts and lines."""
    assert (kind.locks(g.path), kind.resumable(g.path), kind.facts(g.path, None)) == ({}, [], [])
    g.side("step-1", "until [ -e go ]; do sleep 0.02; done")
    running = g.start("goal", "run", SPEC)
    g.wait_calls(2)
    assert [*kind.running(g.path)] == ["goal"] and kind.facts(g.path, None)[0]["running"] is True
    running.signal(signal.SIGTERM)
    assert running.finish() == 143
    assert g.private["reason"] == "interrupted" and kind.resumable(g.path) == ["goal"]
    (facts,) = kind.facts(g.path, "goal")
    assert facts["status"] == "paused" and kind.lines(facts)[0] == "goal: paused: interrupted"
    assert kind.facts(g.path, "other") == [] and not kind.running(g.path)


def test_pause_from_another_terminal(g: Goals) -> None:
    """The running iteration ends first; continue continues with the next."""
    assert "No goal is running" in g.rooda("goal", "pause").out
    g.side("step-1", "until [ -e go ]; do sleep 0.02; done; touch a.ok")
    running = g.start("goal", "run", SPEC)
    g.wait_calls(2)
    assert g.rooda("goal", "pause").code == 0
    until(lambda: g.exists(".rooda/goal.request"), what="the request")
    g.write("go", "")
    assert running.finish() == 4 and "[LOOP] ⏸ Paused: pause requested" in running.lines
    assert g.public["iteration"] == 1 and g.go_on("--iterations", "1").code == 4


def test_damaged_files_are_reported(g: Goals) -> None:
    """Nothing readable is left: exit 2 with what to do, and a table that says so."""
    assert g.run("-n", "1").code == 4
    for name in ("run.json", "state.json", "iterations.jsonl"):
        g.write(f".loop/{name}", "{")
    ran = g.go_on()
    assert ran.code == 2 and "damaged" in ran.err
    assert "damaged" in g.rooda("goal", "status").out
    assert g.run("-n", "1").code == 4
