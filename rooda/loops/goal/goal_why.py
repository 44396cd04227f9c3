"""Why a goal went on, paused or ended: its own makers for `rooda why`. Pure."""

from collections.abc import Iterator

from rooda.agents.outcome import in_words
from rooda.base.json import Json
from rooda.views.why import Maker, Reason, Seen, limits, stopped

_WORDS = {"exit": "the agent exited with {code}", "outcome": "{message}", "": "its call ended by {ended}"}


def _scored(record: Json, seen: Seen) -> Iterator[Reason]:
    """Whether there is enough to work on."""
    intent = record["shape"] == "Intent"
    rule = f"the specification scores {record['total']}/10: {record['shape']}"
    rule += "; below 5 nothing is begun without a person" if intent else ""
    yield Reason(record["ts"], 0, "asked" if intent else "went on", rule, *seen.transcript("plan"))


def _began(record: Json, seen: Seen) -> Iterator[Reason]:
    rule = (
        f"at most {record['max_iterations']} iterations, {record['budget']}; type {record['type']}, "
        f"workflow {record['workflow']}; steps: {record['steps']}"
    )
    held = ", ".join(record["already"])
    yield Reason(record["ts"], 0, "began", f"{rule}; true before any work: {held}" if held else rule)


def _resumed(record: Json, seen: Seen) -> Iterator[Reason]:
    unmet = ", ".join(record["unmet"]) or "none"
    rule = f"{record['done']} of {record['total']} steps were done in {record['iterations']} iterations; unmet: {unmet}"
    yield Reason(record["ts"], 0, "began", "; ".join([rule, *record["notes"]]))


def _verified(record: Json, seen: Seen) -> Iterator[Reason]:
    """rooda's own runs are the evidence for what follows; those before the start only tell what held already."""
    if "iteration.started" in seen.turn:
        met = record["verdict"] == "met"
        rule = f"criterion {record['criterion']}: {record['verdict']}"
        words = "" if met else "result: "
        yield Reason(record["ts"], record["display"], "verified" if met else "failed", rule, record["evidence"], words)


def _turned(record: Json, seen: Seen) -> Iterator[Reason]:
    unmet = [name for name, met in record["criteria"].items() if not met]
    fault = in_words(seen.latest.get("step", {}), _WORDS)
    word = "accepted: the agent exited with 0, and what the step is tied to holds"
    rule = f"step {record['step']} {word if record['accepted'] else 'not accepted'}"
    rule += f": {fault}" if fault and not record["accepted"] else ""
    if record["claimed"] and not record["exit_signal"]:
        rule += "; it claimed completion, which was not admitted"
    rule += f"; unmet: {', '.join(unmet)}" if unmet else "; all criteria hold"
    transcript, words = seen.transcript("step")
    words = "EXIT_SIGNAL" if record["claimed"] else words
    decision = "went on" if record["accepted"] else "failed"
    yield Reason(record["ts"], record["display"], decision, rule, transcript, words)


def _asked(record: Json, seen: Seen) -> Iterator[Reason]:
    by = f"; answered by {record['answer']}" if record["answer"] else ""
    rule = f"gate {record['gate']}: {record['text'] or 'a person decides'}{by}"
    yield Reason(record["ts"], record["display"], "asked", rule)


def _answered(record: Json, seen: Seen) -> Iterator[Reason]:
    said = "nobody answered" if record["answer"] is None else f"the answer was {record['answer']!r}"
    yield Reason(record["ts"], record["display"], "asked", f"gate {record['gate']}: {said}")


def _ended(record: Json, seen: Seen) -> Iterator[Reason]:
    word = f"Paused: {record['note']}" if record["status"] == "paused" else record["status"]
    word += f": {record['note']}" if record["status"] in ("failed", "in_progress") else ""
    reason = record["reason"]
    rule = limits(record) if reason == "shared limit" else _RULES.get(reason, "")
    text = "; ".join(filter(None, (word, stopped(record), rule)))
    call = {"completed": "step", "error": "step", "unplanned": "plan"}.get(reason, "")
    evidence, words = seen.transcript(call) if call else ("", "")
    words = "EXIT_SIGNAL" if reason == "completed" else words
    unmet = [name for name, met in record.get("criteria", {}).items() if not met]
    checked = seen.turn.get("criterion.verified", {})
    if reason in ("stuck", "error") and checked.get("criterion") in unmet:
        evidence, words = checked["evidence"], "result: "
    yield Reason(record["ts"], 0, "ended", f"{text} (exit {record['exit_code']})", evidence, words)


_RULES = {
    "unplanned": "without a plan nothing begins",
    "files": "its own files can't be read or written; what is on the disk stays as it is",
    "completed": "every criterion was verified by rooda, and completion was signalled",
    "stuck": "a set of unmet criteria that stays the same is no progress",
    "error": "the same error again and again is no progress",
    "edits": "a file that is written again and again within an iteration is no progress",
    "budget": "the money that was agreed on is spent; it is tested before the iterations",
    "limit": "the iteration limit is tested before each iteration",
    "mustNot": "what must never become true has come true",
    "shape": "the criteria were changed by somebody else",
    "observation": "a person has to look, and to say what was seen",
    "tests": "files that verify the work are not as they were; a person decides",
    "untold": "what must not be could not be checked; a person decides",
    "interrupted": "a signal ends the loop; the state is kept",
    "asked": "a person asked for it; the iteration that ran was finished first",
    **dict.fromkeys(("G1", "G2", "G3"), "a person decides before it goes on"),
}
MAKERS: dict[str, Maker] = {
    "goal.scored": _scored,
    "goal.disclosed": lambda record, seen: iter(()),
    "run.started": _began,
    "run.resumed": _resumed,
    "criterion.verified": _verified,
    "iteration.ended": _turned,
    "question.asked": _asked,
    "question.answered": _answered,
    "run.ended": _ended,
}
