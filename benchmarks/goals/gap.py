"""Goals 3 to 6: what a loop adds between the end of one agent call and the start of the next."""

from collections.abc import Callable, Mapping
from statistics import median

from benchmarks.bench import Bench, Workspace
from benchmarks.measure import once, round_robin
from benchmarks.verdict import Measured, Row, ratio

FLOOR, ROODA, BASH = "least durable loop", "rooda", "rooda.sh (v1)"


def gap(bench: Bench) -> Measured:
    count, rounds = (8, 3) if bench.quick else (60, 15)
    ours, least, first = (bench.workspace(name) for name in ("rooda", "floor", "bash"))
    contenders = {
        FLOOR: _gap(bench, bench.floor(least, count), least),
        ROODA: _gap(bench, bench.loop(count), ours),
        BASH: _gap(bench, bench.first_loop(count), first),
    }
    series = round_robin(contenders, rounds)
    rows = [
        Row(3, "time between two agent calls over the least durable loop", ratio(series, "gap", ROODA, FLOOR), 1.5),
        Row(3, "the same over the shell loop of version 1", ratio(series, "gap", ROODA, BASH), None),
    ]
    return Measured(rows, series)


def cpu(bench: Bench) -> Measured:
    """CPU of an iteration, start-up taken out: many iterations less one."""
    count, rounds = (8, 3) if bench.quick else (101, 15)
    ours, least = bench.workspace("rooda"), bench.workspace("floor")
    contenders = {
        FLOOR: _cpu(bench.floor(least, count), bench.floor(least, 1), least, count - 1),
        ROODA: _cpu(bench.loop(count), bench.loop(1), ours, count - 1),
    }
    series = round_robin(contenders, rounds)
    return Measured([Row(4, "CPU per iteration over the same", ratio(series, "cpu", ROODA, FLOOR), 2)], series)


def gate(bench: Bench) -> Measured:
    count, rounds = (8, 3) if bench.quick else (60, 15)
    plain, gated = bench.workspace("plain"), bench.workspace("gated", loop='quality_gates = [":"]\n')
    least = bench.workspace("floor")
    contenders = {
        FLOOR: _gap(bench, bench.floor(least, count), least),
        f"{FLOOR}, gate": _gap(bench, bench.floor(least, count, ":"), least),
        ROODA: _gap(bench, bench.loop(count), plain),
        f"{ROODA}, gate": _gap(bench, bench.loop(count), gated),
    }
    series = round_robin(contenders, rounds)
    added = {name: series[f"{name}, gate"]["gap"].median - series[name]["gap"].median for name in (FLOOR, ROODA)}
    more = added[ROODA] / added[FLOOR]
    return Measured([Row(5, "what a gate adds, over what it adds to the same", more, 1.5)], series)


def size(bench: Bench) -> Measured:
    count, rounds = (8, 3) if bench.quick else (60, 11)
    small, large, huge = (bench.workspace(f"{size}", size) for size in (8_000, 1_000_000, 10_000_000))
    contenders = {
        "8 kB": _gap(bench, bench.loop(count), small),
        "1 MB": _gap(bench, bench.loop(count), large),
    }
    series = round_robin(contenders, rounds)
    once(bench.loop(2), huge.env, huge.path)
    return Measured([Row(6, "a prompt of 1 MB over one of 8 kB", ratio(series, "gap", "1 MB", "8 kB"), 1.2)], series)


def _gap(bench: Bench, argv: list[str], place: Workspace) -> Callable[[], Mapping[str, float]]:
    return lambda: {"gap": median(bench.gaps(argv, place))}


def _cpu(many: list[str], one: list[str], place: Workspace, extra: int) -> Callable[[], Mapping[str, float]]:
    def measure() -> Mapping[str, float]:
        start = once(one, place.env, place.path).cpu
        return {"cpu": (once(many, place.env, place.path).cpu - start) / extra}

    return measure
