"""gemini's stream-json, and its one JSON object."""

from rooda.model import Json, Usage
from rooda.world.agents.gathered import Gathered, inner, number

EDITING = ("write_file", "replace", "edit")


def take(record: Json, into: Gathered) -> None:
    kind = record.get("type")
    if kind == "init":
        into.session, into.model = str(record.get("session_id") or ""), str(record.get("model") or "")
    elif kind == "message" and record.get("role") == "assistant":
        _message(record, into)
    elif kind == "tool_use":
        given = inner(record, "parameters")
        path = given.get("file_path") or given.get("path")
        name = record.get("tool_name")
        into.tool(name, given.get("command") or path, path if name in EDITING else None)
        into.final = ""
    elif kind == "tool_result" and record.get("status") == "error":
        into.tool_failed()
    elif kind == "result":
        _result(record, into)
    elif kind is None and "response" in record:
        into.ended = True
        into.say(record.get("response"))
    elif kind is None and "error" in record:
        error = inner(record, "error")
        into.fail(error.get("message"), str(error.get("type") or ""), error.get("code"))


def _message(record: Json, into: Gathered) -> None:
    """Pieces that follow one another are one message; a tool call in between ends it."""
    text = record.get("content")
    if isinstance(text, str):
        into.final = into.final + text if record.get("delta") else text
        into.shown.append(text)


def _result(record: Json, into: Gathered) -> None:
    into.ended = True
    stats = inner(record, "stats")
    if stats:
        cached = number(stats, "cached")
        fresh = number(stats, "input") if "input" in stats else max(0, number(stats, "input_tokens") - cached)
        into.usage = Usage(fresh, number(stats, "output_tokens"), cached, 0)
    if record.get("status") == "error":
        error = inner(record, "error")
        into.fail(error.get("message"), str(error.get("type") or ""))
