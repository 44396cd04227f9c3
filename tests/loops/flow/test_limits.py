"""Limits of cost and time end a flow so that it can be resumed; [hooks] run at the end of runs."""

import json
import os
from pathlib import Path

import pytest

from tests.kit.flow import Flow
from tests.kit.workspace import FAKE_AI

PAID = """#!/bin/sh
{fake} --model "$1" >/dev/null
echo '{{"type":"result","is_error":false,"result":"Done.","total_cost_usd":0.5,"usage":{{"output_tokens":10}}}}'
"""


BY_ITERATION = [("0", 1), ("1", 6), ("2", 1)]  # of the top node; 0 is its first measurement


def paid(flow: Flow) -> Flow:
    """S2 with an agent that reports a cost of half a dollar per call."""
    flow.scenario("S2")
    agent = Path(flow.ws.root, "paid")
    agent.write_text(PAID.format(fake=FAKE_AI))
    agent.chmod(0o755)
    command = json.dumps(f"{agent} {{model}}")
    flow.ws.config(f'[loop]\nagent = "paid"\n[agents.paid]\ncommand = {command}\noutput = "claude"\n')
    flow.commit("an agent that costs money")
    return flow


def test_a_limit_of_cost_leaves_the_run_open(flow: Flow) -> None:
    """The limit prevents the next call: exit 4, status running; a resume has the same limit or a higher one."""
    ran = paid(flow).run("do it", "--max-cost", "1.2")
    assert ran.code == 4, ran.both
    assert f"Cost limit reached: $1.50 of $1.20. State saved. Resume with: rooda flow resume {flow.run_id}" in ran.out
    assert "Resume with a higher limit." in ran.out
    assert (flow.labels(), flow.state["status"], len(flow.calls)) == (["0", "1.0"], "running", 3)
    assert (flow.resume().code, len(flow.calls)) == (4, 3)
    assert (flow.resume("--max-cost", "2.1").code, len(flow.calls)) == (4, 5)
    ran = flow.ws.rooda("resume", flow.run_id, "--max-cost", "4", timeout=60)
    assert ran.code == 0, ran.both
    assert (flow.labels(), len(flow.calls)) == (["0", "1.0", "1.1", "1.2", "1", "2"], 8)
    rows = json.loads(flow.ws.rooda("usage", "--by", "iteration", "--json").out)["rows"]
    assert [(row["name"].split()[1], row["calls"]) for row in rows] == BY_ITERATION


ENDS = {
    "done": ("S1", "", [], 0),
    "paused": ("S3", "", [], 4),
    "paused at a limit": ("S1", "", ["--max-tokens", "1"], 4),
    "failed": ("S1", "!nowrite\n", [], 1),
    "stopped": ("S1", "!sh kill -TERM $(ps -o ppid= -p $PPID); sleep 60\n", [], 143),
}


@pytest.mark.parametrize("name", ENDS)
def test_hooks_get_the_end_of_a_flow(flow: Flow, name: str) -> None:
    """The hook for this kind of end runs once, with the event on stdin."""
    scenario, controller, flags, code = ENDS[name]
    if flags:
        paid(flow)
    else:
        flow.scenario(scenario)
    if controller:
        flow.say("controller-main", controller, controller)
    moments = ("done", "failed", "paused", "stopped")
    rows = [f"{moment} = {json.dumps(f'cat >{flow.ws.root}/told-{moment}')}" for moment in moments]
    flow.ws.config("\n".join([flow.ws.read("rooda.toml"), "[hooks]", *rows, ""]))
    flow.commit("hooks")
    ran = flow.run("do it", *flags)
    assert ran.code == code, ran.both
    told = [moment for moment in moments if os.path.exists(f"{flow.ws.root}/told-{moment}")]
    assert told == [name.partition(" ")[0]]
    record = json.loads(Path(flow.ws.root, f"told-{told[0]}").read_text())
    assert (record["event"], record["loop"], record["name"]) == ("run.ended", "flow", flow.run_id)
    assert record["exit_code"] == code


def test_a_failing_git_leaves_the_run_resumable(flow: Flow) -> None:
    """If git refuses every commit: no traceback, exit 1, and the run can be resumed later."""
    flow.scenario("S1")
    objects = flow.ws.file(".git/objects")
    flow.say("actuator-main", f"!edit src.txt one\n!sh mv {objects} {objects}.away\n## What Was Done\n\none\n")
    ran = flow.run()
    assert ran.code == 1
    assert "Traceback" not in ran.both
    assert f"State saved. Resume with: rooda flow resume {flow.run_id}" in ran.out
    os.rename(f"{objects}.away", objects)
    flow.actuator("main", "one")
    ran = flow.resume()
    assert ran.code == 0, ran.both
    assert flow.labels() == ["0", "1", "2"]
