"""Goal 10: from SIGTERM to the end of the program, agent ended and state saved."""

import os
import signal
import time
from collections.abc import Callable, Mapping

from benchmarks.bench import PROGRAMS, Bench, Workspace
from benchmarks.measure import Failed, finish, round_robin, start, until
from benchmarks.verdict import Measured, Row, ratio

GRACE = 0.1
GUARD, ROODA, STUBBORN = "least loop that leaves nothing behind", "rooda", "rooda, agent ignores TERM"


def stopping(bench: Bench) -> Measured:
    loop = f"kill_grace = {GRACE}\n"
    good, least = (bench.workspace(name, loop=loop, AGENT_DOES="wait") for name in ("good", "least"))
    deaf = bench.workspace("deaf", loop=loop, AGENT_DOES="ignore")
    guard = [bench.python, os.path.join(PROGRAMS, "guard.py"), bench.agent, least.prompt, str(GRACE)]
    contenders = {
        GUARD: _until_exit(guard, least, "state.json"),
        ROODA: _until_exit(bench.loop(1), good, ".rooda/state/bench.json"),
        STUBBORN: _until_exit(bench.loop(1), deaf, ".rooda/state/bench.json"),
    }
    series = round_robin(contenders, 2 if bench.quick else 15)
    over = (series[STUBBORN]["wall"].median - GRACE) * 1000
    more = ratio(series, "wall", ROODA, GUARD)
    rows = [
        Row(10, "SIGTERM to exit over the least loop that leaves nothing behind", more, 3),
        Row(10, "an agent that ignores SIGTERM: time beyond the grace", over, 50, "ms"),
    ]
    return Measured(rows, series)


def _until_exit(argv: list[str], place: Workspace, state: str) -> Callable[[], Mapping[str, float]]:
    def measure() -> Mapping[str, float]:
        if os.path.exists(place.stamps):
            os.unlink(place.stamps)
        pid = start(argv, place.env, place.path)
        until(lambda: os.path.exists(place.stamps) and os.path.getsize(place.stamps) > 0, 10, "an agent call")
        time.sleep(0.05)
        began = time.monotonic()
        os.kill(pid, signal.SIGTERM)
        cost = finish(pid, began)
        with open(os.path.join(place.path, state), encoding="utf-8") as file:
            if cost.code != 143 or "interrupted" not in file.read():
                raise Failed(f"{' '.join(argv)}: exit {cost.code}, or its state was not saved")
        return {"wall": cost.wall}

    return measure
