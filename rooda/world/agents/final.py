"""The agent's own final message, line by line, out of what its CLI printed."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from rooda.world import files

LONGEST_RECORD = 4_194_304  # of a longer line only the beginning is read


def final_lines(output: str, path: str, limit: int) -> Iterator[bytes]:
    """Lines of the final message in the last `limit` bytes of the transcript."""
    reader = _READERS.get(output)
    if reader is None:
        return files.lines(path, limit)
    message = ""
    for record in _records(path, limit):
        message = reader(record, message)
    return iter(message.encode("utf-8", "replace").split(b"\n"))


def ender(output: str, path: str) -> Callable[[], bool] | None:
    """Says whether the last record of the transcript is the CLI's final one; None where there is no such record."""
    kinds = _LAST.get(output)
    if kinds is None:
        return None

    def ended() -> bool:
        try:
            last = files.tail(path, LONGEST_RECORD).rstrip().rpartition(b"\n")[2]
            record = json.loads(last)
        except (OSError, ValueError, RecursionError):
            return False
        return isinstance(record, dict) and record.get("type") in kinds and not record.get("is_error")

    return ended


def _records(path: str, limit: int) -> Iterator[dict[str, Any]]:
    for line in files.lines(path, limit, LONGEST_RECORD):
        if line.lstrip()[:1] == b"{":
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict):
                yield record


def _claude(record: dict[str, Any], message: str) -> str:
    return _text(record.get("result"), message) if record.get("type") == "result" else message


def _codex(record: dict[str, Any], message: str) -> str:
    item = record.get("item")
    if record.get("type") == "item.completed" and isinstance(item, dict) and item.get("type") == "agent_message":
        return _text(item.get("text"), message)
    return message


def _gemini(record: dict[str, Any], message: str) -> str:
    if record.get("type") in ("tool_use", "tool_result"):
        return ""
    if record.get("type") == "message" and record.get("role") == "assistant":
        part = _text(record.get("content"), "")
        return message + part if record.get("delta") else part
    return message


def _opencode(record: dict[str, Any], message: str) -> str:
    part = record.get("part")
    return _text(part.get("text"), message) if record.get("type") == "text" and isinstance(part, dict) else message


def _copilot(record: dict[str, Any], message: str) -> str:
    data = record.get("data")
    if record.get("type") == "assistant.message" and isinstance(data, dict):
        return _text(data.get("content"), message)
    return message


def _droid(record: dict[str, Any], message: str) -> str:
    return _text(record.get("finalText"), message) if record.get("type") == "completion" else _claude(record, message)


def _pi(record: dict[str, Any], message: str) -> str:
    said = record.get("message")
    if not isinstance(said, dict) or said.get("role") != "assistant" or not isinstance(said.get("content"), list):
        return message
    return "".join(_text(part.get("text"), "") for part in said["content"] if isinstance(part, dict)) or message


def _text(value: Any, otherwise: str) -> str:
    return value if isinstance(value, str) else otherwise


_LAST = {"claude": ("result",), "codex": ("turn.completed",), "gemini": ("result",), "droid": ("completion",)}

_READERS: dict[str, Callable[[dict[str, Any], str], str]] = {
    "claude": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "opencode": _opencode,
    "copilot": _copilot,
    "droid": _droid,
    "pi": _pi,
}
