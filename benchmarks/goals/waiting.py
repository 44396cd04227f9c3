"""Goal 8: what rooda takes from the machine while an agent works."""

import os
import signal
import time
from collections.abc import Mapping

from benchmarks import processes
from benchmarks.bench import Bench
from benchmarks.measure import finish, round_robin, start, until
from benchmarks.verdict import Measured, Row


def waiting(bench: Bench) -> Measured:
    if not processes.readable():
        return Measured([], {})
    place = bench.workspace("waiting", AGENT_DOES="wait")
    seconds = 0.5 if bench.quick else 5.0

    def measure() -> Mapping[str, float]:
        if os.path.exists(place.stamps):
            os.unlink(place.stamps)
        began = time.monotonic()
        pid = start(bench.loop(1), place.env, place.path)
        until(lambda: os.path.exists(place.stamps) and os.path.getsize(place.stamps) > 0, 10, "an agent call")
        time.sleep(0.2)  # what it does after the start of a call shall be over
        pids = processes.family(pid)
        before = processes.use(pids)
        time.sleep(seconds)
        after = processes.use(pids)
        os.kill(pid, signal.SIGTERM)
        finish(pid, began)
        wakeups, cpu = (after.wakeups - before.wakeups) / seconds, (after.cpu - before.cpu) / seconds
        return {"private": after.private, "wakeups": wakeups, "cpu": cpu * 60, "processes": len(pids)}

    series = round_robin({"rooda, waiting": measure}, 2 if bench.quick else 5)
    found = series["rooda, waiting"]
    rows = [
        Row(8, "private memory while an agent works, all processes", found["private"].median / 1e6, 16, "MB"),
        Row(8, "wake-ups while an agent works", found["wakeups"].high, 0, "/s"),
        Row(8, "CPU while an agent works", found["cpu"].high * 1000, 0, "ms/min"),
    ]
    return Measured(rows, series)
