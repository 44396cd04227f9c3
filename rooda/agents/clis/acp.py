"""Reads the transcript that rooda's client of the Agent Client Protocol writes (`rooda/agents/acp/`)."""

import re
from typing import Any

from rooda.agents.error_text import Kind, kind_of
from rooda.agents.gathered import Gathered, inner, listed, money, number
from rooda.agents.reader import Reader
from rooda.agents.records import Usage
from rooda.base.json import Json, loads

LAST_REQUEST = ("goose", "kilo", "opencode")  # agents that report the usage of their last request only
EDITING = ("edit", "delete", "move")
LONGEST_ERROR = 2_000  # characters; a longer final message is an answer


def take(record: Json, into: Gathered) -> None:
    kind = record.get("type")
    if kind == "init":
        into.session, into.model = str(record.get("session") or ""), str(record.get("model") or "")
        into.memory["program"] = record.get("program")
    elif kind == "update":
        _update(inner(record, "update"), into)
    elif kind == "permission" and not record.get("allowed"):
        into.deny(record.get("title") or record.get("kind"))
    elif kind == "text":
        into.unparsed(str(record.get("text")).encode())
    elif kind == "result":
        _result(record, into)
    elif kind == "error":
        into.ended = True
        _show_rest(into)
        _error(record, into)


def _update(update: Json, into: Gathered) -> None:
    kind = update.get("sessionUpdate")
    if kind == "agent_message_chunk":
        _message(inner(update, "content").get("text"), update.get("messageId"), into)
    elif kind in ("tool_call", "tool_call_update"):
        _tool(update, into)
    elif kind == "usage_update" and str(inner(update, "cost").get("currency") or "USD") == "USD":
        into.cost = money(inner(update, "cost").get("amount")) if update.get("cost") else into.cost


def _message(text: Any, name: Any, into: Gathered) -> None:
    """Add a piece of a message. A tool call, or a piece with another message ID, ends the message before it."""
    if not isinstance(text, str) or not text:
        return
    if _RETRYING.fullmatch(text):
        into.retry("", text.strip())
        return
    into.retry_succeeded()
    if into.memory.get("message") != (name, into.tools):
        _show_rest(into)
        into.memory["message"] = (name, into.tools)
        into.final = text
    else:
        into.continue_message(text)
    *lines, into.memory["line"] = (into.memory.get("line", "") + text).split("\n")
    into.shown.extend(lines)


def _show_rest(into: Gathered) -> None:
    if rest := into.memory.pop("line", ""):
        into.shown.append(rest)


def _tool(update: Json, into: Gathered) -> None:
    """Record a tool call if it is new, its failure if it failed, and the files that it edited if it is completed."""
    known = into.memory.setdefault(f"tool {update.get('toolCallId')}", {})
    new = not known
    known.update({key: update[key] for key in ("title", "kind", "status", "locations", "content") if update.get(key)})
    if new:
        _show_rest(into)
        into.add_tool_call(known.get("kind") or "tool", known.get("title"))
    if update.get("status") == "failed":
        into.tool_failed()
    if update.get("status") == "completed":
        changed = [part for part in listed(known, "content") if part.get("type") == "diff"]
        changed = changed or (listed(known, "locations") if known.get("kind") in EDITING else [])
        for path in {part["path"]: 1 for part in changed if isinstance(part.get("path"), str)}:
            into.edited[path] = into.edited.get(path, 0) + 1


def _result(record: Json, into: Gathered) -> None:
    """Record the end of the turn. Several agents end a failed turn normally, with the error as their last message."""
    into.ended = True
    _show_rest(into)
    _usage(record, into)
    reason = record.get("stopReason")
    if record.get("cancelled"):
        return
    if reason == "cancelled" and into.denied:  # some agents end a turn this way after a denied tool call
        into.ended = False
    elif reason != "end_turn":
        into.fail(f"the agent ended its turn with {reason}", f"stop_{reason}")
    elif is_error(into.final):
        into.fail(into.final.strip())
    elif not into.final.strip() and not into.tools:
        into.fail("the agent ended its turn without a message")


# How goose, copilot, kimi and omp begin an error: _ERROR is certain, a text with _PREFIX may also be an answer.
_ERROR = re.compile(
    r"Compacting conversation context….*Compaction cancelled\.\s*$"
    r"|Ran into this error: |Unable to continue: |[45]\d\d .+\n.*\(type=\w+ param=\w+\)"
)
_PREFIX = re.compile(r"(?:\w+ )?error: |(?:execution|request|authentication|api call) failed: |[45]\d\d [{\"]", re.I)
_STATUS = re.compile(r"\b[45]\d\d\b")
_RETRYING = re.compile(r"Info: .*\bretrying\.\.\.\s*", re.I)  # sent by copilot itself, not by its model


def is_error(text: str) -> bool:
    """True if a final message is an error of the CLI or its service, not an answer of the model that quotes one."""
    text = text.strip()
    if len(text) > LONGEST_ERROR or _ERROR.match(text) or not _PREFIX.match(text):
        return bool(_ERROR.match(text))
    first = text.partition("\n\n")[0]
    return kind_of(first) is not Kind.UNKNOWN or bool(_STATUS.search(first))


def _error(record: Json, into: Gathered) -> None:
    """Record the agent's error. The form of the details in `data` differs from agent to agent."""
    error = inner(record, "error")
    data, message, code = error.get("data"), str(error.get("message") or ""), error.get("code")
    found = data if isinstance(data, dict) else {"message": data}
    details = [found.get(key) for key in ("details", "message", "error", "detail")]
    words = [each for each in details if isinstance(each, str) and each not in message]
    text = _plain(": ".join([message, *words[:1]]).strip(": "))
    kind = next((found[key] for key in ("errorKind", "errorName", "type") if isinstance(found.get(key), str)), "")
    statuses = [code, *(found.get(key) for key in ("status", "statusCode", "httpStatus", "code"))]
    status = next((each for each in statuses if type(each) is int and 400 <= each < 600), None)
    if status == 500 and kind_of(text) is Kind.CONFIG:
        status = None  # gemini also sends 500 for errors of another status
    into.fail(text, "aborted" if record.get("cancelled") else kind, status)


def _plain(message: str) -> str:
    """Return the message of an error; gemini sends the JSON of its service's response in place of a message."""
    try:
        found = loads(message) if message.startswith("{") else None
    except ValueError:
        return message
    return str(inner(found, "error").get("message") or message)


def _usage(record: Json, into: Gathered) -> None:
    """Record the tokens of the turn; agents report them in one of three places."""
    meta = inner(record, "_meta")
    models = listed(inner(meta, "quota"), "model_usage")
    shares = {str(each.get("model") or ""): _tokens(inner(each, "token_count") or each) for each in models}
    usage = inner(record, "usage") or inner(meta, "usage") or inner(meta, "quota", "token_count")
    if not usage or into.memory.get("program") in LAST_REQUEST:
        return
    found = _tokens(usage)
    if any(found):
        into.usage = found
    if len(shares) > 1 and Usage(*map(sum, zip(*shares.values(), strict=True))) == found:
        into.shares = shares
    if into.model in ("", "auto", "default") and len(shares) == 1:
        into.model = next(iter(shares))


def _tokens(usage: Json) -> Usage:
    """Return the tokens. The total shows whether the input count includes cached tokens; if so, subtract them."""
    fresh = number(usage, "inputTokens", "input_tokens", "promptTokens")
    output = number(usage, "outputTokens", "output_tokens", "completionTokens")
    cached = number(usage, "cachedReadTokens", "cached_read_tokens", "cacheReadTokens", "cachedInputTokens")
    written = number(usage, "cachedWriteTokens", "cached_write_tokens", "cacheWriteTokens")
    thought = number(usage, "thoughtTokens", "thought_tokens")
    total = number(usage, "totalTokens", "total_tokens")
    if total == fresh + output + thought and total != fresh + output + cached + written:
        fresh = max(0, fresh - cached - written)
    if thought and total in (fresh + output + thought, fresh + output + thought + cached + written):
        output += thought
    return Usage(fresh, output, cached, written)


READER = Reader(record=take, last=("result", "error"))
