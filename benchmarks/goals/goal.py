"""What the goal loop adds to a turn whose agent does nothing: the time beyond the agent's and the checks' own."""

import json
import os
import shutil
from typing import Any

from benchmarks.bench import Bench, Workspace, events, time_of, write
from benchmarks.measure import once, round_robin
from benchmarks.verdict import Measured, Row

GOAL = "rooda goal"
AGENT = "#!/bin/sh\necho\necho ---LOOP_STATUS---\necho EXIT_SIGNAL: false\necho 'CRITERIA: {}'\necho ---END_STATUS---\n"


def turn(bench: Bench) -> Measured:
    """Each turn: prompt, one call, one verification of a criterion that holds, three files written."""
    count, rounds = (4, 2) if bench.quick else (40, 9)
    place = bench.workspace("goal")
    agent = os.path.join(place.path, "agent")
    write(agent, AGENT)
    os.chmod(agent, 0o755)
    write(os.path.join(place.path, "plan.json"), json.dumps(_plan(count)))
    limit = ("--iterations", str(count), "--score", "2,2,2,2,2")
    argv = [bench.rooda, "goal", "run", "a task", "--plan", "plan.json", *limit, "--ai-cmd", agent]
    series = round_robin({GOAL: lambda: {"added": _added(argv, place, count)}}, rounds)
    added = series[GOAL]["added"].median * 1000
    return Measured(
        [Row(15, "a turn of the goal loop beyond its agent's and checks' own time", added, 20, "ms")], series
    )


def _plan(count: int) -> dict[str, Any]:
    return {
        "reversibility": "2A",
        "workflow_gate": {"kind": "library_search", "evidence": "No library exists because nothing is made."},
        "criteria": [{"name": "holds", "command": "true"}],
        "steps": [{"name": f"step {number}", "criteria": []} for number in range(count + 1)],
    }


def _added(argv: list[str], place: Workspace, count: int) -> float:
    """Seconds a turn, from the first call to the end of the loop, without the time in which others worked."""
    for folder in (".rooda", ".loop"):
        shutil.rmtree(os.path.join(place.path, folder), ignore_errors=True)
    once(argv, place.env, place.path, expected=4)
    told = events(place)
    calls = [event for event in told if event["event"] == "iteration.started"]
    others = sum(event["seconds"] for event in told if event["event"] == "agent.ended")
    others += sum(
        event["elapsed"] for event in told if event["event"] == "criterion.verified" and event["display"] > 0
    )
    return float(time_of(told[-1]) - time_of(calls[0]) - others) / count
