"""How the cost of a turn grows with what there is: iterations, rules, checks, depth, files, output, runs."""

import os
import shutil
from collections.abc import Callable, Mapping
from statistics import median
from typing import NamedTuple

from benchmarks.bench import Bench, repository
from benchmarks.goals import flow, goal, reflex
from benchmarks.measure import Series, once, round_robin
from benchmarks.verdict import Measured

Maker = Callable[[Bench, int], Callable[[], Mapping[str, float]]]


class Dimension(NamedTuple):
    """One thing of which there can be more. `make` measures seconds a turn, or a command, at a size."""

    what: str
    sizes: tuple[int, int, int]
    make: Maker


def growth(bench: Bench) -> Measured:
    """For each dimension its three sizes take turns."""
    series: Series = {}
    for one in DIMENSIONS:
        sizes = one.sizes[:2] if bench.quick else one.sizes
        makers = {f"{size:,}": one.make(bench, size) for size in sizes}
        found = round_robin(makers, 1 if bench.quick else 3, warm=0 if bench.quick else 1)
        series[one.what] = {f"turn at {size}": next(iter(metrics.values())) for size, metrics in found.items()}
    return Measured([], series)


def _iterations(bench: Bench, count: int) -> Callable[[], Mapping[str, float]]:
    place = bench.workspace("iterations")
    return lambda: {"turn": median(bench.gaps(bench.loop(count), place)[-max(10, count // 10) :])}


def _gates(bench: Bench, count: int) -> Callable[[], Mapping[str, float]]:
    place = bench.workspace("gates", loop=f"quality_gates = {[':'] * count}\n")
    return lambda: {"turn": median(bench.gaps(bench.loop(6), place))}


def _output(bench: Bench, size: int) -> Callable[[], Mapping[str, float]]:
    place = bench.workspace("output", loop="promise_signals = true\n", AGENT_DOES=f"write:{size}")
    return lambda: {"turn": median(bench.gaps(bench.loop(6), place))}


def _snapshots(bench: Bench, files: int) -> Callable[[], Mapping[str, float]]:
    place = bench.workspace("snapshots", loop='safety = "snapshot"\n', AGENT_DOES="change")
    repository(place, files)
    return lambda: {"turn": median(bench.gaps(bench.loop(5), place))}


def _runs(command: str) -> Maker:
    """What a command takes in a workspace in which there were so many runs."""

    def make(bench: Bench, count: int) -> Callable[[], Mapping[str, float]]:
        place = bench.workspace("runs")
        once(bench.loop(1), place.env, place.path)
        runs = os.path.join(place.path, ".rooda", "runs")
        (first,) = os.listdir(runs)
        for number in range(1, count):
            shutil.copytree(os.path.join(runs, first), os.path.join(runs, f"{first}{number}"))
        argv = bench.loop(1) if command == "run" else [bench.rooda, command]
        return lambda: {"turn": once(argv, place.env, place.path).wall}

    return make


DIMENSIONS = (
    Dimension("ooda: iterations", (20, 200, 2000), _iterations),
    Dimension("ooda: gates", (1, 10, 100), _gates),
    Dimension("ooda: bytes of output", (100_000, 1_000_000, 10_000_000), _output),
    Dimension("ooda: files, with snapshots", (100, 1_000, 10_000), _snapshots),
    Dimension("a start: runs before it", (1, 10, 100), _runs("run")),
    Dimension("`rooda status`: runs", (1, 10, 100), _runs("status")),
    Dimension("`rooda usage`: runs", (1, 10, 100), _runs("usage")),
    Dimension("reflex: iterations", (10, 100, 1_000), reflex.added),
    Dimension("reflex: rules", (1, 10, 100), lambda bench, size: reflex.added(bench, 10, size)),
    Dimension("flow: iterations", (4, 40, 400), flow.added),
    Dimension("flow: nodes, one in the other", (1, 3, 9), lambda bench, size: flow.added(bench, 4, depth=size)),
    Dimension("flow: files", (50, 500, 5_000), lambda bench, size: flow.added(bench, 6, size)),
    Dimension("goal: iterations and steps", (10, 100, 1_000), goal.added),
    Dimension("goal: criteria", (1, 10, 100), lambda bench, size: goal.added(bench, 6, size)),
    Dimension("goal: files", (100, 1_000, 10_000), lambda bench, size: goal.added(bench, 6, files=size)),
)
