"""Reads the output of `droid exec -o stream-json`; with -o json, droid prints one object like claude's."""

from rooda.agents.clis import claude
from rooda.agents.gathered import Gathered, inner, number
from rooda.agents.reader import Reader
from rooda.agents.records import Usage
from rooda.base.json import Json

EDITING = ("Create", "Edit", "MultiEdit", "ApplyPatch")


def take(record: Json, into: Gathered) -> None:
    kind = record.get("type")
    if kind == "system":
        into.session, into.model = str(record.get("session_id") or ""), str(record.get("model") or "")
    elif kind == "message" and record.get("role") == "assistant":
        into.add_message(record.get("text"))
    elif kind == "tool_call":
        given, name = inner(record, "parameters"), record.get("toolName") or record.get("toolId")
        path = given.get("file_path")
        into.add_tool_call(name, given.get("command") or path, path if name in EDITING else None)
        into.memory[str(record.get("id"))] = name
    elif kind == "tool_result" and record.get("isError"):
        into.tool_failed()
        if "insufficient permission" in str(inner(record, "error").get("message")):
            into.deny(into.memory.get(str(record.get("id"))) or "tool")
    elif kind == "completion":
        _completion(record, into)
    elif kind == "error" and not (
        into.error and record.get("source") == "cli"
    ):  # the CLI's own closing error says less than the one before it
        into.fail(record.get("message"), record.get("source"))
    elif kind == "result":
        claude.take(record, into)


def _completion(record: Json, into: Gathered) -> None:
    into.ended = True
    into.session = into.session or str(record.get("session_id") or "")
    into.turns = number(record, "numTurns")
    into.final = text if isinstance(text := record.get("finalText"), str) else into.final
    usage = inner(record, "usage")
    if usage:
        cached, written = number(usage, "cache_read_input_tokens"), number(usage, "cache_creation_input_tokens")
        into.usage = Usage(number(usage, "input_tokens"), number(usage, "output_tokens"), cached, written)


READER = Reader(
    record=take,
    kinds=("system", "message", "reasoning", "tool_call", "tool_result", "completion", "error", "result"),
    last=("completion",),
)
