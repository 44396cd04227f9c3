"""Which events are worth a hook."""

from rooda.errors import FAILED, OK, UNDECIDED, UNFINISHED
from rooda.model import Json

OF_ACCOUNT = "Usage limit of "  # how the note begins when an account's limit ended a run
_OF_CODE = {OK: "done", FAILED: "failed", UNFINISHED: "paused", UNDECIDED: "needs_person"}
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
    note = str(record.get("note", ""))
    found += ["stuck"] if reason in _STUCK.get(loop, ()) else []
    if reason in ("limit", "shared limit") and (loop, reason) != ("goal", "limit"):
        found.append("limit" if of_account(note) else "budget")
    found += ["budget"] if (loop, reason) == ("goal", "budget") else []
    wanted = reason in _WANTED.get(loop, ()) or (reason == "error" and record.get("status") == "running")
    wanted |= bool(record.get("refused")) and record.get("exit_code") == FAILED
    return [*found, "needs_person"] if wanted else found


def of_account(note: str) -> bool:
    """Is it the usage limit of an account, none that a person has set?"""
    return note.startswith(OF_ACCOUNT)
