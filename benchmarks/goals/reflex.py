"""What the reflex loop adds to an iteration whose agents do nothing: the time beyond the agents' own."""

import json
import os
import shutil
from collections.abc import Callable, Mapping

from benchmarks.bench import Bench, Workspace, events, time_of, write
from benchmarks.measure import once, round_robin
from benchmarks.verdict import Measured, Row

AGENT = """\
#!/bin/sh
case $ROODA_CALL in
plan) echo '{"plan":["a","b","c"]}' ;;
produce | refine) echo '# Nothing' ;;
prepare) cat checks.json ;;
critique)
  echo '{"issues":[{"rule_id":"a.correctness.word0","problem":"p",'
  echo '"fix_instruction":"f","expected_effect":"e"}]}' ;;
esac
"""
REFLEX = "rooda reflex"


def rules(count: int) -> list[dict[str, str]]:
    """So many rules, of which none will ever hold."""
    return [
        {"id": f"a.correctness.word{number}", "severity": "fail", "description": f"The word {number} is there"}
        for number in range(count)
    ]


def iteration(bench: Bench) -> Measured:
    """Every iteration fails: PLAN, PRODUCE beside PREPARE, EVALUATE, CRITIQUE, REFINE; five calls."""
    count, rounds = (4, 2) if bench.quick else (30, 9)
    series = round_robin({REFLEX: added(bench, count)}, rounds)
    more = series[REFLEX]["added"].median * 1000
    return Measured([Row(0, "an iteration of the reflex loop beyond its agents' own time", more, 40, "ms")], series)


def added(bench: Bench, count: int, judged: int = 1) -> Callable[[], Mapping[str, float]]:
    """What an iteration of so many costs beyond its agents, with so many rules."""
    place = bench.workspace("reflex")
    agent = os.path.join(place.path, "agent")
    write(agent, AGENT)
    os.chmod(agent, 0o755)
    chosen = rules(judged)
    checks = [{"rule_id": rule["id"], "type": "content", "search": "WORD", "expected": "it"} for rule in chosen]
    write(os.path.join(place.path, "checks.json"), json.dumps({"checks": checks}))
    write(os.path.join(place.path, "rules.json"), json.dumps(chosen))
    limit = ("--max-iterations", str(count), "--confirm-criteria", "--confirm-max-iterations", str(count))
    argv = [bench.rooda, "reflex", "new", "a task", "--rules", "rules.json", *limit, "--ai-cmd", agent]
    return lambda: {"added": _added(argv, place, count)}


def _added(argv: list[str], place: Workspace, count: int) -> float:
    """Seconds an iteration, from the first call to the end of the loop, without the time in which agents worked."""
    for folder in (".rooda", ".ai-factory"):
        shutil.rmtree(os.path.join(place.path, folder), ignore_errors=True)
    once(argv, place.env, place.path, expected=4)
    told = events(place)
    calls = [event for event in told if event["event"] == "agent.started"]
    waves: list[list[float]] = []
    for event in told:
        if event["event"] == "reflex.phase":
            waves.append([])
        elif event["event"] == "agent.ended":
            waves[-1].append(event["seconds"])
    return (time_of(told[-1]) - time_of(calls[0]) - sum(map(max, waves))) / count
