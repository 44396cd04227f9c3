"""copilot's --output-format json. It tells no tokens."""

from rooda.model import Json
from rooda.world.agents.gathered import Gathered, inner


def take(record: Json, into: Gathered) -> None:
    kind, data = record.get("type"), inner(record, "data")
    if kind == "assistant.message":
        into.say(data.get("content"))
    elif kind == "tool.execution_start":
        given = inner(data, "arguments")
        path = given.get("path")
        name = data.get("toolName")
        into.tool(name, given.get("command") or path, path if name in ("create", "edit", "str_replace") else None)
    elif kind == "tool.execution_complete":
        if data.get("success") is False:
            into.tool_failed()
            if inner(data, "error").get("code") == "denied":
                into.deny(data.get("toolName") or "tool")
    elif kind == "model.call_failure":
        into.retry(data.get("statusCode"), data.get("errorMessage"))
        into.status = status if isinstance(status := data.get("statusCode"), int) else into.status
        into.message = str(data.get("errorMessage") or "")
    elif kind == "model.call_final_result" and data.get("result") != "success":
        into.fail(into.message or data.get("result"), data.get("result"), into.status)
    elif kind == "session.error":
        into.fail(data.get("message"), data.get("errorType"), data.get("statusCode"))
    elif kind == "result":
        into.ended = True
        into.session = str(record.get("sessionId") or "")
        if not into.error:
            into.message, into.status = "", None
