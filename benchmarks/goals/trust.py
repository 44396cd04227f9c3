"""What trust adds to a start in a workspace whose words are known: modules, reading, comparing, and the run's note."""

import os
from collections.abc import Callable, Mapping

from benchmarks.bench import Bench, Workspace, repository, write
from benchmarks.measure import once, round_robin
from benchmarks.verdict import Measured, Row

MOST = 1.0  # milliseconds
KNOWN = "a start whose facts are known"
PROGRAM = """\
import sys, time
from rooda.base import hashes  # every start loads these
from rooda.loops import configuration, launch, options
from rooda.run import gates_md, questions
found = configuration.load(sys.argv[1])
began = time.process_time()
from rooda.loops import trusting
made = trusting.checked(found, options.RunOptions({}), None)
elapsed = time.process_time() - began
began = time.process_time()
made.watch.begin("20260101T000000Z-build-1", sys.argv[1])
noted = time.process_time() - began
made.watch.end("20260101T000000Z-build-1", sys.argv[1])
open(sys.argv[2], "w").write(f"{elapsed} {noted}")
"""
SETTINGS = """\
[loop]
agent = "claude"
quality_gates = ["make test", "make lint"]
max_cost = 5

[hooks]
done = "notify-send done"
"""


def known(bench: Bench) -> Measured:
    place = bench.workspace("trust")
    repository(place, 20)
    place.env["ROODA_STATE_HOME"] = os.path.join(place.path, "cache", "state")
    write(os.path.join(place.path, "rooda.toml"), SETTINGS)
    write(os.path.join(place.path, "AGENTS.md"), "# Project\n\n## Quality Gates\n- types: `mypy`\n")
    write(os.path.join(place.path, ".mcp.json"), '{"mcpServers": {"x": {"command": "node", "args": ["mcp.js"]}}}')
    series = round_robin({KNOWN: _taken(bench, place)}, 5 if bench.quick else 41)
    check, note = (series[KNOWN][metric].median * 1000 for metric in ("check", "note"))
    rows = [
        Row(0, "trust at a start whose facts are known, its modules included", check, MOST, "ms"),
        Row(0, "the note of the facts at the beginning of the run", note, None, "ms"),
    ]
    return Measured(rows, series)


def _taken(bench: Bench, place: Workspace) -> Callable[[], Mapping[str, float]]:
    answer = os.path.join(place.path, "took")

    def measure() -> Mapping[str, float]:
        once([bench.python, "-c", PROGRAM, place.path, answer], place.env, place.path)
        with open(answer, encoding="utf-8") as file:
            check, note = map(float, file.read().split())
        return {"check": check, "note": note}

    return measure
