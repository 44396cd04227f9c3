"""Goals 1 and 2: what a command costs before it does anything, over a venv's python that does nothing at all."""

import os
import shutil
from collections.abc import Callable, Mapping

from benchmarks.bench import Bench, Workspace
from benchmarks.measure import once, round_robin
from benchmarks.verdict import Measured, Row, ratio

BARE = "python -c pass"


def words(bench: Bench) -> Measured:
    place = bench.workspace("words")
    tab = {"_ROODA_COMPLETE": "bash_complete", "COMP_WORDS": "rooda bu", "COMP_CWORD": "1"}
    series = round_robin(
        {
            BARE: _cost([bench.python, "-c", "pass"], place),
            "rooda --help": _cost([bench.rooda, "--help"], place),
            "rooda --version": _cost([bench.rooda, "--version"], place),
            "rooda bu<TAB>": _cost([bench.rooda], place._replace(env=place.env | tab)),
        },
        5 if bench.quick else 41,
    )
    rows = [
        Row(1, "`rooda --help`: CPU over a bare Python", ratio(series, "cpu", "rooda --help", BARE), 4),
        Row(1, "`rooda --version`: CPU over a bare Python", ratio(series, "cpu", "rooda --version", BARE), 2),
        Row(1, "TAB completion: CPU over a bare Python", ratio(series, "cpu", "rooda bu<TAB>", BARE), 8),
    ]
    return Measured(rows, series)


def dry_run(bench: Bench) -> Measured:
    place = bench.workspace("dry")
    dry = [bench.rooda, "build", "--dry-run", "--ai-cmd", "cat"]
    measure = _cost(dry, place)

    def cold() -> Mapping[str, float]:
        shutil.rmtree(os.path.join(place.path, "cache"), ignore_errors=True)
        return measure()

    contenders = {BARE: _cost([bench.python, "-c", "pass"], place), "dry-run, cold": cold, "dry-run, warm": measure}
    series = round_robin(contenders, 3 if bench.quick else 21)
    rows = [
        Row(2, "dry-run, tokens known: CPU over a bare Python", ratio(series, "cpu", "dry-run, warm", BARE), 6),
        Row(2, "dry-run, tokens counted: CPU over a bare Python", ratio(series, "cpu", "dry-run, cold", BARE), 30),
    ]
    return Measured(rows, series)


def _cost(argv: list[str], place: Workspace) -> Callable[[], Mapping[str, float]]:
    def measure() -> Mapping[str, float]:
        cost = once(argv, place.env, place.path)
        return {"cpu": cost.cpu, "wall": cost.wall}

    return measure
