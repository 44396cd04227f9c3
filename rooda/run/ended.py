"""Interprets how a run ended, for hooks, for `rooda status` and for `rooda resume --all`. Pure."""

from collections.abc import Mapping

from rooda.base.json import Json
from rooda.errors import FAILED, OK, TERMINATED, UNDECIDED, UNFINISHED
from rooda.errors import INTERRUPTED as INTERRUPTED_CODE
from rooda.run.spending import LIMIT_OPTIONS, cause_of, in_words, remedy

_OF_CODE = {OK: "done", FAILED: "failed", UNFINISHED: "paused", UNDECIDED: "needs_person"}
_AT_LIMIT = {"account": ["limit"], "cost": ["budget"], "tokens": ["budget"], "time": ["budget"]}  # by kind of cause


def moments(record: Json, by_reason: Mapping[str, str]) -> list[str]:
    """Return the names of the hooks that an event triggers, general ones first.

    The general ones are done, failed, paused and stopped; the specific ones stuck, limit, budget and needs_person.
    `by_reason` maps the end reasons of this kind of loop to names of hooks.
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


# The states of a run. All screens and --json use these words, even where the files of a loop use others.
RUNNING, WAITING, PAUSED, INTERRUPTED, PARKED = "running", "waiting", "paused", "interrupted", "parked"
QUESTION = "question"  # the end reason of a run whose agent asks the user
COMPLETED, FAILED_STATE, STOPPED, CANCELLED = "completed", "failed", "stopped", "cancelled"
STATES = (RUNNING, WAITING, PAUSED, INTERRUPTED, PARKED, COMPLETED, FAILED_STATE, STOPPED, CANCELLED)
_FLOW_LIMIT = "max-iterations-reached"  # the status word of a flow at its iteration limit
_GOAL_LIMIT = "budget"  # the end reason of a goal whose budget is spent
_OF_FILE = {  # status words in the files of all kinds; for those in _OPEN the end of the last session decides
    **dict.fromkeys(("completed", "complete"), COMPLETED),
    **dict.fromkeys(("aborted", "failed", "error", "phase_error"), FAILED_STATE),
    **dict.fromkeys(("running", "in_progress", "interrupted", "planning"), INTERRUPTED),
    _FLOW_LIMIT: PAUSED,
}
_OPEN = (INTERRUPTED, PAUSED)
_LIMITS = ("limit", "shared limit")
_AT_ITERATIONS = "iteration_limit"  # a reflex loop's files say `stopped` with this reason at the iteration limit
_QUIT = 3  # SIGQUIT comes from a keyboard


def of_file(word: str, reason: str = "") -> str:
    """Return the state for a status word in a loop's files. An unknown word is returned unchanged."""
    return PAUSED if (word, reason) == (STOPPED, _AT_ITERATIONS) else _OF_FILE.get(word, word)


def of_running(phase: str, suspended: bool) -> str:
    """Return the state of a run that has a process. `phase` is its current phase (`history.Now.phase`)."""
    return PAUSED if suspended else WAITING if phase == WAITING else RUNNING


def without_process(state: str, ended: Json | None, stopped: bool) -> str:
    """Return the state of a run that has no process.

    `state` is the state recorded in its files; `ended` is the `run.ended` event of its newest session, None if missing.
    `stopped` is true if the user stopped the run.
    """
    if state not in _OPEN:
        return state
    if stopped:
        return STOPPED
    if at_limit(ended):
        return PAUSED
    if ended and ended.get("reason") == QUESTION:
        return PARKED
    code = ended.get("exit_code") if ended else None
    if code in (INTERRUPTED_CODE, TERMINATED):
        return INTERRUPTED
    return FAILED_STATE if code == FAILED else PAUSED if code in (UNFINISHED, UNDECIDED) else state


def of_end(record: Json) -> str:
    """Return the state of a run that ended with this `run.ended` event."""
    word = of_file(str(record.get("status", "")), str(record.get("reason", "")))
    if word == COMPLETED and record.get("exit_code") == FAILED:
        return FAILED_STATE
    return without_process(word, record, "stopped_by" in record)


def cut_off(ended: Json | None, asked: bool, order: str) -> bool:
    """True if a crash, a shutdown or a closed terminal ended the run, and not the user or the run itself.

    `ended` is the `run.ended` event of its newest session; None means that rooda or the machine crashed. SIGTERM
    or SIGHUP without an order means a shutdown or a closed terminal. `asked` is true if a question waits for the user.
    `order` is the user's order from another terminal, "" if there is none.
    """
    return not order and not asked and (ended is None or _from_outside(ended))


def at_limit(ended: Json | None) -> str:
    """Return a sentence about the limit that ended the run; "" if none did. Without a `cause`, use the event's note."""
    found = ended or {}
    if found.get("reason") not in _LIMITS:
        return ""
    cause = cause_of(found)
    text = (in_words(cause) if cause else "") or str(found.get("note", ""))
    return f"{text}; {before}" if (before := remedy(cause)) else text


def needs_more(ended: Json) -> bool:
    """True if a limit ended the run, so that a resume without a higher limit ends at once."""
    cause = cause_of(ended)
    own = ended.get("status") == _FLOW_LIMIT or ended.get("reason") == _GOAL_LIMIT or _is_used_up(ended)
    return own or (cause is not None and cause.kind in LIMIT_OPTIONS)


def _is_used_up(ended: Json) -> bool:
    """True if a procedure's last allowed iteration was cut off: it counts, so no iteration is left."""
    done, most = ended.get("iterations"), ended.get("max_iterations")
    interrupted = ended.get("status") == INTERRUPTED
    return interrupted and isinstance(done, int) and isinstance(most, int) and 0 < most <= done


def _from_outside(ended: Json) -> bool:
    return ended.get("exit_code") == TERMINATED and ended.get("signal") != _QUIT
