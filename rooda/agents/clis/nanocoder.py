"""Reads the output of `nanocoder --plain --json`, one JSON object at the end."""

from rooda.agents.gathered import Gathered, inner, listed, number
from rooda.agents.reader import Reader
from rooda.agents.records import Usage
from rooda.base.json import Json


def take(record: Json, into: Gathered) -> None:
    kind = record.get("kind")
    if not isinstance(kind, str):
        return
    into.ended = True
    for call in listed(record, "toolCalls"):
        given = inner(call, "arguments") or inner(call, "args")
        into.add_tool_call(call.get("name"), given.get("command") or given.get("path"))
        if call.get("error"):
            into.tool_failed()
    for path in record.get("filesChanged") or ():
        if isinstance(path, str):
            into.edited[path] = into.edited.get(path, 0) + 1
    into.add_message(record.get("finalText"))
    usage = inner(record, "usage")
    if usage:
        into.usage = Usage(number(usage, "inputTokens"), number(usage, "outputTokens"))
    if kind == "tool-approval-required":
        into.deny(record.get("toolName") or "tool")
    elif kind != "success":
        into.fail(record.get("error") or record.get("message") or kind, kind)


READER = Reader(
    record=take,
    kinds=("success", "error", "tool-approval-required"),
    kind="kind",
    spread=True,
    shell=("execute_bash",),
)
