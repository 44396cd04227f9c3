"""At a usage limit rooda waits, stops or switches; the limit is remembered beyond the run."""

import json
import shutil
import time
from pathlib import Path

import pytest

from tests.kit.clocks import HOUR, Clock, sleep_through
from tests.kit.limits import FAR, LIMITED
from tests.kit.needed import LINUX, needs
from tests.kit.workspace import Workspace, until

DONE = '{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s","num_turns":1}'


def agents(ws: Workspace, resets_at: int, **loop: object) -> None:
    """`first` meets its limit at every call, `second` does the work."""
    ws.write("first.out", LIMITED % resets_at)
    ws.write("second.out", DONE)
    ws.sections["agents"] = "".join(
        f'\n[agents.{name}]\ncommand = "sh -c \'echo {name} >>calls; cat {name}.out\'"\noutput = "claude"\n'
        for name in ("first", "second")
    )
    ws.procedure(loop={"ai_cmd": None, "agent": "first", "retry_wait": 0, **loop})


def calls(ws: Workspace) -> list[str]:
    return ws.read("calls").split() if ws.exists("calls") else []


def test_stop(ws: Workspace) -> None:
    """on_limit = "stop": the run pauses with exit 4 and says until when; no iteration, no failure."""
    agents(ws, FAR, on_limit="stop")
    ran = ws.rooda("build", "-n", "3")
    assert ran.code == 4 and calls(ws) == ["first"]
    assert "WARNING: Usage limit of first" in ran.lines[-1] and "2096-10-02" in ran.lines[-1]
    state = ws.state()
    assert (state["iteration"], state["consecutive_failures"], state["status"]) == (0, 0, "interrupted")


def test_a_time_that_no_clock_shows(ws: Workspace) -> None:
    """A limit that is said to end in the year 1 has an unknown end; the run pauses as at any other."""
    agents(ws, 0, on_limit="stop")
    told = {"type": "result", "is_error": True, "api_error": "usage_limit_reached"}
    ws.write("first.out", json.dumps({**told, "result": "You've hit your limit, resets Jan 1, 0001 at 1am"}))
    ran = ws.rooda("build", "-n", "1")
    assert ran.code == 4 and "WARNING: Usage limit of first" in ran.lines[-1], ran.both


def test_switch(ws: Workspace) -> None:
    """on_limit = "switch": the next agent makes the same call, and those after it, while the first may not be used."""
    agents(ws, FAR, on_limit="switch", fallback=["second"])
    ran = ws.rooda("build", "-n", "3")
    assert ran.code == 0, ran.both
    assert calls(ws) == ["first", "second", "second", "second"]
    assert ran.err.count(": second is used from now on") == 1 and "WARNING: Usage limit of first" in ran.err
    assert ": second is used from now on" in ws.rooda("logs").out and "second" not in ran.out
    assert ws.rooda("build", "-n", "1").code == 0 and calls(ws)[-1] == "second"


def test_a_time_limit_ends_the_wait(ws: Workspace) -> None:
    """A usage limit that lasts longer than the run may is not waited out: the run pauses at its own limit."""
    agents(ws, FAR)
    ran = ws.rooda("build", "-n", "3", "--max-duration", "1")
    assert ran.code == 4 and calls(ws) == ["first"]
    assert "Time limit reached" in ran.lines[-1], ran.both
    assert (ws.state()["iteration"], ws.state()["consecutive_failures"]) == (0, 0)


def test_wait_outlives_a_restart(ws: Workspace) -> None:
    """on_limit = "wait": after TERM and resume the run still waits and calls no agent."""
    agents(ws, FAR)
    running = ws.start("build", "-n", "3")
    until(lambda: "resting" in [event["event"] for event in ws.events()], what="the wait")
    running.process.terminate()
    assert running.finish() == 143
    assert ws.state()["iteration"] == 0 and calls(ws) == ["first"]
    again = ws.start("resume", "build")
    until(lambda: "resting" in [event["event"] for event in ws.events()] and len(runs(ws)) == 2, what="the second wait")
    again.process.terminate()
    assert again.finish() == 143
    assert calls(ws) == ["first"]


def runs(ws: Workspace) -> list[Path]:
    return list(Path(ws.file(".rooda/runs")).iterdir())


def test_a_limit_is_shared_by_the_user_s_workspaces(ws: Workspace) -> None:
    """Another loop of the same account does not ask either."""
    agents(ws, FAR, on_limit="stop")
    other = Path(ws.root, "other")
    shutil.copytree(ws.path, other)
    assert ws.rooda("build").code == 4 and calls(ws) == ["first"]
    ran = ws.rooda("build", cwd=str(other))
    assert ran.code == 4 and "Usage limit of first" in ran.out
    assert not (other / "calls").exists()


def test_after_the_reset_it_continues(ws: Workspace) -> None:
    """A limit whose time has come is over, and its record doesn't block a run."""
    agents(ws, FAR, on_limit="stop")
    assert ws.rooda("build").code == 4
    record = next(Path(ws.env["XDG_STATE_HOME"]).rglob("*.json"))
    record.write_text(json.dumps({**json.loads(record.read_text()), "until": "2026-01-01T00:00:00+02:00"}))
    ws.write("first.out", DONE)
    assert ws.rooda("resume", "build", "-n", "2").code == 0
    assert calls(ws) == ["first", "first", "first"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"until": 3}', '{"until": "soon"}'])
def test_a_damaged_record_is_ignored(ws: Workspace, text: str) -> None:
    """A record that can't be parsed does not make a run wait."""
    agents(ws, FAR, on_limit="stop")
    assert ws.rooda("build").code == 4
    next(Path(ws.env["XDG_STATE_HOME"]).rglob("*.json")).write_text(text)
    ws.write("first.out", DONE)
    assert ws.rooda("resume", "build", "-n", "1").code == 0


def test_an_unknown_fallback_is_refused(ws: Workspace) -> None:
    """Its name is wrong before anything begins."""
    agents(ws, FAR, on_limit="switch", fallback=["secnod"])
    ran = ws.rooda("build")
    assert ran.code == 2 and "unknown agent 'secnod'" in ran.err and calls(ws) == []


@LINUX
@needs("cc")
def test_a_limit_is_waited_out(ws: Workspace) -> None:
    """When the limit is over, rooda repeats the iteration, which counts once."""
    clock = Clock(ws)
    agents(ws, int(time.time()) + HOUR)
    running = ws.start("build", "-n", "1")
    until(lambda: "resting" in [event["event"] for event in ws.events()], what="the wait")
    ws.write("first.out", DONE)
    sleep_through(clock, running, 2 * HOUR)
    assert running.finish() == 0
    assert calls(ws) == ["first", "first"]
    assert [event["event"] for event in ws.events()].count("iteration.ended") == 1
    said = [Path(event["transcript"]).read_text() for event in ws.events() if event["event"] == "agent.ended"]
    assert "hit your limit" in said[0] and '"done"' in said[1]  # neither wrote over the other


def failing(ws: Workspace, words: str, status: int, **loop: object) -> None:
    """An agent whose service refuses every call with these words."""
    agents(ws, 0, **loop)
    told = {"type": "result", "subtype": "success", "is_error": True, "api_error_status": status, "result": words}
    ws.write("first.out", json.dumps(told))


def test_I_26_the_longer_wait_wins(ws: Workspace) -> None:
    """A throttle is retried after the delay that the service asks for, if that is longer than the back-off."""
    failing(ws, "Rate limit exceeded, retry after 1.5 seconds", 429, failure_threshold=2)
    ran = ws.rooda("build", "-n", "9")
    assert ran.code == 1 and len(calls(ws)) == 2
    rests = [event["seconds"] for event in ws.events() if event["event"] == "resting"]
    assert rests and all(seconds == 1.5 for seconds in rests)


@pytest.mark.parametrize(("words", "made"), [("Something odd about this request", 2), ("unsupported parameter: x", 1)])
def test_I_24_a_refused_request_is_retried_once(ws: Workspace, words: str, made: int) -> None:
    """A 400 without a known reason may pass the next time; the second in a row, and a known reason, end the run."""
    failing(ws, words, 400)
    ran = ws.rooda("build", "-n", "9")
    assert (ran.code, len(calls(ws))) == (1, made), ran.both
    assert ws.events()[-1]["reason"] == "agent"


@pytest.mark.parametrize("words", ["Your workspace is out of credits.", "You have no quota for this model"])
def test_I_22_A_03_money_needs_the_user(ws: Workspace, words: str) -> None:
    """One call, exit 1, and a line that says who can mend it."""
    failing(ws, words, 429)
    ran = ws.rooda("build", "-n", "9")
    assert (ran.code, len(calls(ws))) == (1, 1), ran.both
    assert f"Aborting: auth: {words}" in ran.out + ran.err
