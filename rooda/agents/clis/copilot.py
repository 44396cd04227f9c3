"""Reads the output of `copilot --output-format json`, and the token counts from its session file."""

from rooda.agents.gathered import Gathered, inner, number
from rooda.agents.reader import Reader, RequiredOption, SessionFiles
from rooda.agents.records import Usage
from rooda.base.json import Json


def take(record: Json, into: Gathered) -> None:
    kind, data = record.get("type"), inner(record, "data")
    if kind == "assistant.message":
        into.add_message(data.get("content"))
    elif kind == "tool.execution_start":
        given = inner(data, "arguments")
        path = given.get("path")
        name = into.memory[str(data.get("toolCallId"))] = data.get("toolName")
        into.add_tool_call(
            name, given.get("command") or path, path if name in ("create", "edit", "str_replace") else None
        )
    elif kind == "tool.execution_complete":
        if data.get("success") is False:
            into.tool_failed()
            if inner(data, "error").get("code") == "denied":
                into.deny(data.get("toolName") or into.memory.get(str(data.get("toolCallId"))) or "tool")
    elif kind == "model.call_failure":
        into.retry(data.get("statusCode"), data.get("errorMessage"))
    elif kind == "model.call_final_result" and data.get("result") != "success":
        message, status = into.waiting
        into.fail(message or data.get("result"), data.get("result"), status)
    elif kind == "session.error":
        into.fail(data.get("message"), data.get("errorType"), data.get("statusCode"))
    elif kind == "result":
        into.ended = True
        into.session = str(record.get("sessionId") or "")


def _session(record: Json, into: Gathered) -> None:
    usage = inner(record, "data", "usage")
    if record.get("type") == "session.usage_record" and usage:
        cached, written = number(usage, "cacheReadTokens"), number(usage, "cacheWriteTokens")
        fresh = max(0, number(usage, "inputTokens") - cached - written)
        into.add_share(str(usage.get("model") or ""), Usage(fresh, number(usage, "outputTokens"), cached, written))


READER = Reader(
    record=take,
    kinds=("session.", "user.", "assistant.", "tool.", "model.", "agent.", "abort", "result"),
    sessions=(
        SessionFiles(
            home=("COPILOT_HOME", ""),
            folder=".copilot",
            place=("session-state", "{session}", "events.jsonl"),
            markers=(b'"session.usage_record"',),
            take=_session,
        ),
    ),
    powerless=RequiredOption(
        ("--allow-all-tools", "--allow-all", "--yolo", "--allow-tool"),
        "copilot denies every tool",
        "--allow-all-tools",
    ),
    shell=("shell",),
)
