"""Why a goal went on, paused or ended: its own makers for `rooda why`. Pure."""

from collections.abc import Callable, Iterator

from rooda.model import Json
from rooda.report.why import Reason

Turn = dict[str, Json]


def _verified(record: Json, turn: Turn, red: list[Json]) -> Iterator[Reason]:
    """Only what failed: it is the evidence for what follows."""
    if record["verdict"] != "met" and "iteration.started" in turn:
        rule = f"criterion {record['criterion']}: {record['verdict']}"
        yield Reason(record["ts"], record["display"], "failed", rule, record["evidence"])


def _turned(record: Json, turn: Turn, red: list[Json]) -> Iterator[Reason]:
    unmet = [name for name, met in record["criteria"].items() if not met]
    transcript = turn.get("agent.ended", {}).get("transcript", "")
    word = "accepted: the agent exited with 0, and what the step is tied to holds"
    rule = f"step {record['step']} {word if record['accepted'] else 'not accepted'}"
    if record["claimed"] and not record["exit_signal"]:
        rule += "; it claimed completion, which was not admitted"
    rule += f"; unmet: {', '.join(unmet)}" if unmet else "; all criteria hold"
    yield Reason(record["ts"], record["display"], "went on" if record["accepted"] else "failed", rule, transcript)


def _ended(record: Json, turn: Turn, red: list[Json]) -> Iterator[Reason]:
    word = f"Paused: {record['note']}" if record["status"] == "paused" else record["status"]
    rule = "every criterion was verified by rooda, and completion was signalled" if word == "completed" else ""
    yield Reason(record["ts"], 0, "ended", f"{'; '.join(filter(None, (word, rule)))} (exit {record['exit_code']})")


MAKERS: dict[str, Callable[[Json, Turn, list[Json]], Iterator[Reason]]] = {
    "criterion.verified": _verified,
    "iteration.ended": _turned,
    "run.ended": _ended,
}
