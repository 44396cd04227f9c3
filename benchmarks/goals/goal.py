"""What the goal loop adds to a turn whose agent does nothing: the time beyond the agent's and the checks' own."""

import json
import os
import shutil
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.bench import Bench, Workspace, events, repository, time_of, write
from benchmarks.measure import once, round_robin
from benchmarks.verdict import Measured, Row

GOAL = "rooda goal"
AGENT = "#!/bin/sh\necho\necho ---LOOP_STATUS---\necho EXIT_SIGNAL: false\necho 'CRITERIA: {}'\necho ---END_STATUS---\n"


def turn(bench: Bench) -> Measured:
    count, rounds = (4, 2) if bench.quick else (40, 9)
    series = round_robin({GOAL: added(bench, count)}, rounds)
    more = series[GOAL]["added"].median * 1000
    return Measured([Row(0, "a turn of the goal loop beyond its agent's and checks' own time", more, 20, "ms")], series)


def added(bench: Bench, count: int, criteria: int = 1, files: int = 0) -> Callable[[], Mapping[str, float]]:
    """Each turn: prompt, one call, one verification of each criterion, which holds, three files written."""
    place = bench.workspace("goal")
    agent = os.path.join(place.path, "agent")
    write(agent, AGENT)
    os.chmod(agent, 0o755)
    write(os.path.join(place.path, "plan.json"), json.dumps(plan(count, criteria)))
    if files:
        repository(place, files, ".loop/\n")
    limit = ("--iterations", str(count), "--force-limits", "--score", "2,2,2,2,2")
    argv = [bench.rooda, "goal", "run", "a task", "--plan", "plan.json", *limit, "--ai-cmd", agent]
    return lambda: {"added": _added(argv, place, count)}


def plan(count: int, criteria: int = 1) -> dict[str, Any]:
    """Steps without criteria of their own, and criteria that hold."""
    return {
        "reversibility": "2A",
        "workflow_gate": {"kind": "library_search", "evidence": "No library exists because nothing is made."},
        "criteria": [{"name": f"holds {number}", "command": "true"} for number in range(criteria)],
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
    others += sum(event["elapsed"] for event in told if event["event"] == "criterion.verified" and event["display"] > 0)
    return float(time_of(told[-1]) - time_of(calls[0]) - others) / count
