"""Why a reflex loop went on, paused or ended: its own makers for `rooda why`. Pure."""

from collections.abc import Callable, Iterator

from rooda.model import Json
from rooda.report.reflex_lines import one_line
from rooda.report.why import Reason

Turn = dict[str, Json]


def _judged(record: Json, turn: Turn, red: list[Json]) -> Iterator[Reason]:
    """One evaluation: the score, and the rules that kept it from passing."""
    left = ", ".join([*record["failed"], *record["warnings"]])
    rule = f"phase {record['level']}: score {record['score']}" + (f"; not met: {left}" if left else "; all rules hold")
    yield Reason(record["ts"], record["number"], "passed" if record["passed"] else "failed", rule, record["artifact"])


def _ended(record: Json, turn: Turn, red: list[Json]) -> Iterator[Reason]:
    word = "Paused" if record["status"] == "running" else f"{record['status']}, {one_line(record['stop_reason'])}"
    text = f"{word}: {one_line(record['note'])}" if record["note"] else word
    yield Reason(record["ts"], 0, "ended", f"{text} (exit {record['exit_code']})")


MAKERS: dict[str, Callable[[Json, Turn, list[Json]], Iterator[Reason]]] = {
    "reflex.block": _judged,
    "run.ended": _ended,
}
