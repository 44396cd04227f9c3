"""Events to reasons: which rule let a run go on, fail, pause or stop, and where the evidence stands. Pure."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

from rooda.model import Json
from rooda.policy.durations import plain
from rooda.report.lines import LEVELS, faults, lines


class Reason(NamedTuple):
    """One decision: what was decided, by which rule, and the file with the words that show it."""

    ts: str
    iteration: int  # as the screen counts, 0 for the run itself
    decision: str  # began | went on | failed | waited | ended
    rule: str
    evidence: str = ""  # path
    words: str = ""  # what to look for in it; empty: its end


def reasons(records: Iterable[Json]) -> Iterator[Reason]:
    """In the order of the events."""
    turn: dict[str, Json] = {}
    red: list[Json] = []
    for record in records:
        event = record["event"]
        if event == "iteration.started":
            turn, red = {}, []
        turn[event] = record
        if event == "gate.ended" and record.get("verdict") != "pass":
            red.append(record)
        try:
            yield from _maker(record)(record, turn, red)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):
            continue  # somebody changed the file


def _maker(record: Json) -> "Maker":
    """Of the kind of loop, if it has reasons of its own: `report/<kind>_why.py`."""
    if (loop := record.get("loop")) in ("goal", "reflex"):
        import importlib

        own: Maker | None = importlib.import_module(f"rooda.report.{loop}_why").MAKERS.get(record["event"])
        if own:
            return own
    return _MAKERS.get(record["event"], _told)


def _began(record: Json, turn: dict[str, Json], red: list[Json]) -> Iterator[Reason]:
    most = record.get("max_iterations")
    limit = f"at most {most} iterations" if most else "no limit of iterations"
    gates = ", ".join(record.get("gates") or ()) or "none"
    before = f"{record.get('iterations', 0)} were completed before"
    yield Reason(record["ts"], 0, "began", f"{limit}; gates: {gates}; {before}")


def _turn(record: Json, turn: dict[str, Json], red: list[Json]) -> Iterator[Reason]:
    call = turn.get("agent.ended", {})
    transcript, words = call.get("transcript", ""), record.get("message") or ""
    where = record["ts"], record["display"]
    if record["outcome"] == "interrupted":
        rule = "a signal ended its agent; the call counts, failures in a row do not change"
        yield Reason(*where, "ended", rule, transcript)
    elif record["outcome"] == "failure":
        count = f"failures in a row: {record['consecutive_failures']} of {record['failure_threshold']}"
        for fault in faults(record):
            gate = fault.startswith("Quality gates")
            yield Reason(*where, "failed", f"{fault}; {count}", "" if gate else transcript, words)
        for each in red:
            yield Reason(*where, "failed", f"gate {each['gate']}: {each['verdict']}", each.get("output", ""))
    else:
        gates = turn.get("gates.ended")
        rule = "the agent exited with 0" + (", and every gate passed" if gates else ", and there are no gates")
        signal = "; it signaled SUCCESS" if record.get("promise") == "SUCCESS" else ""
        yield Reason(*where, "went on", rule + signal, transcript)


def _waited(record: Json, turn: dict[str, Json], red: list[Json]) -> Iterator[Reason]:
    call = turn.get("agent.ended", {})
    cause = f"usage limit of {record['account']}" if record.get("account") else "a fault of the service that may pass"
    rule = f"{cause}: {plain(record['seconds'])}s, until {record['until']}"
    yield Reason(record["ts"], record["display"], "waited", rule, call.get("transcript", ""), call.get("message", ""))


def _ended(record: Json, turn: dict[str, Json], red: list[Json]) -> Iterator[Reason]:
    said = lines(record)
    rule = _RULES.get(record.get("reason", ""), "")
    text = "; ".join(part for part in (said[0].text if said else "", rule) if part)
    yield Reason(record["ts"], 0, "ended", f"{text} (exit {record['exit_code']})")


def _told(record: Json, turn: dict[str, Json], red: list[Json]) -> Iterator[Reason]:
    """Whatever warns a person is a reason too."""
    if record["event"] in ("iteration.ended", "budget.exceeded"):
        return
    for line in lines(record):
        if LEVELS[line.level] >= LEVELS["warn"]:
            yield Reason(record["ts"], record.get("display", 0), "told", line.text)


_RULES = {
    "max-iterations": "the limit is tested after the failures, before each iteration",
    "failures": "the failures in a row reached the threshold",
    "success-signal": "a success signal ends the loop if the agent exited with 0 and every gate passed",
    "signal": "a signal ends the loop; the state is kept",
    "agent": "the same call would only fail again, so no other was made",
    "prompt": "without a prompt there is nothing to ask",
}
Maker: TypeAlias = Callable[[Json, dict[str, Json], list[Json]], Iterator[Reason]]
_MAKERS: dict[str, Maker] = {
    "run.started": _began,
    "run.resumed": _began,
    "iteration.ended": _turn,
    "resting": _waited,
    "run.ended": _ended,
}
