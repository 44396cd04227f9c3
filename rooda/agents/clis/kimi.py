"""Reads the output of `kimi --output-format stream-json`, and the token counts from its session files."""

import re

from rooda.agents.gathered import Gathered, inner, listed, number
from rooda.agents.reader import Reader, SessionFiles
from rooda.agents.records import Usage
from rooda.base.json import Json, loads

EDITING = ("Write", "Edit", "WriteFile", "StrReplaceFile")
_FAILED = re.compile(r"^error: (?:failed to run prompt: )?(?:([a-z_]+\.[a-z_]+): )?(.*)", re.I)


def take(record: Json, into: Gathered) -> None:
    role, kind = record.get("role"), record.get("type")
    if role == "assistant":
        into.turns += 1
        into.add_message(record.get("content"))
        for call in listed(record, "tool_calls"):
            _call(inner(call, "function"), into)
    elif kind == "turn.step.retrying":
        into.retry(record.get("status_code"), record.get("error_message"))
    elif kind == "session.resume_hint":
        into.ended = True
        into.session = str(record.get("session_id") or "")


def _call(function: Json, into: Gathered) -> None:
    try:
        given = loads(str(function.get("arguments") or "{}"))
    except ValueError:
        given = {}
    given, name = given if isinstance(given, dict) else {}, function.get("name")
    path = given.get("file_path") or given.get("path")
    into.add_tool_call(name, given.get("command") or path, path if name in EDITING else None)


def unparsed(text: str, into: Gathered) -> None:
    """Record an error that kimi prints on stderr, with the kind of error if kimi names it."""
    if failed := _FAILED.match(text):
        status = re.match(r"\d{3}\b", failed[2])
        into.fail(failed[2], failed[1] or "", int(status[0]) if status else None)


def _session(record: Json, into: Gathered) -> None:
    usage = inner(record, "usage")
    if record.get("type") == "usage.record" and usage:
        names = ("inputOther", "output", "inputCacheRead", "inputCacheCreation")
        model = str(record.get("model") or "")
        model = "" if model.startswith("__") else model  # kimi's placeholder for a model set by environment variables
        into.add_share(model, Usage(*(number(usage, name) for name in names)))


READER = Reader(
    record=take,
    unparsed=unparsed,
    kinds=("assistant", "tool", "meta"),
    kind="role",
    sessions=(
        SessionFiles(
            home=("KIMI_CODE_HOME", ""),
            folder=".kimi-code",
            place=("sessions", "*", "{session}", "agents", "*", "wire.jsonl"),
            markers=(b'"usage.record"',),
            take=_session,
        ),
    ),
)
