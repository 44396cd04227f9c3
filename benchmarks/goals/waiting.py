"""Goal 8: what rooda takes from the machine while an agent works."""

import os
import signal
import time
from collections.abc import Mapping

from benchmarks import processes
from benchmarks.bench import Bench, Workspace
from benchmarks.measure import finish, round_robin, start, until
from benchmarks.verdict import Measured, Row

WAITING = "rooda, waiting"


def waiting(bench: Bench) -> Measured:
    if not processes.readable():
        return Measured([], {})
    place = bench.workspace("waiting", AGENT_DOES="wait")
    seconds = 0.5 if bench.quick else 5.0
    series = round_robin({WAITING: lambda: idle(bench.loop(1), place, seconds)}, 2 if bench.quick else 5)
    found = series[WAITING]
    rows = [
        Row(8, "private memory while an agent works, all processes", found["private"].median / 1e6, 18, "MB"),
        Row(8, "wake-ups while an agent works", found["wakeups"].high, 0, "/s"),
        Row(8, "CPU while an agent works", found["idle cpu"].high * 1000, 0, "ms/min"),
    ]
    return Measured(rows, series)


def idle(argv: list[str], place: Workspace, seconds: float) -> Mapping[str, float]:
    """What a loop takes while its agent does nothing. It is killed then."""
    if os.path.exists(place.stamps):
        os.unlink(place.stamps)
    began = time.monotonic()
    pid = start(argv, place.env, place.path)
    try:
        until(lambda: os.path.exists(place.stamps) and os.path.getsize(place.stamps) > 0, 20, "an agent call")
        time.sleep(0.3)  # what it does after the start of a call shall be over
        pids = processes.whole(pid, without={place.calls()[0][2]})
        before = processes.use(pids)
        time.sleep(seconds)
        after = processes.use(pids)
    finally:
        for left in processes.marked(f"STAMPS={place.stamps}"):
            os.kill(left, signal.SIGKILL)
        finish(pid, began)
    wakeups, cpu = (after.wakeups - before.wakeups) / seconds, (after.cpu - before.cpu) / seconds
    return {"private": after.private, "wakeups": wakeups, "idle cpu": cpu * 60, "processes": len(pids)}
