"""Reads the output of `pi --mode json`, in which each assistant message has its own usage."""

from rooda.agents.gathered import Gathered, inner, listed, money, number
from rooda.agents.reader import Reader
from rooda.agents.records import Usage
from rooda.base.json import Json


def take(record: Json, into: Gathered) -> None:
    kind = record.get("type")
    if kind == "session":
        into.session = str(record.get("id") or "")
    elif kind == "message_end" and inner(record, "message").get("role") == "assistant":
        _message(inner(record, "message"), into)
    elif kind == "tool_execution_start":
        given, name = inner(record, "args"), record.get("toolName")
        path = given.get("path")
        into.add_tool_call(name, given.get("command") or path, path if name in ("write", "edit") else None)
    elif kind == "tool_execution_end" and record.get("isError"):
        into.tool_failed()
    elif kind == "auto_retry_start":
        into.retry("", record.get("errorMessage"))
    elif kind == "agent_end":
        into.ended = True


def _message(message: Json, into: Gathered) -> None:
    if message.get("stopReason") == "aborted" and into.waiting[0]:  # by a signal, while it waited to try again
        return
    into.turns += 1
    into.model = str(message.get("model") or into.model)
    into.add_message(
        "".join(str(part.get("text") or "") for part in listed(message, "content") if part.get("type") == "text")
    )
    usage = inner(message, "usage")
    if usage:
        into.add_usage(Usage(*(number(usage, key) for key in ("input", "output", "cacheRead", "cacheWrite"))))
    cost = money(inner(usage, "cost").get("total"))
    if cost is not None:
        into.cost = (into.cost or 0.0) + cost
    into.error = into.message = ""
    if message.get("stopReason") in ("error", "aborted"):
        into.fail(message.get("errorMessage") or message.get("stopReason"), message.get("stopReason"))


KINDS = (
    *("session", "agent_start", "agent_end", "turn_start", "turn_end", "message_start", "message_update"),
    *("message_end", "tool_execution_start", "tool_execution_update", "tool_execution_end"),
    *("auto_retry_start", "auto_retry_end", "compaction_start", "compaction_end", "advisor_cost_changed"),
    *("auto_compaction_start", "auto_compaction_end", "notice"),
)
READER = Reader(record=take, kinds=KINDS)
