"""Reads the output of `cn -p --format json`, one JSON object at the end, and the token counts from its session file."""

import re

from rooda.agents.gathered import Gathered, inner, number
from rooda.agents.reader import Reader, SessionFiles
from rooda.agents.records import Usage
from rooda.base.json import Json

_STATUS = re.compile(r"\s*([45]\d\d)\b")


def take(record: Json, into: Gathered) -> None:
    if record.get("status") == "error":
        message = record.get("message")
        status = _STATUS.match(message) if isinstance(message, str) else None
        into.fail(message, "", int(status[1]) if status else None)
    elif "response" in record or record.get("status") == "success":
        into.ended = True
        into.add_message(record.get("response"))


def _session(record: Json, into: Gathered) -> None:
    usage = inner(record, "usage")
    if usage:
        details = inner(usage, "promptTokensDetails")
        cached, written = number(details, "cachedTokens"), number(details, "cacheWriteTokens")
        fresh = max(0, number(usage, "promptTokens") - cached - written)
        into.add_share("", Usage(fresh, number(usage, "completionTokens"), cached, written))


READER = Reader(
    record=take,
    sessions=(
        SessionFiles(
            home=("CONTINUE_GLOBAL_DIR", ""),
            folder=".continue",
            place=("sessions", "{session}.json"),
            markers=(),
            take=_session,
            whole=True,
        ),
    ),
    shell=("Bash",),
)
