"""Sums up tokens, times and costs of calls for OpenTelemetry's metrics."""

from bisect import bisect_left
from typing import Any, NamedTuple

from rooda.otel import names
from rooda.otel.spans import error_of, of_model, tokens

TOKEN_BOUNDS = tuple(float(4**power) for power in range(14))
SECOND_BOUNDS = tuple(0.01 * 2**power for power in range(20))  # the largest bound is an hour and a half
Key = tuple[tuple[str, str], ...]  # attributes, sorted
BOUNDS = {names.TOKEN_USAGE: TOKEN_BOUNDS, names.DURATION: SECOND_BOUNDS}
UNITS = {names.TOKEN_USAGE: "{token}", names.DURATION: "s", names.COST_TOTAL: "{USD}"}


class Spread(NamedTuple):
    """The distribution of values in a histogram."""

    number: int
    sum: float
    buckets: list[int]


class Measures:
    """The metrics of one session since its start."""

    def __init__(self) -> None:
        self.spreads: dict[tuple[str, Key], Spread] = {}
        self.costs: dict[Key, float] = {}

    def add(self, record: dict[str, Any]) -> None:
        """Add a call that has ended; `record` has the fields of both its start and its end."""
        common = {key: str(value) for key, value in of_model(record).items()}
        error = {names.ERROR: error} if (error := error_of(record)) else {}
        self._spread(names.DURATION, {**common, **error}, float(record.get("seconds") or 0.0))
        used = tokens(record)
        for word, name in (("input", names.INPUT), ("output", names.OUTPUT)):
            if name in used:
                self._spread(names.TOKEN_USAGE, {**common, names.TOKEN_TYPE: word}, used[name])
        if isinstance(cost := record.get("cost"), int | float):
            key = tuple(sorted(common.items()))
            self.costs[key] = self.costs.get(key, 0.0) + cost

    def _spread(self, name: str, attributes: dict[str, str], value: float) -> None:
        key, bounds = (name, tuple(sorted(attributes.items()))), BOUNDS[name]
        before = self.spreads.get(key) or Spread(0, 0.0, [0] * (len(bounds) + 1))
        before.buckets[bisect_left(bounds, value)] += 1
        self.spreads[key] = before._replace(number=before.number + 1, sum=before.sum + value)
