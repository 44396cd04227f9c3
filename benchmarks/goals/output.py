"""Goal 9: an agent that prints 100 MB, its promise looked for at the end."""

import os
from collections.abc import Callable, Mapping

from benchmarks.bench import PROGRAMS, Bench, Workspace
from benchmarks.measure import round_robin, weighed
from benchmarks.verdict import Measured, Row

TEE, ROODA = "a loop that reads the output", "rooda"


def output(bench: Bench) -> Measured:
    """Silent and talkative calls of each; what the output adds is the difference."""
    size = 1_000_000 if bench.quick else 100_000_000
    contenders: dict[str, Callable[[], Mapping[str, float]]] = {}
    for name in (TEE, ROODA):
        for printed in (0, size):
            place = bench.workspace("output", loop="promise_signals = true\n", AGENT_DOES=f"write:{printed}")
            tee = [bench.python, os.path.join(PROGRAMS, "tee.py"), bench.agent, place.prompt]
            contenders[_named(name, printed)] = _cost(tee if name == TEE else bench.loop(1), place)
    series = round_robin(contenders, 2 if bench.quick else 9)

    def added(name: str, metric: str) -> float:
        return max(1e-4, series[_named(name, size)][metric].median - series[_named(name, 0)][metric].median)

    time, cpu = (added(ROODA, metric) / added(TEE, metric) for metric in ("wall", "cpu"))
    rows = [
        Row(9, f"time that {size // 1_000_000} MB of output add, over a loop that reads it", time, 2),
        Row(9, "CPU that they add, over the same", cpu, 2),
        Row(9, "memory that they add", added(ROODA, "rss") / 1e6, 5, "MB"),
    ]
    return Measured(rows, series)


def _named(name: str, printed: int) -> str:
    return f"{name}, {printed // 1_000_000} MB"


def _cost(argv: list[str], place: Workspace) -> Callable[[], Mapping[str, float]]:
    def measure() -> Mapping[str, float]:
        cost = weighed(argv, place.env, place.path)
        return {"wall": cost.wall, "cpu": cost.cpu, "rss": cost.rss}

    return measure
