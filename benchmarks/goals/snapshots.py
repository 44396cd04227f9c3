"""What a snapshot of the work tree costs, beside `git status`, which has to look at the same files."""

import os
import shutil
from collections.abc import Callable, Mapping
from itertools import pairwise

from benchmarks.bench import Bench, Workspace, events, repository, time_of
from benchmarks.measure import once, round_robin
from benchmarks.verdict import Measured, Row, ratio

FILES = 20_000
STATUS, FIRST, LATER = "git status", "the first snapshot", "a later one, one file changed"


def snapshot(bench: Bench) -> Measured:
    """Iterations of one agent call that changes one file; after each a snapshot is taken."""
    place = bench.workspace("snapshots")
    repository(place, 500 if bench.quick else FILES)
    series = round_robin(
        {STATUS: _status(place), FIRST: _taken(bench, place, fresh=True), LATER: _taken(bench, place, fresh=False)},
        2 if bench.quick else 9,
    )
    later, first = (ratio(series, "wall", each, STATUS) for each in (LATER, FIRST))
    rows = [
        Row(0, f"a later snapshot of {FILES:,} files, one changed, over `git status`", later, 2),
        Row(0, "the first one of a run over the same", first, None),
        Row(0, "a later snapshot", series[LATER]["wall"].median * 1000, None, "ms"),
    ]
    return Measured(rows, series)


def _status(place: Workspace) -> Callable[[], Mapping[str, float]]:
    return lambda: {"wall": once([shutil.which("git") or "git", "status", "--porcelain"], place.env, place.path).wall}


def _taken(bench: Bench, place: Workspace, fresh: bool) -> Callable[[], Mapping[str, float]]:
    """Seconds before the event that tells of a snapshot: since the event that called for it."""
    argv = bench.loop(2, "--safety", "snapshot")
    argv[argv.index("--ai-cmd") + 1] = "sh -c 'date +%N >d1/f1'"

    def measure() -> Mapping[str, float]:
        shutil.rmtree(os.path.join(place.path, ".rooda"), ignore_errors=True)
        once(argv, place.env, place.path)
        told = events(place)
        pairs = [pair for pair in pairwise(told) if pair[1]["event"] == "snapshot.taken"]
        costs = [time_of(after) - time_of(before) for before, after in pairs]
        return {"wall": costs[0] if fresh else costs[1]}

    return measure
