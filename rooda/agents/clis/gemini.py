"""Reads gemini's stream-json and json output."""

import re
from collections.abc import Mapping, Sequence

from rooda.agents.command import has_option
from rooda.agents.gathered import Gathered, inner, number
from rooda.agents.reader import Reader, RequiredOption, SessionFiles
from rooda.agents.records import Usage
from rooda.base.json import Json

EDITING = ("write_file", "replace", "edit")
CHANGING = (*EDITING, "run_shell_command")  # tools that are missing without --yolo
_AGAIN = re.compile(r"^Attempt \d+ failed(?: with status (\d{3}))?[.:]")


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
        into.add_tool_call(name, given.get("command") or path, path if name in EDITING else None)
        into.final = ""
        into.memory[str(record.get("tool_id"))] = name
    elif kind == "tool_result" and record.get("status") == "error":
        _refused(record, into)
    elif kind == "error" and record.get("severity") == "error":
        into.fail(record.get("message"))
    elif kind == "result":
        _result(record, into)
    elif kind is None and "response" in record:
        into.ended = True
        into.add_message(record.get("response"))
        _models(inner(inner(record, "stats"), "models"), into)
    elif kind is None and "error" in record:
        error = inner(record, "error")
        into.fail(error.get("message"), str(error.get("type") or ""), error.get("code"))


def unparsed(text: str, into: Gathered) -> None:
    """Record a retry and its reason, which gemini reports only on stderr."""
    if again := _AGAIN.match(text):
        into.retry(int(again[1]) if again[1] else "", text)


def _refused(record: Json, into: Gathered) -> None:
    into.tool_failed()
    name = into.memory.get(str(record.get("tool_id")))
    if inner(record, "error").get("type") == "tool_not_registered" and name in CHANGING:
        into.deny(name)


def _message(record: Json, into: Gathered) -> None:
    """Record a message; consecutive pieces form one message, which a tool call ends."""
    text = record.get("content")
    if isinstance(text, str):
        into.retry_succeeded()
        if record.get("delta"):
            into.continue_message(text)
        else:
            into.final = text
        into.shown.append(text)


def _result(record: Json, into: Gathered) -> None:
    into.ended = True
    stats = inner(record, "stats")
    if stats:
        into.usage = _usage(stats)
        into.shares = {str(model): _usage(each) for model, each in inner(stats, "models").items()}
    if record.get("status") == "error":
        error = inner(record, "error")
        into.fail(error.get("message"), str(error.get("type") or ""))


def _models(models: Json, into: Gathered) -> None:
    """Record the usage per model in json output, which has other keys than stream-json."""
    found = {str(model): _tokens(inner(each, "tokens")) for model, each in models.items() if isinstance(each, dict)}
    if found:
        into.shares = found
        into.usage = Usage(*(sum(part) for part in zip(*found.values(), strict=True)))
        into.model = into.model or next(iter(found))


def _tokens(found: Json) -> Usage:
    cached = number(found, "cached")
    output = number(found, "candidates") + number(found, "thoughts")
    return Usage(max(0, number(found, "prompt") + number(found, "tool") - cached), output, cached, 0)


def _usage(stats: Json) -> Usage:
    cached = number(stats, "cached")
    fresh = number(stats, "input") if "input" in stats else max(0, number(stats, "input_tokens") - cached)
    return Usage(fresh, number(stats, "output_tokens"), cached, 0)


def _session(record: Json, into: Gathered) -> None:
    """Add an answer's usage; gemini writes the answer again after its tools have run."""
    tokens = inner(record, "tokens")
    if record.get("type") == "gemini" and tokens:
        cached, out = number(tokens, "cached"), number(tokens, "output") + number(tokens, "thoughts")
        usage = Usage(max(0, number(tokens, "input") - cached), out, cached, 0)
        into.add_answer(record.get("id"), record.get("model"), usage)


def _warnings(argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
    if has_option(argv, "--skip-trust") or env.get("GEMINI_CLI_TRUST_WORKSPACE") == "true":
        return []
    return ["gemini ends with exit 55 in a folder that it does not trust. Add --skip-trust to its command."]


READER = Reader(
    record=take,
    kinds=("", "init", "message", "tool_use", "tool_result", "error", "result"),
    unparsed=unparsed,
    last=("result",),
    status_of_exit={41: 401, 144: 400, 145: 401, 147: 403, 148: 404, 173: 429, 244: 500, 247: 503},
    sessions=(
        SessionFiles(
            home=("GEMINI_CLI_HOME", ".gemini"),
            folder=".gemini",
            place=("tmp", "*", "chats", "session-*-{short}.jsonl"),
            markers=(b'"tokens"',),
            take=_session,
        ),
    ),
    powerless=RequiredOption(
        ("--yolo", "-y", "--approval-mode"),
        "gemini gets no tools to write files or run commands",
        "--yolo",
    ),
    warnings=_warnings,
    telemetry={  # docs/cli/telemetry.md of gemini-cli; 0.61.0 does not read TRACEPARENT, and logs prompts by default
        "GEMINI_TELEMETRY_ENABLED": "true",
        "GEMINI_TELEMETRY_TARGET": "local",
        "GEMINI_TELEMETRY_OTLP_ENDPOINT": "{endpoint}",
        "GEMINI_TELEMETRY_OTLP_PROTOCOL": "http",
        "GEMINI_TELEMETRY_LOG_PROMPTS": "false",
    },
)
