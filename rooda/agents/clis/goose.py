"""Reads the output of `goose run --output-format stream-json`, which always exits with 0.

goose prints an error of the service as an assistant message without an ID; the model's own messages have IDs.
"""

import re

from rooda.agents.gathered import Gathered, inner, listed, number
from rooda.agents.reader import Reader
from rooda.agents.records import Usage
from rooda.base.json import Json

EDITING = ("write", "edit", "create_file", "edit_file")
_FAILED = re.compile(
    r"\s*(?:Ran into this error: )?(.*)\n\nPlease (?:retry if|resend your message)[^\n]*\s*$"
    r"|\s*(Unable to continue: .*)",
    re.S,
)


def take(record: Json, into: Gathered) -> None:
    kind, message = record.get("type"), inner(record, "message")
    if kind == "message":
        for part in listed(message, "content"):
            _part(part, message, into)
    elif kind == "error":
        into.fail(record.get("error") or record.get("message"))
    elif kind == "complete":
        _complete(record, into)


def _part(part: Json, message: Json, into: Gathered) -> None:
    kind = part.get("type")
    into.memory["last"] = kind
    if kind == "text" and message.get("role") == "assistant":
        _text(str(part.get("text") or ""), message.get("id"), into)
    elif kind == "toolRequest":
        given = inner(part, "toolCall", "value")
        name, arguments = str(given.get("name")), inner(given, "arguments")
        path = arguments.get("path")
        is_edit = name.rpartition("__")[2] in EDITING
        into.add_tool_call(name, arguments.get("command") or path, path if is_edit else None)
    elif kind == "toolResponse" and inner(part, "toolResult").get("status") == "error":
        into.tool_failed()
    elif kind == "systemNotification":
        _notification(str(part.get("msg") or ""), part.get("notificationType"), into)


def _notification(text: str, kind: object, into: Gathered) -> None:
    if kind == "creditsExhausted":
        into.fail(text, "creditsExhausted", 402)
    elif failed := _FAILED.match(text):
        into.fail(failed[1] or failed[2])


def _text(text: str, name: object, into: Gathered) -> None:
    """Record a text of the assistant: an error, or a message, which may arrive in pieces with the same ID."""
    if not name and (failed := _FAILED.match(text)):
        into.fail((failed[1] or failed[2]).strip())
    elif name and into.memory.get("message") == name:
        into.continue_message(text)
    else:
        into.turns += 1
        into.add_message(text)
    into.memory["message"] = name


def _complete(record: Json, into: Gathered) -> None:
    into.ended = into.memory.get("last") != "systemNotification"
    if record.get("input_tokens") is None and not into.memory.get("message") and not into.message:
        into.fail(into.final or "goose ended without an answer")  # the model has not answered
    if record.get("input_tokens") is not None:
        into.usage = Usage(number(record, "input_tokens"), number(record, "output_tokens"))


READER = Reader(record=take, kinds=("message", "notification", "error", "complete"))
