"""Goal 7: the ten-thousandth iteration costs what the hundredth did."""

import os
import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from statistics import median

from benchmarks import processes
from benchmarks.bench import Bench, Workspace
from benchmarks.measure import Failed, finish, round_robin, start
from benchmarks.verdict import Measured, Row

LOOKS = 5
ASK = 2.0  # seconds between two questions by somebody else


def steady(bench: Bench) -> Measured:
    count, rounds = (200, 2) if bench.quick else (10_000, 3)
    ours, least = bench.workspace("rooda"), bench.workspace("floor")
    contenders = {
        "least durable loop": ends(bench.floor(least, count), least, count),
        "rooda": ends(bench.loop(count), ours, count),
    }
    series = round_robin(contenders, rounds, warm=0)
    rooda = series["rooda"]
    rows = [Row(7, f"time between calls, last tenth over first tenth of {count:,}", rooda["growth"].median, 1.15)]
    if processes.readable():
        rows.append(Row(7, "private memory gained during the run", rooda["gained"].median / 1e6, 2, "MB"))
    return Measured(rows, series)


def ends(
    argv: list[str], place: Workspace, count: int, meanwhile: Callable[[], None] | None = None
) -> Callable[[], Mapping[str, float]]:
    """The gaps of the first and of the last tenth, and what memory was gained between them."""

    def measure() -> Mapping[str, float]:
        if os.path.exists(place.stamps):
            os.unlink(place.stamps)
        began = time.monotonic()
        pid = start(argv, place.env, place.path)
        early, late = (_memory(pid, place, call, meanwhile) for call in (count // 10, count * 19 // 20))
        cost = finish(pid, began)
        if cost.code:
            raise Failed(f"{' '.join(argv)}: exit {cost.code}")
        calls, tenth = place.calls(), count // 10
        gaps = [after[0] - before[1] for before, after in pairwise(calls)]
        first, last = median(gaps[:tenth]) / 1e9, median(gaps[-tenth:]) / 1e9
        return {"first": first, "last": last, "growth": last / first, "gained": max(0, late - early)}

    return measure


def _memory(pid: int, place: Workspace, call: int, meanwhile: Callable[[], None] | None) -> int:
    """Private bytes of the loop while about the given call runs; the least of some looks, as helpers come and go."""
    record = 2 * len(str(time.monotonic_ns())) + 3
    looks: list[int] = []
    asked = time.monotonic()
    while len(looks) < LOOKS and os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        try:
            if processes.readable() and os.stat(place.stamps).st_size >= call * record:
                looks.append(sum(map(processes.private, processes.family(pid))))
        except OSError:
            pass
        if meanwhile and time.monotonic() > asked + ASK:
            meanwhile()
            asked = time.monotonic()
        time.sleep(0.02)
    return min(looks, default=0)
