"""Goals 7 and 8 with all of it on: gates, snapshots, hooks, signals, limits, usage, and a status asked now and then."""

import json
import os
import subprocess

from benchmarks.bench import Bench, Workspace, repository
from benchmarks.goals.steady import ends
from benchmarks.goals.waiting import idle
from benchmarks.measure import round_robin
from benchmarks.verdict import Measured, Row

SAYS = json.dumps(
    {"type": "result", "subtype": "success", "is_error": False, "result": "Done.", "num_turns": 1, "session_id": "s",
     "total_cost_usd": 0.00001, "usage": {"input_tokens": 1, "output_tokens": 1}}
)  # fmt: skip
ALL = "rooda, everything on"
LOOP = """\
safety = "snapshot"
quality_gates = [":"]
promise_signals = true
max_cost = 1000
max_duration = "100h"
agent = "a"
"""
REST = """
[hooks]
done = "cat >hook.told"
failed = "cat >hook.told"
[agents.a]
command = %s
output = "claude"
"""
FILES = 300


def everything(bench: Bench) -> Measured:
    """One long run; then a call that waits, in the same workspace."""
    count = 100 if bench.quick else 10_000
    place = _project(bench)
    argv = [bench.rooda, "bench", "--fresh", "-n", str(count), "--max-tokens", "1000000000000"]
    status = [bench.rooda, "status", "--json"]

    def ask() -> None:
        subprocess.run(status, cwd=place.path, env=place.env, check=True, stdout=subprocess.DEVNULL)

    series = round_robin({ALL: ends(argv, place, count, ask)}, 1, warm=0)
    waiting = place._replace(env=place.env | {"AGENT_DOES": "wait", "AGENT_SAYS": ""})
    seconds = 0.5 if bench.quick else 5.0
    series[ALL] |= round_robin({ALL: lambda: idle(argv, waiting, seconds)}, 1 if bench.quick else 3, warm=0)[ALL]
    found = series[ALL]
    rows = [
        Row(7, f"everything on: last tenth over first tenth of {count:,}", found["growth"].median, 1.15),
        Row(7, "everything on: private memory gained during the run", found["gained"].median / 1e6, 2, "MB"),
        Row(8, "everything on: private memory while an agent works", found["private"].median / 1e6, 18, "MB"),
        Row(8, "everything on: wake-ups while an agent works", found["wakeups"].high, 0, "/s"),
        Row(8, "everything on: CPU while an agent works", found["idle cpu"].high * 1000, 0, "ms/min"),
    ]
    return Measured(rows, series)


def _project(bench: Bench) -> Workspace:
    place = bench.workspace("everything", loop=LOOP, AGENT_DOES="change", AGENT_SAYS=SAYS)
    with open(os.path.join(place.path, "rooda.toml"), "a", encoding="utf-8") as file:
        file.write(REST % json.dumps(bench.agent))
    repository(place, FILES)
    return place
