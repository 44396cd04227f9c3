"""Reads qwen's session files. qwen prints claude's records, so its settings have `output = "claude"`."""

from rooda.agents.gathered import Gathered, inner, number
from rooda.agents.reader import Reader, SessionFiles
from rooda.agents.records import Usage
from rooda.base.json import Json


def _session(record: Json, into: Gathered) -> None:
    usage = inner(record, "usageMetadata")
    if record.get("type") == "assistant" and usage:
        cached, out = number(usage, "cachedContentTokenCount"), number(usage, "candidatesTokenCount")
        fresh = max(0, number(usage, "promptTokenCount") - cached)
        into.add_answer(record.get("uuid"), record.get("model"), Usage(fresh, out, cached, 0))


SESSIONS = SessionFiles(
    home=("QWEN_HOME", ""),
    folder=".qwen",
    place=("projects", "*", "chats", "{session}.jsonl"),
    markers=(b'"usageMetadata"',),
    take=_session,
)
READER = Reader(
    sessions=(SESSIONS,),
    shell=("run_shell_command",),
    telemetry={  # strings of qwen 0.24.4; it reads TRACEPARENT
        "QWEN_TELEMETRY_ENABLED": "true",
        "QWEN_TELEMETRY_TARGET": "local",
        "QWEN_TELEMETRY_OTLP_ENDPOINT": "{endpoint}",
        "QWEN_TELEMETRY_OTLP_PROTOCOL": "http",
        "QWEN_TELEMETRY_LOG_PROMPTS": "false",
    },
)
