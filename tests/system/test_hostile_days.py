"""What a hostile stranger tried of the commands for loops that run for days."""

import json
import subprocess

import pytest

from tests.kit.background import HOLD, began, begin, detached, kill_all, let_go, prepare, rows
from tests.kit.flow import Flow
from tests.kit.workspace import Workspace

WORDS = ("stop", "pause", "continue", "attach")
TENTHS = "[loop]\nagent = 'tenth'\n[agents.tenth]\ncommand = 'sh agent.sh'\noutput = 'claude'\n"
TENTH = 'cat >/dev/null; echo \'{"type":"result","subtype":"success","result":"ok","total_cost_usd":0.1}\''


@pytest.mark.parametrize("word", WORDS)
def test_an_unknown_name_is_answered_with_the_nearest(ws: Workspace, word: str) -> None:
    """Exit 2 with the nearest name; a known loop that does not run is not a failure."""
    wrong = ws.rooda(word, "biuld")
    assert (wrong.code, wrong.out) == (2, "")
    assert wrong.err.endswith("Did you mean 'build'?\n")
    idle = ws.rooda(word, "build")
    assert (idle.code, idle.out, idle.err) == (0, "Procedure 'build' is not running.\n", "")
    assert ws.rooda(word, "goal").out == "Goal 'goal' is not running.\n"


def test_ten_times_ten_cents_is_a_dollar(ws: Workspace) -> None:
    """At a sum that equals the limit no further call is made, though ten floats of 0.1 are a hair less than 1."""
    ws.write("agent.sh", TENTH)
    ws.config(TENTHS + ws.sections["build"])
    ran = ws.rooda("build", "-n", "15", "--max-cost", "1")
    assert ran.code == 4
    assert "Cost limit reached: $1.00 of $1.00 (10 iterations completed" in ran.out
    assert json.loads(ws.rooda("usage", "--json").out)["total"]["calls"] == 10


def test_a_run_with_a_damaged_state_is_not_passed_over_at_boot(ws: Workspace) -> None:
    """It was cut off and can't continue: `resume --all` has a line for it, and fails."""
    detached(ws)
    kill_all(ws)
    ws.write(".rooda/state/build.json", '{"procedure_name": 5')
    ran = ws.rooda("resume", "--all")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"Not resumed: build in {ws.path}: Error: State file")
    assert ws.read(".rooda/state/build.json.corrupt") == '{"procedure_name": 5'


@pytest.mark.parametrize(("words", "code"), [("logs", 1), ("logs --iteration 0", 2), ("status nobody", 2)])
def test_a_full_stderr_does_not_change_the_exit_code(ws: Workspace, words: str, code: int) -> None:
    """The table of exit codes has no 120."""
    ws.rooda("build", "-n", "1")
    with open("/dev/full", "wb") as full:
        ran = subprocess.run(
            ws.command(*words.split()), env=ws.env, cwd=ws.path, stdout=subprocess.PIPE, stderr=full, check=False
        )
    assert ran.returncode == code


def test_the_table_shows_iteration_0_of_a_flow(ws: Workspace) -> None:
    """A flow counts from 0, which is not the same as unknown; table and detail agree."""
    flow = Flow(ws).scenario("S1")
    flow.say("sensor-unit", f"!sh {HOLD}\n---\nsensor: unit\nstatus: fail\n---\n")
    assert ws.rooda("flow", "run", "do it", "--detach").code == 0
    began(ws)
    detail, wide = rows(ws)[0], rows(ws, "--all")[0]
    assert (detail["iteration"], detail["display"], wide["iteration"], wide["display"]) == (0, 0, 0, 0)
    ws.rooda("stop")


def test_a_goal_that_is_complete_waits_for_nothing(ws: Workspace) -> None:
    """Its row names no command with which it would continue."""
    let_go(ws)
    assert ws.rooda(*prepare(ws, "goal")).code == 0
    row = rows(ws, "--all")[0]
    assert (row["state"], row["waits_for"]) == ("completed", "")


REASONS = {"bytes": "tuned\udcff \x1b[31mred", "lines": "  too\nslow \N{SNOWMAN}", "long": "x" * 100_000}


@pytest.mark.parametrize("reason", REASONS.values(), ids=REASONS)
def test_any_reason_is_kept_and_a_stopped_run_stays_stopped(ws: Workspace, reason: str) -> None:
    """Also one of invalid UTF-8: without its order the run would look cut off, and be resumed at the next boot."""
    detached(ws)
    assert ws.rooda("stop", f"--reason={reason}").code == 0
    told = " ".join(reason.split()).replace("\udcff", "?").replace("\x1b", "?")
    assert ws.rooda("status").lines[-1].endswith(f": {told}")
    assert ws.rooda("resume", "--all").out == "No run was cut off; there is nothing to resume.\n"


def test_a_reflex_loop_may_be_stopped_with_any_reason(ws: Workspace) -> None:
    """Its own files can be read, and it can be resumed: a reason is only a note."""
    begin(ws, "reflex")
    stopped = ws.rooda("stop", "--reason=tuned\udcff")
    assert (stopped.code, stopped.out) == (0, "Stopped reflex 'page'. Resume with: rooda resume page\n")
    assert ws.json(".ai-factory/evolution/page/run.json")["status"] == "running"
