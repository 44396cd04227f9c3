"""Was a run cut off, or did it end because it, or a person, wanted it to? How does it stand then? Pure."""

from rooda.base.json import Json
from rooda.errors import TERMINATED
from rooda.run.spending import cause_of, in_words

CUT_OFF, PAUSED, STOPPED, INTERRUPTED = "cut off", "paused", "stopped", "interrupted"
_LIMITS = ("limit", "shared limit")
_QUIT = 3  # SIGQUIT comes from a keyboard


def cut_off(ended: Json | None, asked: bool, order: str) -> bool:
    """By the end of its newest session, a question that waits there, and the user's order, "" for none.

    A session without an end was killed, or the machine went down. One that SIGTERM or SIGHUP ended was ended by a
    shutdown or a closed terminal, unless a person had ordered it. Whatever waits for a person waits.
    """
    return not order and not asked and (ended is None or _from_outside(ended))


def standing(ended: Json | None, stopped: bool) -> str:
    """A word for a run that nobody runs, though its files say that it goes on. `stopped`: a person ordered it."""
    if stopped:
        return STOPPED
    if at_limit(ended):
        return PAUSED
    return CUT_OFF if ended is None or _from_outside(ended) else INTERRUPTED


def at_limit(ended: Json | None) -> str:
    """The limit that it ended at, as `status` shows it; "" for none. A log without its cause has the note alone."""
    found = ended or {}
    if found.get("reason") not in _LIMITS:
        return ""
    cause = cause_of(found)
    return (in_words(cause) if cause else "") or str(found.get("note", ""))


def _from_outside(ended: Json) -> bool:
    return ended.get("exit_code") == TERMINATED and ended.get("signal") != _QUIT
