"""Estimates the cost and duration of further iterations from past ones. Pure."""

from collections.abc import Iterable, Sequence
from math import ceil, sqrt
from typing import NamedTuple

from rooda.run.spending import Used

DRAWS = 200_000  # past iterations drawn at random for one estimate, in all
LEAST = 200  # minimum number of random totals for percentiles
FEW = 10  # iterations; an estimate from fewer is marked as rough


class Estimate(NamedTuple):
    """The 50th and 90th percentiles of a total."""

    p50: float
    p90: float


class Iteration(NamedTuple):
    """Usage of one past iteration."""

    cost: float | None  # dollars; None: the cost of one of its calls is unknown
    seconds: float


def iterations(calls: Iterable[Used]) -> list[Iteration]:
    """Add up the calls of each iteration."""
    groups: dict[tuple[str, int], list[Used]] = {}
    for call in calls:
        groups.setdefault((call.run, call.number), []).append(call)
    return [_iteration(group) for group in groups.values()]


def _iteration(calls: Sequence[Used]) -> Iteration:
    costs = [call.cost for call in calls]
    known = [cost for cost in costs if cost is not None]
    return Iteration(sum(known) if len(known) == len(costs) else None, sum(call.seconds for call in calls))


def estimate(values: Sequence[float], count: int) -> Estimate | None:
    """Estimate the total of `count` iterations, each drawn at random from the past `values`; None without values.

    Deterministic: the same values give the same estimate.
    """
    if not values or count < 1:
        return None
    if count == 1:
        return _percentiles(values)
    rounds = DRAWS // count
    if rounds < LEAST:  # the total of so many iterations is close to normally distributed
        mean = sum(values) / len(values)
        spread = sqrt(sum((value - mean) ** 2 for value in values) / len(values) * count)
        return Estimate(mean * count, mean * count + 1.2816 * spread)
    from random import Random

    chance = Random(0)
    return _percentiles([sum(chance.choices(values, k=count)) for _ in range(rounds if rounds < 2000 else 2000)])


def _percentiles(values: Sequence[float]) -> Estimate:
    ordered = sorted(values)
    return Estimate(*(ordered[ceil(part * len(ordered)) - 1] for part in (0.5, 0.9)))
