"""Reads claude's stream-json and json output, which qwen prints too."""

import json
import re
from collections.abc import Mapping, Sequence

from rooda.agents.clis import qwen
from rooda.agents.command import has_option, option_value
from rooda.agents.gathered import Gathered, inner, listed, money, number
from rooda.agents.reader import Reader, RequiredOption, SessionFiles
from rooda.agents.records import Usage
from rooda.base.json import Json

EDITING = ("Write", "Edit", "MultiEdit", "NotebookEdit", "write_file", "edit", "replace", "write", "search_replace")
KINDS = ("system", "assistant", "user", "result", "rate_limit_event", "stream_event", "tool_progress")
_CANCELLED = re.compile(r"User cancelled the execution for tool `(\w+)`")
OF_A_MODEL = (  # in the order of Usage
    ("inputTokens", "input_tokens"),
    ("outputTokens", "output_tokens"),
    ("cacheReadInputTokens", "cache_read_input_tokens"),
    ("cacheCreationInputTokens", "cache_creation_input_tokens"),
)


def take(record: Json, into: Gathered) -> None:
    kind = record.get("type")
    if kind == "system":
        _system(record, into)
    elif kind == "assistant":
        message = inner(record, "message")
        if usage := inner(message, "usage"):
            into.answers[str(message.get("id"))] = sum(number(usage, *keys) for keys in OF_A_MODEL)
        for part in listed(message, "content"):
            _part(part, into)
    elif kind == "user":
        for part in listed(inner(record, "message"), "content"):
            if part.get("type") == "tool_result" and part.get("is_error"):
                into.tool_failed()
                into.memory["cancelled"] = _CANCELLED.findall(str(part.get("content")))
    elif kind == "rate_limit_event":
        _limit(inner(record, "rate_limit_info"), into)
    elif kind == "result":
        _result(record, into)


def _system(record: Json, into: Gathered) -> None:
    subtype = record.get("subtype")
    if subtype == "init":
        into.session, into.model = str(record.get("session_id") or ""), str(record.get("model") or "")
    elif subtype == "api_retry":
        into.retry(record.get("error_status"), record.get("error"))


def _part(part: Json, into: Gathered) -> None:
    if part.get("type") == "text":
        into.add_message(part.get("text"))
    elif part.get("type") == "tool_use":
        given = inner(part, "input")
        path = given.get("file_path") or given.get("notebook_path")
        about = given.get("command") or path or given.get("description") or given.get("pattern")
        into.add_tool_call(part.get("name"), about, path if part.get("name") in EDITING else None)


def _limit(info: Json, into: Gathered) -> None:
    """Record a rejected call as a usage limit if the event names the limit's type or reset, else as a throttle."""
    if info.get("status") == "rejected" and (info.get("rateLimitType") or info.get("resetsAt")):
        into.limit(info.get("resetsAt"))


def _result(record: Json, into: Gathered) -> None:
    """Record a result. A later one replaces an earlier one, since each has the totals of the process so far."""
    into.ended = True
    into.final = _answer(record, into.final)
    into.cost = money(record.get("total_cost_usd"))
    into.turns = number(record, "num_turns")
    into.denied = [str(denial.get("tool_name")) for denial in listed(record, "permission_denials")]
    into.usage = _usage(record, into)
    into.error = into.message = ""
    into.status = None
    if record.get("stop_reason") == "cancelled" and into.memory.get("cancelled"):  # so grok ends at a denied tool
        into.ended, into.denied = False, into.memory["cancelled"]
    elif not record.get("is_error"):
        into.limited, into.reset_at = False, None  # the rejected call was repeated, charged as extra usage
    else:
        words = record.get("result") or _error_words(record) or record.get("subtype")
        reason = record.get("terminal_reason")
        kind = record.get("api_error") or (reason if reason != "api_error" else None) or record.get("api_error_type")
        into.fail(words, kind or record.get("subtype"), record.get("api_error_status"))
        if record.get("api_error") == "usage_limit_reached":
            into.limit(None)


def _error_words(record: Json) -> str:
    """Return the error messages of a result without text, joined.

    They are a string, an object with a message, or a list of these.
    """
    found, texts = record.get("errors") or [record.get("error")], []
    for each in found if isinstance(found, list) else [found]:
        text = each.get("message") if isinstance(each, dict) else each
        texts += [text] if isinstance(text, str) and text else []
    return "; ".join(texts)


def _answer(record: Json, said: str) -> str:
    """Return the structured output if a schema was given, else the result text, else `said`."""
    made = record.get("structured_output")
    if made is not None:
        return made if isinstance(made, str) else json.dumps(made, ensure_ascii=False)
    return text if isinstance(text := record.get("result"), str) else said


def _usage(record: Json, into: Gathered) -> Usage | None:
    models = record.get("modelUsage")
    if isinstance(models, dict) and models:
        shares = {str(model): Usage(*(number(each, *keys) for keys in OF_A_MODEL)) for model, each in models.items()}
        total = Usage(*map(sum, zip(*shares.values(), strict=True)))
        if any(total):
            into.shares = shares
            return total
    usage = inner(record, "usage")
    if not usage:
        return None
    fresh, cached = number(usage, "input_tokens"), number(usage, "cache_read_input_tokens")
    if "total_tokens" in usage:  # qwen counts cached tokens as input too
        fresh -= min(cached, fresh)
    return Usage(fresh, number(usage, "output_tokens"), cached, number(usage, "cache_creation_input_tokens"))


def _session(record: Json, into: Gathered) -> None:
    """Add an answer's usage. If several records have the same ID, the last has the usage of all parts."""
    message = inner(record, "message")
    usage = inner(message, "usage")
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    if record.get("type") == "assistant" and usage:
        into.add_answer(message.get("id"), message.get("model"), Usage(*(number(usage, name) for name in names)))


def _refusal(argv: Sequence[str], env: Mapping[str, str], root: bool) -> tuple[str, str]:
    if root and _skips_permissions(argv) and env.get("IS_SANDBOX") != "1":
        return (
            "claude refuses to skip permissions as root; nothing was started",
            "In a container that serves as a sandbox, set IS_SANDBOX=1 in the environment. Otherwise run rooda as\n"
            "another user, or give [agents.claude] a command with --permission-mode acceptEdits.",
        )
    return "", ""


def _skips_permissions(argv: Sequence[str]) -> bool:
    return "--dangerously-skip-permissions" in argv or option_value(argv, "--permission-mode") == "bypassPermissions"


def _warnings(argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
    if option_value(argv, "--output-format") != "stream-json" or has_option(argv, "--verbose"):
        return []
    return ["claude exits with 1 if --output-format stream-json is used without --verbose."]


READER = Reader(
    record=take,
    kinds=KINDS,
    last=("result",),
    tells_edits=True,
    sessions=(
        SessionFiles(
            home=("CLAUDE_CONFIG_DIR", ""),
            folder=".claude",
            place=("projects", "*", "{session}.jsonl"),
            markers=(b'"usage"',),
            take=_session,
        ),
        qwen.SESSIONS,
    ),
    powerless=RequiredOption(
        ("--dangerously-skip-permissions", "--permission-mode", "--allowedTools", "--allowed-tools", "--tools"),
        "claude denies every tool that changes something",
        "--dangerously-skip-permissions, or --permission-mode acceptEdits",
    ),
    refusal=_refusal,
    warnings=_warnings,
    telemetry={  # code.claude.com/docs/en/monitoring-usage; `claude -p` also reads TRACEPARENT. Prompts are left out
        "CLAUDE_CODE_ENABLE_TELEMETRY": "1",
        "CLAUDE_CODE_ENHANCED_TELEMETRY_BETA": "1",
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_METRICS_EXPORTER": "otlp",
        "OTEL_LOGS_EXPORTER": "otlp",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "{endpoint}",
    },
)
