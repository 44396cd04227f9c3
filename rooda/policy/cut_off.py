"""Was a run cut off, or did it end because it, or a person, wanted it to? Pure."""

from collections.abc import Iterable

from rooda.errors import TERMINATED
from rooda.model import Json

_QUIT = 3  # SIGQUIT comes from a keyboard


def cut_off(events: Iterable[Json], order: str) -> bool:
    """By the last events of its newest session and a person's order, "" for none.

    A session without an end was killed, or the machine went down. One that SIGTERM or SIGHUP ended was ended by a
    shutdown or a closed terminal, unless a person had ordered it. Whatever waits for a person waits.
    """
    last: Json = {}
    asked = False
    for event in events:
        name = event.get("event", "")
        asked = name == "question.asked" or (asked and name != "question.answered")
        last = event
    if order or asked or not last:
        return False
    if last.get("event") != "run.ended":
        return True
    return last.get("exit_code") == TERMINATED and last.get("signal") != _QUIT
