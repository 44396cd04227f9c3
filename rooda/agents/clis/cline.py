"""Reads the output of `cline --json`."""

from rooda.agents.gathered import Gathered, inner, money, number
from rooda.agents.reader import Reader
from rooda.agents.records import Usage
from rooda.base.json import Json

STATUSES = {"auth": 401, "rate_limit": 429}  # HTTP statuses for cline's error classes


def take(record: Json, into: Gathered) -> None:
    kind = record.get("type")
    if kind == "agent_event":
        _event(inner(record, "event"), into)
    elif kind == "run_result":
        _result(record, into)
    elif kind == "error" and not into.error:
        into.fail(record.get("message"))
    elif kind == "hook_event":
        into.session = into.session or str(record.get("taskId") or "")


def _event(event: Json, into: Gathered) -> None:
    kind, content = event.get("type"), event.get("contentType")
    if kind == "content_end" and content == "text":
        into.add_message(event.get("text"))
    elif kind == "content_start" and content == "tool":
        given = inner(event, "input")
        commands = given.get("commands")
        path = given.get("path") or given.get("file_path")
        into.add_tool_call(event.get("toolName"), commands[0] if isinstance(commands, list) and commands else path)
    elif kind == "content_end" and content == "tool" and inner(event, "output").get("success") is False:
        into.tool_failed()
    elif kind == "usage":
        into.add_usage(_usage(event))
    elif kind == "error":
        name = str(event.get("errorClass") or "")
        message = inner(event, "error").get("message")
        if event.get("recoverable"):
            into.retry(STATUSES.get(name), message)
        else:
            into.fail(message, name, STATUSES.get(name))


def _usage(found: Json) -> Usage:
    cached, written = number(found, "cacheReadTokens"), number(found, "cacheWriteTokens")
    fresh = max(0, number(found, "inputTokens") - cached - written)
    return Usage(fresh, number(found, "outputTokens"), cached, written)


def _result(record: Json, into: Gathered) -> None:
    """Record the end of the run. A cost of 0 counts as unknown: cline reports 0 for models without a known price."""
    into.ended = True
    into.turns = number(record, "iterations")
    into.model = str(inner(record, "model").get("id") or "")
    if usage := inner(record, "usage"):
        into.usage = _usage(usage)
        into.cost = money(usage.get("totalCost")) or None
    if record.get("finishReason") != "completed":
        into.fail(into.message or record.get("text"), str(record.get("finishReason") or ""))
    else:
        into.error = into.message = ""
        into.status = None
        into.add_message(record.get("text"))


READER = Reader(
    record=take,
    kinds=("hook_event", "agent_event", "run_result", "error", "run_start", "session"),
    last=("run_result",),
    shell=("run_commands",),
)
