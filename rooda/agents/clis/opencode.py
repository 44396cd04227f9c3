"""Reads the output of `opencode run --format json`, which has no final record: its last step has the reason `stop`.

When the context is full, opencode compacts it, marks that with a synthetic text, and continues. The step that compacts
does not clear earlier errors. If the context is still too full, opencode compacts it again, endlessly.
"""

import re

from rooda.agents.gathered import Gathered, inner, money, number
from rooda.agents.reader import Reader
from rooda.agents.records import Usage
from rooda.base.json import Json

EDITING = ("write", "edit", "patch", "multiedit")
OVERFLOW = "ContextOverflowError"


def take(record: Json, into: Gathered) -> None:
    kind, part = record.get("type"), inner(record, "part")
    into.session = into.session or str(record.get("sessionID") or "")
    if kind == "text" and part.get("synthetic"):
        into.memory["compacting"] = into.ended = False
    elif kind == "text" and not into.memory.get("compacting"):
        into.add_message(part.get("text"))
    elif kind == "tool_use":
        _tool(part, into)
    elif kind == "step_finish":
        _step(part, into)
    elif kind == "error":
        _error(inner(record, "error"), into)


def _error(error: Json, into: Gathered) -> None:
    data = inner(error, "data")
    into.ended = False
    into.fail(data.get("message") or error.get("name"), error.get("name"), data.get("statusCode"))
    if error.get("name") == OVERFLOW:
        into.memory["overflows"] = into.memory.get("overflows", 0) + 1
        into.memory["compacting"] = True


def _tool(part: Json, into: Gathered) -> None:
    given, name = inner(part, "state", "input"), part.get("tool")
    path = given.get("filePath") or given.get("path")
    into.add_tool_call(name, given.get("command") or path, path if name in EDITING else None)
    state = inner(part, "state")
    if state.get("status") == "error":
        into.tool_failed()
        if "rejected permission" in str(state.get("error")):
            into.deny(name)


def _step(part: Json, into: Gathered) -> None:
    into.turns += 1
    if not into.memory.get("compacting"):  # a normal step succeeded: earlier errors are over
        into.ended = part.get("reason", "stop" if into.final else "") == "stop"
        into.memory["overflows"] = 0
        into.error = into.message = ""
        into.status = None
    cost = money(part.get("cost"))
    if cost is not None:
        into.cost = (into.cost or 0.0) + cost
    tokens = inner(part, "tokens")
    cache = inner(tokens, "cache")
    out = number(tokens, "output") + number(tokens, "reasoning")
    into.add_usage(Usage(number(tokens, "input"), out, number(cache, "read"), number(cache, "write")))


_LOGGED = re.compile(r'level=ERROR .*message="stream error" .*error\.error="((?:[^"\\]|\\.)*)"')


def log_error(line: str) -> str:
    """Return the service's error in a line of opencode's log; "" if there is none.

    While opencode retries, it reports the error only in this log.
    """
    found = _LOGGED.search(line)
    return found[1].replace('\\"', '"') if found else ""


READER = Reader(
    record=take,
    kinds=("step_start", "text", "reasoning", "tool_use", "step_finish", "error"),
    compacts_forever=True,
    log_error=log_error,
)
