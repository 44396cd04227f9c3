"""Reads the output of `codex exec --json`."""

from rooda.agents.gathered import Gathered, inner, listed, number
from rooda.agents.reader import NEWEST, Reader, RequiredOption, SessionFiles
from rooda.agents.records import Usage
from rooda.base.json import Json


def take(record: Json, into: Gathered) -> None:
    kind = record.get("type")
    if kind in ("item.started", "item.completed"):  # codex may exit after a message, without a final record
        into.ended = inner(record, "item").get("type") == "agent_message"
    if kind == "thread.started":
        into.session = str(record.get("thread_id") or "")
    elif kind == "item.completed":
        _item(inner(record, "item"), into)
    elif kind == "error":
        message = record.get("message")
        if isinstance(message, str) and message.startswith("Reconnecting"):
            into.ended = False
            into.retry("", message)
        else:
            into.fail(message)
    elif kind == "turn.failed":
        into.ended = True
        into.fail(inner(record, "error").get("message"))
    elif kind == "turn.completed":
        _completed(inner(record, "usage"), into)


def _item(item: Json, into: Gathered) -> None:
    kind = item.get("type")
    if kind == "agent_message":
        into.add_message(item.get("text"))
    elif kind == "command_execution":
        into.add_tool_call("shell", item.get("command"))
        if item.get("status") == "failed":
            into.tool_failed()
    elif kind == "file_change":
        for change in listed(item, "changes"):
            into.add_tool_call("edit", change.get("path"), change.get("path"))
    elif kind in ("mcp_tool_call", "web_search"):
        into.add_tool_call(kind, item.get("tool") or item.get("query"))


def _completed(usage: Json, into: Gathered) -> None:
    """Record the end of a turn; cached tokens are subtracted from codex's input tokens, which include them."""
    into.ended = True
    into.turns += 1
    into.error = into.message = ""
    if not usage:  # unknown, which is not zero
        return
    cached, written = number(usage, "cached_input_tokens"), number(usage, "cache_write_input_tokens")
    fresh = max(0, number(usage, "input_tokens") - cached - written)
    into.usage = Usage(fresh, number(usage, "output_tokens"), cached, written)


def _session(record: Json, into: Gathered) -> None:
    """Add the usage in a session record. Usage records hold running totals; an earlier record names the model."""
    payload = inner(record, "payload")
    if record.get("type") == "turn_context":
        into.model = str(payload.get("model") or "")
    total = inner(payload, "thread_token_usage") or inner(payload, "info", "total_token_usage")
    if total and into.model:
        cached, written = number(total, "cached_input_tokens"), number(total, "cache_write_input_tokens")
        fresh = max(0, number(total, "input_tokens") - cached - written)
        sums = Usage(fresh, number(total, "output_tokens"), cached, written)
        before = into.usage or Usage()
        into.add_share(into.model, Usage(*(max(0, now - then) for now, then in zip(sums, before, strict=True))))
        into.usage = sums


READER = Reader(
    record=take,
    kinds=("thread.", "turn.", "item.", "error"),
    last=("turn.completed",),
    tells_edits=True,
    sessions=(
        SessionFiles(
            home=("CODEX_HOME", ""),
            folder=".codex",
            place=("sessions", NEWEST, NEWEST, NEWEST, "rollout-*-{session}.jsonl"),
            markers=(b'"turn_context"', b'token_usage"'),
            take=_session,
        ),
    ),
    powerless=RequiredOption(
        ("--dangerously-bypass-approvals-and-sandbox", "--sandbox", "-s", "--approve-for-me", "--profile", "-p", "-c",
         "--config"),
        "codex runs in a read-only sandbox",
        "--dangerously-bypass-approvals-and-sandbox, or --sandbox workspace-write",
    ),
    # developers.openai.com/codex/config-reference, [otel]; it reads TRACEPARENT. Prompts are left out by default
    telemetry_options=(
        "-c", 'otel.trace_exporter={otlp-http={endpoint="{endpoint}/v1/traces",protocol="binary"}}',
    ),
)  # fmt: skip
