"""The meaning of a run's end for hooks, for status and for `rooda resume --all`. Pure."""

from collections.abc import Mapping

from rooda.base.json import Json
from rooda.errors import FAILED, OK, TERMINATED, UNDECIDED, UNFINISHED
from rooda.run.spending import cause_of, in_words

_OF_CODE = {OK: "done", FAILED: "failed", UNFINISHED: "paused", UNDECIDED: "needs_person"}
_AT_LIMIT = {"account": ["limit"], "cost": ["budget"], "tokens": ["budget"], "time": ["budget"]}  # by kind of cause


def moments(record: Json, by_reason: Mapping[str, str]) -> list[str]:
    """The moments of hooks that an event means, the general ones first.

    done, failed, paused, stopped; then stuck, limit, budget, needs_person. `by_reason`: what the reasons of this kind
    of loop mean.
    """
    event, reason = record["event"], record.get("reason", "")
    meant = by_reason.get(reason, "")
    if event == "question.asked":
        return ["needs_person"] if record.get("attended") and not record.get("answer") else []
    if event == "resting":
        return ["limit"] if record.get("account") else []
    if event != "run.ended":
        return []
    found = [_OF_CODE.get(record.get("exit_code", OK), "stopped")]
    found += [meant] if meant == "stuck" else []
    if cause := cause_of(record):
        found += _AT_LIMIT.get(cause.kind, [])
    found += [meant] if meant == "budget" else []
    wanted = meant == "needs_person" or (reason == "error" and record.get("status") == "running")
    wanted |= bool(record.get("refused")) and record.get("exit_code") == FAILED
    return [*found, "needs_person"] if wanted else found


# Whether a run was cut off, or ended because it was done or the user ended it.
CUT_OFF, PAUSED, STOPPED, INTERRUPTED = "cut off", "paused", "stopped", "interrupted"
_LIMITS = ("limit", "shared limit")
_QUIT = 3  # SIGQUIT comes from a keyboard


def cut_off(ended: Json | None, asked: bool, order: str) -> bool:
    """True if nothing but a crash, a shutdown or a closed terminal ended the run.

    `ended`: the last event of its newest session. A session without one was killed, or the machine went down; SIGTERM
    or SIGHUP without an order means a shutdown or a closed terminal. `asked`: a question waits for the user, so the
    run waits too. `order`: what the user ordered from another terminal, "" for nothing.
    """
    return not order and not asked and (ended is None or _from_outside(ended))


def status_without_process(ended: Json | None, stopped: bool) -> str:
    """The status of a run that has no process although its files say `running`. `stopped`: the user ordered it."""
    if stopped:
        return STOPPED
    if at_limit(ended):
        return PAUSED
    return CUT_OFF if ended is None or _from_outside(ended) else INTERRUPTED


def at_limit(ended: Json | None) -> str:
    """The limit that ended the run, as `status` shows it; "" for none. Logs without a `cause` have only the note."""
    found = ended or {}
    if found.get("reason") not in _LIMITS:
        return ""
    cause = cause_of(found)
    return (in_words(cause) if cause else "") or str(found.get("note", ""))


def _from_outside(ended: Json) -> bool:
    return ended.get("exit_code") == TERMINATED and ended.get("signal") != _QUIT
