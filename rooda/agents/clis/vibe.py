"""Reads the output of `vibe -p --output streaming`, and the report that vibe writes to --output-dir when it exits."""

import re

from rooda.agents.gathered import Gathered, inner, listed, money, number
from rooda.agents.reader import Reader, Report
from rooda.agents.records import Usage
from rooda.base.json import Json

_FAILED = re.compile(r"^Error: (.+)")


def take(record: Json, into: Gathered) -> None:
    kind = record.get("type")
    if kind == "message" and record.get("role") == "assistant":
        into.session = str(record.get("sessionId") or into.session)
        into.turns += 1
        into.ended = True
        into.add_message("".join(str(part.get("text") or "") for part in listed(record, "content")))
    elif kind == "effect":
        into.ended = False
        _effect(record, into)


def _effect(record: Json, into: Gathered) -> None:
    detail = inner(record, "detail")
    given, path = inner(detail, "input"), inner(detail, "input").get("filePath")
    edits = path if detail.get("kind") in ("file_write", "file_edit") else None
    into.add_tool_call(str(record.get("title")).rpartition(".")[2], given.get("command") or path, edits)
    state = inner(record, "state")
    if state.get("status") in ("failed", "error", "rejected"):
        into.tool_failed()


def unparsed(text: str, into: Gathered) -> None:
    if failed := _FAILED.match(text):
        into.fail(failed[1])


def _report(record: Json, into: Gathered) -> None:
    into.ended = True
    into.session = str(record.get("session_id") or into.session)
    usage = inner(record, "usage")
    if usage:
        cached = number(usage, "cached_input_tokens")
        fresh = max(0, number(usage, "input_tokens") - cached)
        into.usage = Usage(fresh, number(usage, "output_tokens"), cached)
    into.cost = money(record.get("cost_usd"))
    error = record.get("error")
    if error:
        into.fail(error.get("message") if isinstance(error, dict) else error, record.get("stop_reason"))


READER = Reader(record=take, unparsed=unparsed, kinds=("message", "effect"), report=Report("export.json", _report))
