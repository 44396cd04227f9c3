"""Why a reflex loop went on, paused or ended: its own makers for `rooda why`. Pure."""

from collections.abc import Iterator

from rooda.base.json import Json
from rooda.loops.reflex.view import one_line
from rooda.views.why import Maker, Reason, Seen, limits, stopped


def _began(record: Json, seen: Seen) -> Iterator[Reason]:
    before = f"{record['iterations']} were completed before"
    where = f"iteration {record['number']}, phase {record['level']}, {record['step']}"
    limit = "one iteration" if record["max_iterations"] == 1 else f"{record['max_iterations']} iterations"
    yield Reason(record["ts"], 0, "began", f"at most {limit}; {before}; at {where}")


def _broke(record: Json, seen: Seen) -> Iterator[Reason]:
    what = "the second time, so the loop ends" if record["last"] else "the phase is asked once more"
    rule = f"{record['step']} broke its contract: {one_line(record['error'])}; {what}"
    yield Reason(record["ts"], record["display"], "failed", rule, *seen.transcript(record["step"].lower()))


def _checked(record: Json, seen: Seen) -> Iterator[Reason]:
    count = len(record["commands"])
    how = "run" if record["way"] == "run" else "not run, an agent judges their rules"
    rule = f"{count} {'command' if count == 1 else 'commands'} of checks: {how} (exec_checks)"
    yield Reason(record["ts"], record["display"], "went on", rule, *seen.transcript("prepare"))


def _judged(record: Json, seen: Seen) -> Iterator[Reason]:
    """One evaluation: the score, and the rules that kept it from passing."""
    open_ = [*record["failed"], *record["warnings"]]
    rule = f"phase {record['level']}: score {record['score']}"
    rule += f"; not met: {', '.join(open_)}" if open_ else "; all rules hold"
    judge = seen.turn.get("evaluate", {}) or seen.latest.get("evaluate", {})
    evidence = judge.get("transcript") or record["artifact"]
    decision = "passed" if record["passed"] else "failed"
    yield Reason(record["ts"], record["number"], decision, rule, evidence, open_[0] if open_ else "")


def _went_on(record: Json, seen: Seen) -> Iterator[Reason]:
    if record["switched"]:
        number = int(seen.turn["reflex.block"]["number"])
        yield Reason(record["ts"], number, "went on", "phase A passed, phase B begins", *seen.transcript("evaluate"))


def _ended(record: Json, seen: Seen) -> Iterator[Reason]:
    word = "Paused" if record["status"] == "running" else f"{record['status']}, {one_line(record['stop_reason'])}"
    text = f"{word}: {one_line(record['note'])}" if record["note"] else word
    rule = limits(record) if record["reason"] == "limit" else ""
    text = "; ".join(filter(None, (text, stopped(record), rule)))
    if record["elsewhere"]:
        text += "; another command ended it"
    judged = record["status"] != "running" and "reflex.block" in seen.turn
    call = seen.transcript("evaluate") if judged else seen.transcript() if record["status"] == "failed" else ("", "")
    yield Reason(record["ts"], 0, "ended", f"{text} (exit {record['exit_code']})", *call)


MAKERS: dict[str, Maker] = {
    "run.started": _began,
    "run.resumed": _began,
    "reflex.breach": _broke,
    "reflex.checks": _checked,
    "reflex.block": _judged,
    "reflex.boundary": _went_on,
    "run.ended": _ended,
}
