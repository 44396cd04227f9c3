"""What pauses a loop without ending it: limits of money and time, a full disk, a signal; and who is notified."""

import json
import os
import shutil
import signal
import sys
import time
from typing import Any

import pytest

from tests.kit.clocks import HOUR, Clock, sleep_through
from tests.kit.needed import LINUX, needs
from tests.kit.reflex import ALIAS, FAKE, Kit, words
from tests.kit.reflex_scenarios import script
from tests.kit.workspace import until

# Answers as an agent that tells what it cost: one cent a call.
PRICED = f"""#!{sys.executable}
import json, subprocess, sys
said = subprocess.run(["{FAKE}"], stdin=sys.stdin, capture_output=True, text=True)
found = {{"type": "result", "is_error": False, "result": said.stdout, "total_cost_usd": 0.01}}
print(json.dumps(found))
sys.exit(said.returncode)
"""


def priced(kit: Kit, more: str = "") -> None:
    path = kit.ws.write("priced", PRICED, 0o755)
    agent = f'[agents.priced]\ncommand = "{path}"\noutput = "claude"\n'
    kit.ws.config(f'{agent}[reflex]\nagent = "priced"\nexec_checks = "run"\n{more}')


# PREPARE meets a usage limit while the file `limited` is there; the rest answers.
LIMITED = f"""#!{sys.executable}
import json, os, subprocess, sys
if os.environ["ROODA_CALL"] == "prepare" and os.path.exists("limited"):
    resets = int(open("limited").read())
    os.remove("limited")
    info = {{"status": "rejected", "resetsAt": resets, "rateLimitType": "five_hour"}}
    print(json.dumps({{"type": "rate_limit_event", "rate_limit_info": info}}))
    said = {{"is_error": True, "api_error_status": 429, "result": "You've hit your limit"}}
    print(json.dumps({{"type": "result", **said}}))
    sys.exit(1)
said = subprocess.run(["{FAKE}"], stdin=sys.stdin, capture_output=True, text=True)
print(json.dumps({{"type": "result", "is_error": False, "result": said.stdout}}))
"""


def limited(kit: Kit, resets_at: int, on_limit: str) -> None:
    path = kit.ws.write("limited-agent", LIMITED, 0o755)
    kit.ws.write("limited", str(resets_at))
    agent = f'[agents.limited]\ncommand = "{path}"\noutput = "claude"\n'
    kit.ws.config(f'{agent}[reflex]\nagent = "limited"\nexec_checks = "run"\non_limit = "{on_limit}"\n')


def hooked(kit: Kit) -> list[dict[str, Any]]:
    """The events that the hooks got."""
    return [json.loads(line) for line in kit.ws.read("told").splitlines()]


def test_R_241_R_062_a_limit_of_cost(kit: Kit) -> None:
    """Exit 4, the loop can continue, no phase is paid twice, and a resume without limits keeps those of the start."""
    script(kit, "T2")
    priced(kit, "[hooks]\n" + "".join(f'{name} = "cat >> told"\n' for name in ("paused", "done")))
    ran = kit.new(4, "--max-cost", "0.03")
    assert ran.code == 4, ran.both
    assert "Cost limit reached: $0.0300 of $0.0300. No further agent is started." in ran.out
    assert f"State saved. Resume with: rooda reflex resume {ALIAS}" in ran.out and "Traceback" not in ran.err
    assert kit.run["status"] == "running" and (kit.home / "current.json").exists()
    calls = kit.counts()
    again = kit.reflex("resume")
    assert (again.code, kit.counts()) == (4, calls), again.both
    more = kit.ws.rooda("resume", ALIAS, "--max-cost", "1", timeout=60)
    assert (more.code, kit.run["status"]) == (0, "completed"), more.both
    assert kit.counts() == {"PLAN": 2, "PRODUCE": 2, "PREPARE": 3, "CRITIQUE": 1, "REFINE": 1}
    assert [told["moment"] for told in hooked(kit)] == ["paused", "paused", "done"]


@LINUX
@needs("cc")
def test_R_241_a_usage_limit_of_one_of_two(kit: Kit) -> None:
    """PREPARE meets a usage limit while PRODUCE succeeds: the answer of PRODUCE is on disk, and not paid for again."""
    limited(kit, 4_000_000_000, "stop")
    ran = kit.new()
    assert (ran.code, kit.counts()) == (4, {"PLAN": 1, "PRODUCE": 1}), ran.both
    assert (kit.run["status"], kit.run["current_step"], kit.artifact) == ("running", "PREPARE", words("ENAD"))
    assert "Usage limit of limited" in ran.out and "until 2096-10-02" in ran.out
    clock = Clock(kit.ws)
    limited(kit, int(time.time()) + HOUR, "switch")
    shutil.rmtree(f"{kit.ws.env['XDG_STATE_HOME']}/rooda/limits")
    again = kit.ws.start("reflex", "resume")
    until(lambda: "resting" in [event["event"] for event in kit.ws.events()], what="the wait")
    sleep_through(clock, again, 2 * HOUR)
    assert (again.finish(), kit.run["status"]) == (0, "completed"), again.both
    assert kit.counts() == {"PLAN": 1, "PRODUCE": 1, "PREPARE": 2}
    transcripts = [event["transcript"] for event in kit.ws.events() if event["event"] == "agent.started"]
    assert len(transcripts) == len(set(transcripts)) == 3


def test_R_241_a_limit_of_time(kit: Kit) -> None:
    """The same for `max_duration`, from the settings."""
    kit.config("max_duration = 0.2")
    kit.answer("PLAN.1", kit.said("PLAN.1"), "sleep 0.3")
    ran = kit.new()
    assert (ran.code, kit.counts(), kit.run["current_step"]) == (4, {"PLAN": 1}, "PRODUCE_PREPARE"), ran.both
    assert "Time limit reached" in ran.out


def test_R_241_a_signal_is_reported(kit: Kit) -> None:
    """`rooda why`, hooks and readers of events learn why a loop is paused."""
    kit.config('[hooks]\nstopped = "cat >> told"')
    kit.answer("PLAN.1", "x", "sleep 30")
    running = kit.start()
    until(lambda: kit.started("PLAN"))
    running.process.send_signal(signal.SIGTERM)
    assert running.finish() == 143
    (told,) = hooked(kit)
    assert (told["event"], told["status"], told["reason"], told["exit_code"]) == ("run.ended", "running", "signal", 143)
    assert "Interrupted" in kit.ws.rooda("why", ALIAS).out


def test_R_053_R_241_a_file_that_can_not_be_written(kit: Kit) -> None:
    """A sentence with the file; what is on disk can continue."""
    kit.answer("PLAN.1", kit.said("PLAN.1"), "wait go")
    running = kit.start()
    until(lambda: kit.started("PLAN"))
    kept = kit.path("history.jsonl").rename(os.path.join(kit.ws.root, "kept"))
    kit.path("history.jsonl").mkdir()
    kit.ws.write("go", "")
    assert running.finish() == 1
    assert "history.jsonl: Is a directory. State saved." in running.out and "Traceback" not in running.err
    kit.path("history.jsonl").rmdir()
    kept.rename(kit.path("history.jsonl"))
    ran = kit.reflex("resume")
    assert (ran.code, kit.ev.count("plan_created")) == (0, 1), ran.both


@pytest.mark.parametrize("step", ["CRITIQUE", "REFINE"])
def test_R_235_a_contradictory_run_json_is_rebuilt(kit: Kit, step: str) -> None:
    """A run.json that contradicts itself is damaged, and the state comes from the history."""
    kit.kill_in("PLAN.1", kit.said("PLAN.1"))
    kit.path("run.json").write_text(json.dumps(kit.run | {"current_step": step}))
    ran = kit.reflex("resume")
    assert (ran.code, "rebuilt" in ran.err) == (0, True), ran.both


def test_R_043_R_061_a_renamed_folder(kit: Kit) -> None:
    """The alias is the folder's name; the run keeps its id."""
    kit.kill_in("PLAN.1", kit.said("PLAN.1"))
    before = kit.run
    (kit.home / ALIAS).rename(kit.home / "new-name")
    kit.answer("PREPARE.1", '{"checks": []}')
    ran = kit.reflex("stop")
    assert ran.code == 0, ran.both
    run = json.loads(kit.path("run.json", "new-name").read_text())
    assert (run["task_alias"], run["run_id"], run["status"]) == ("new-name", before["run_id"], "stopped")
    assert kit.files() == ["new-name/history.jsonl", "new-name/run.json"]


def test_R_202_R_204_R_207_no_power_over_the_terminal(kit: Kit) -> None:
    """What an agent wrote is shown, not obeyed."""
    kit.answer("PLAN.1", json.dumps({"plan": ["red \x1b[31m", "two\x07", "three"]}))
    kit.answer("PRODUCE.1", "# Head\x1b[2J\n\nENDPOINTS NAMING AUTH DESCR\n")
    out = kit.new().out
    assert "Plan: red \\x1b[31m · two\\x07 · three" in out
    assert "\x1b" not in out.replace("# Head\x1b[2J", "")


def test_R_122_R_130_half_a_character(kit: Kit) -> None:
    """JSON can say what no file can keep: a breach, not a crash."""
    good = kit.said("PLAN.1")
    kit.answer("PLAN.1", '{"plan": ["a \\ud800", "b", "c"]}')
    kit.answer("PLAN.2", good)
    ran = kit.new()
    assert (ran.code, kit.ev.count("phase_error")) == (0, 1), ran.both


def test_the_reasons_of_a_loop(kit: Kit) -> None:
    """Each evaluation with its score and rules, and the rule behind the end."""
    script(kit, "T3")
    assert kit.new(2).code == 4
    rows = json.loads(kit.ws.rooda("why", "--json").out)
    found = [(row["iteration"], row["decision"], row["rule"]) for row in rows]
    left = "score 0.33; not met: a.correctness.endpoints"
    judged = [row for row in found if row[1] == "failed"]
    assert judged == [(1, "failed", f"phase A: {left}"), (2, "failed", f"phase A: {left}")]
    facts = "score 0.33, threshold 0.8 of phase A; not met: a.correctness.endpoints"
    end = f"stopped, iteration_limit: {facts}; the last iteration did not pass (exit 4)"
    assert found[-1] == (0, "ended", end)


def test_status_shows_what_a_running_loop_does(kit: Kit) -> None:
    """`rooda status` finds the events of a reflex loop by its alias: an agent works, one call so far."""
    kit.answer("PLAN.1", "{}", "sleep 30")
    running = kit.ws.start(*kit.arguments(), stdin=b"y\ny\n")
    until(lambda: kit.started("PLAN"))
    (row,) = json.loads(kit.ws.rooda("status", "--json").out)
    assert (row["loop"], row["phase"], row["calls"]) == ("reflex", "agent", 1)
    running.process.send_signal(signal.SIGTERM)
    assert running.finish() == 143
