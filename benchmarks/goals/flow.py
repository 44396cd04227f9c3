"""What a flow adds to its agents' own time: per boundary, with the repository's size and age, and with depth."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.bench import Bench, Workspace, events, repository, run, time_of, write
from benchmarks.measure import once, round_robin
from benchmarks.verdict import Measured, Row, ratio

AGENT = """\
#!/bin/sh
folder=$(echo .ai-loop/runs/*/nodes/"$ROODA_NODE")
case $ROODA_CALL in
sensor) printf -- '---\\nstatus: fail\\n---\\n' >"$folder/sensor-one-output.md" ;;
controller) printf -- '---\\ntarget-met: false\\n---\\n## Action Plan\\n\\nGo on.\\n' >"$folder/controller-output.md" ;;
actuator) date +%N >changed.txt; echo 'Done.' >"$folder/actuator-output.md" ;;
esac
"""
SMALL, LARGE, OLD, DEEP = "50 files", "5,000 files", "5,000 files, 2,000 commits", "5,000 files, 5 nodes deep"
GOAL = 120  # ms


def boundary(bench: Bench) -> Measured:
    """A flow whose target is never met: every boundary but the entries is a full iteration, with three calls."""
    rounds = 1 if bench.quick else 7
    count = 4 if bench.quick else 12
    contenders: dict[str, Callable[[], Mapping[str, float]]] = {}
    for name, size, age, depth in (
        (SMALL, 50, 1, 1),
        (LARGE, 5_000, 1, 1),
        (OLD, 5_000, 2_000, 1),
        (DEEP, 5_000, 1, 5),
    ):
        contenders[name] = added(bench, count, size, 20 if bench.quick and age > 1 else age, depth)
    series = round_robin(contenders, rounds)
    more = series[LARGE]["added"].median * 1000
    rows = [
        Row(0, "a flow's boundary beyond its agents' own time, 5,000 files", more, GOAL, "ms"),
        Row(0, "a flow: the same with 2,000 commits before it over one", ratio(series, "added", OLD, LARGE), 1.2),
        Row(0, "a flow: the same in a chain of five nodes over one node", ratio(series, "added", DEEP, LARGE), 1.2),
        Row(0, "a flow: the same with 5,000 files over 50", ratio(series, "added", LARGE, SMALL), None),
    ]
    return Measured(rows, series)


def added(bench: Bench, count: int, size: int = 50, age: int = 1, depth: int = 1) -> Callable[[], Mapping[str, float]]:
    """What a boundary costs beyond its agents, in a repository of so many files and commits, so many nodes deep."""
    return _added(bench, _project(bench, size, age, depth, count))


def _project(bench: Bench, size: int, age: int, depth: int, count: int) -> Workspace:
    place = bench.workspace("flow")
    agent = os.path.join(place.path, "agent")
    write(agent, AGENT)
    os.chmod(agent, 0o755)
    for name in ("controller", "sensor", "actuator"):
        write(os.path.join(place.path, f"loop-{name}-one.md"), f"You are the {name}. Write {{output-path}}.\n")
    os.makedirs(os.path.join(place.path, ".ai-loop"))
    node = topology(depth, count if depth == 1 else 2)
    write(os.path.join(place.path, ".ai-loop", "flow.yaml"), json.dumps({"version": 1, "flow": node}))
    repository(place, size)
    _history(place, age)
    return place


def topology(deepest: int, most: int, depth: int = 0) -> dict[str, Any]:
    """A chain of nodes, each of which may make `most` iterations."""
    inner = depth + 1 < deepest
    child = {"strategy": "composite", "child": topology(deepest, most, depth + 1)} if inner else {}
    return {
        "id": f"n{depth}",
        "type": "loop",
        "controller": "loop-controller-one.md",
        "actuator": child or {"strategy": "direct", "agent": "loop-actuator-one.md"},
        "sensors": ["loop-sensor-one.md"],
        "termination": {"max_iterations": most},
    }


def _history(place: Workspace, age: int) -> None:
    git = ["git", "-C", place.path, "-c", "gc.auto=0"]
    stream = "".join(
        f"commit refs/heads/main\ncommitter b <b@c.invalid> {number} +0000\ndata 1\nx\n"
        + ("from refs/heads/main^0\n" if number == 1 else "")
        for number in range(1, age)
    )
    if stream:
        subprocess.run([*git, "fast-import", "--quiet"], input=stream.encode(), check=True)


def _added(bench: Bench, place: Workspace) -> Callable[[], Mapping[str, float]]:
    """Seconds per boundary from the first call to the end of the loop, without the time in which agents worked."""
    argv = [bench.rooda, "flow", "run", "go on", "--ai-cmd", os.path.join(place.path, "agent")]

    def measure() -> Mapping[str, float]:
        run(["git", "-C", place.path, "checkout", "-q", "-f", "main"])
        shutil.rmtree(os.path.join(place.path, ".rooda"), ignore_errors=True)
        for branch in subprocess.run(
            ["git", "-C", place.path, "branch", "--list", "--format=%(refname:short)", "ai-loop/*"],
            capture_output=True, text=True, check=True,
        ).stdout.split():  # fmt: skip
            run(["git", "-C", place.path, "branch", "-q", "-D", branch])
        once(argv, place.env, place.path, expected=4)
        told = events(place)
        boundaries = sum(event["event"] == "node.boundary" for event in told)
        worked = sum(event["seconds"] for event in told if event["event"] == "agent.ended")
        return {"added": (time_of(told[-1]) - time_of(told[0]) - worked) / boundaries}

    return measure
