"""How long iterations took, in constant memory (Welford)."""

from collections.abc import Iterable
from math import sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rooda.loops.procedure.events import Timing


def timing(durations: Iterable[float]) -> "Timing":
    """count, min, max, mean, and from two on the population's stddev; {} for none."""
    count, mean, spread, low, high = 0, 0.0, 0.0, 0.0, 0.0
    for value in durations:
        count += 1
        step = value - mean
        mean += step / count
        spread += step * (value - mean)
        low, high = (value, value) if count == 1 else (min(low, value), max(high, value))
    if not count:
        return {}
    facts: Timing = {"count": count, "min": round(low, 3), "max": round(high, 3), "mean": round(mean, 3)}
    if count > 1:
        facts["stddev"] = round(sqrt(spread / count), 3)
    return facts
