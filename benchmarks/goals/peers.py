"""What the peers cost: start-up, gap, CPU, growth, waiting, output, large prompts; rooda and the floors beside them."""

import os
from collections.abc import Callable, Mapping
from statistics import median

from benchmarks import contenders
from benchmarks.bench import Bench
from benchmarks.contenders import BASH, FLOOR, ROODA, UNSYNCED, Contender
from benchmarks.goals.waiting import idle
from benchmarks.measure import Failed, Series, once, round_robin, weighed
from benchmarks.verdict import Measured, Row

BARE = "python -c pass"
STATELESS = (FLOOR, ROODA, UNSYNCED, BASH, "ralphify")  # or not a peer
HUGE, LARGE = 100_000_000, 1_000_000
Metrics = Mapping[str, float]


def peers(bench: Bench) -> Measured:
    """Each measure in a round-robin of its own over all who can be measured so."""
    notes: dict[str, str] = {}
    others = contenders.peers(bench, notes)
    everybody = contenders.own(bench) + others
    series: Series = {}
    rounds = 1 if bench.quick else 5
    _merge(series, round_robin(_helps(bench, everybody), 2 if bench.quick else 15))
    few = min(rounds, 2)
    with_gaps = everybody + contenders.unsynced(bench)
    measures = ((_gaps, with_gaps, rounds), (_growth, everybody, 1), (_idle, everybody, few), (_output, everybody, few))
    for measure, who, times in measures:
        able = _able({one.name: measure(bench, one) for one in who}, notes)
        _merge(series, round_robin(able, times, warm=0))
    for one in others:
        _prompt(bench, one, series, notes)
    return Measured(_rows(series), series, {"peers": notes})


def _rows(series: Series) -> list[Row]:
    stateful = {name: found["gap"].median for name, found in series.items() if name not in STATELESS and "gap" in found}
    if not stateful:
        return []
    name = min(stateful, key=lambda each: stateful[each])
    gaps = {who: series[who]["gap"].median / stateful[name] for who in (ROODA, UNSYNCED) if who in series}
    what = f"time between two calls over the fastest peer that keeps state ({name})"
    rows = [Row(3, what, gaps[ROODA], 1)]
    if UNSYNCED in gaps:
        rows.append(Row(3, "the same without rooda's two syncs, of which that peer makes none", gaps[UNSYNCED], 1))
    return rows


def _helps(bench: Bench, everybody: list[Contender]) -> dict[str, Callable[[], Metrics]]:
    place = bench.workspace("help")

    def measured(argv: list[str]) -> Callable[[], Metrics]:
        def measure() -> Metrics:
            cost = once(argv, place.env, place.path)
            return {"help cpu": cost.cpu, "help wall": cost.wall}

        return measure

    found = {one.name: measured([*one.help]) for one in everybody if one.help}
    return {BARE: measured([bench.python, "-c", "pass"]), **found}


def _gaps(bench: Bench, one: Contender) -> Callable[[], Metrics]:
    """The gap, and the CPU of an iteration: many less one."""
    count = 4 if one.pause or bench.quick else 41
    place = one.workspace(bench)

    def measure() -> Metrics:
        single = one.cost(place, 1).cpu
        gaps, cost = one.gaps(place, count)
        return {"gap": median(gaps), "cpu": (cost.cpu - single) / (count - 1)}

    return measure


def _growth(bench: Bench, one: Contender) -> Callable[[], Metrics]:
    """The gap of the last tenth of many iterations over that of the first."""
    count = 20 if bench.quick else 1000
    place = one.workspace(bench)

    def measure() -> Metrics:
        if one.pause:
            raise Failed("its sleep between iterations would take too long")
        gaps, _ = one.gaps(place, count)
        tenth = count // 10
        return {"growth": median(gaps[-tenth:]) / median(gaps[:tenth])}

    return measure


def _idle(bench: Bench, one: Contender) -> Callable[[], Metrics]:
    place = one.workspace(bench, AGENT_DOES="wait", AGENT_SAYS="")
    return lambda: idle(one.ready(place, 1), place, 0.5 if bench.quick else 4.0)


def _output(bench: Bench, one: Contender) -> Callable[[], Metrics]:
    """What an agent that prints a lot takes more than one that prints nothing."""
    size = LARGE if bench.quick else HUGE
    quiet, loud = one.workspace(bench), one.workspace(bench, AGENT_DOES=f"write:{size}")

    def measure() -> Metrics:
        before, after = one.cost(quiet, 1, weighed), one.cost(loud, 1, weighed)
        return {"output wall": after.wall - before.wall, "output cpu": after.cpu - before.cpu, "output rss": after.rss}

    return measure


def _prompt(bench: Bench, one: Contender, series: Series, notes: dict[str, str]) -> None:
    """Does a prompt of 1 MB reach the agent?"""
    if one.peer is None or not one.peer.sized:
        return
    place = one.workspace(bench, LARGE)
    try:
        one.cost(place, 1)
        works = os.path.exists(place.stamps)
    except (Failed, OSError):
        works = False
    notes[one.name] += f"; a prompt of 1 MB {'works' if works else 'does not reach the agent'}"


def _able(all_of_them: dict[str, Callable[[], Metrics]], notes: dict[str, str]) -> dict[str, Callable[[], Metrics]]:
    """Those who come through a first round; it warms caches too."""
    able = {}
    for name, measure in all_of_them.items():
        try:
            measure()
            able[name] = measure
        except (Failed, OSError) as problem:
            if name in notes:
                notes[name] += f"; not measured: {str(problem).splitlines()[0][:200]}"
    return able


def _merge(into: Series, found: Series) -> None:
    for name, metrics in found.items():
        into.setdefault(name, {}).update(metrics)
