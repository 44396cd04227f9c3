"""A goal, what was measured for it, and whether it is met."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from benchmarks.measure import Series

FORMS = {
    "×": "{:.2f} ×", "/s": "{:.1f} /s", "MB": "{:.1f} MB", "ms": "{:.1f} ms", "%": "{:.2f} %",
    "ms/min": "{:.0f} ms/min", "": "{:.0f}"
}  # fmt: skip


class Row(NamedTuple):
    """One line of the table. Met: measured ≤ limit. Without a limit it is a fact to compare with, and no goal."""

    goal: int  # 0: none of the twelve
    what: str
    measured: float
    limit: float | None
    unit: str = "×"  # ×: a ratio; else MB, ms, /s, or nothing for a count

    @property
    def met(self) -> bool:
        return self.limit is None or self.measured <= self.limit

    @property
    def told(self) -> str:
        bound = "no goal" if self.limit is None else f"at most {self.limit:g}: {'met' if self.met else 'MISSED'}"
        return f"{self.what}: {FORMS[self.unit].format(self.measured).strip()} ({bound})"


class Measured(NamedTuple):
    """What measuring one part gave."""

    rows: list[Row]
    series: Series
    notes: Mapping[str, Any] = {}  # what no figure says: versions, what is odd, who could not be measured


def ratio(series: Series, metric: str, mine: str, other: str) -> float:
    return series[mine][metric].median / series[other][metric].median
