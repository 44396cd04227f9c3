"""A goal, what was measured for it, and whether it is met."""

from typing import NamedTuple

from benchmarks.measure import Series


class Row(NamedTuple):
    """One line of the table. Met: measured ≤ limit."""

    goal: int
    what: str
    measured: float
    limit: float
    unit: str = "×"  # ×: a ratio; else MB, ms, /s …

    @property
    def met(self) -> bool:
        return self.measured <= self.limit


class Measured(NamedTuple):
    """What measuring one goal gave."""

    rows: list[Row]
    series: Series


def ratio(series: Series, metric: str, mine: str, other: str) -> float:
    return series[mine][metric].median / series[other][metric].median
