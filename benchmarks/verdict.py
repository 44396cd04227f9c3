"""A goal, what was measured for it, and whether it is met."""

from typing import NamedTuple

from benchmarks.measure import Series


class Row(NamedTuple):
    """One line of the table. Met: measured ≤ limit. Without a limit it is a fact to compare with, and no goal."""

    goal: int
    what: str
    measured: float
    limit: float | None
    unit: str = "×"  # ×: a ratio; else MB, ms, /s …

    @property
    def met(self) -> bool:
        return self.limit is None or self.measured <= self.limit


class Measured(NamedTuple):
    """What measuring one goal gave."""

    rows: list[Row]
    series: Series


def ratio(series: Series, metric: str, mine: str, other: str) -> float:
    return series[mine][metric].median / series[other][metric].median
