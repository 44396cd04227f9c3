"""Which events are worth a hook."""

from rooda.base.json import Json
from rooda.errors import FAILED, OK, UNDECIDED, UNFINISHED
from rooda.run.spending import cause_of

_OF_CODE = {OK: "done", FAILED: "failed", UNFINISHED: "paused", UNDECIDED: "needs_person"}
_AT_LIMIT = {"account": ["limit"], "cost": ["budget"], "tokens": ["budget"], "time": ["budget"]}  # by kind of cause
_STUCK = {  # ends without progress, by kind of loop
    "ooda": ("failures",),
    "reflex": ("stagnation", "phase_error"),
    "flow": ("error",),
    "goal": ("stuck", "error", "edits"),
}
_WANTED = {  # ends that only a person can do something about
    "ooda": ("agent", "prompt"),
    "reflex": ("files", "gone"),
    "flow": (),
    "goal": ("files", "mustNot", "shape", "observation", "tests", "untold", "G1", "G2", "G3"),
}


def moments(record: Json) -> list[str]:
    """done, failed, paused, stopped; stuck, limit, budget, needs_person: what this event is, from the general on."""
    event, loop, reason = record["event"], record.get("loop", ""), record.get("reason", "")
    if event == "question.asked":
        return ["needs_person"] if record.get("attended") and not record.get("answer") else []
    if event == "resting":
        return ["limit"] if record.get("account") else []
    if event != "run.ended":
        return []
    found = [_OF_CODE.get(record.get("exit_code", OK), "stopped")]
    found += ["stuck"] if reason in _STUCK.get(loop, ()) else []
    if cause := cause_of(record):
        found += _AT_LIMIT.get(cause.kind, [])
    found += ["budget"] if (loop, reason) == ("goal", "budget") else []
    wanted = reason in _WANTED.get(loop, ()) or (reason == "error" and record.get("status") == "running")
    wanted |= bool(record.get("refused")) and record.get("exit_code") == FAILED
    return [*found, "needs_person"] if wanted else found
