"""What an agent answered: out of the envelope its CLI may have put around it, and the JSON in it."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from rooda.base.json import loads, objects

_FENCE = re.compile(r"^[ \t]*+```[ \t]*+(?:json[ \t]*+)?\n(.*?)^[ \t]*+```", re.MULTILINE | re.DOTALL | re.IGNORECASE)
_DECODER = json.JSONDecoder()


class Answer(NamedTuple):
    """The words themselves, and what the envelope says of their price."""

    text: str
    cost: float | None = None
    failed: bool = False


def unwrapped(text: str) -> Answer:
    """A raw command may be one of the known CLIs: claude's `result`, codex's last message, gemini's `response`."""
    words: str | None = None
    cost: float | None = None
    failed = False
    for record in _records(text):
        words = said if (said := _words(record)) is not None else words
        cost = dollars if (dollars := _dollars(record.get("total_cost_usd"))) is not None else cost
        failed = record["is_error"] is True if "is_error" in record else failed
    return Answer(text if words is None else words, cost, failed)


def _words(record: dict[str, Any]) -> str | None:
    item = record.get("item")
    if isinstance(item, dict) and item.get("type") == "agent_message":
        return str(item.get("text") or "")
    for key in ("result", "response"):
        if isinstance(record.get(key), str) and ({"type", "total_cost_usd", "stats", "is_error"} & set(record)):
            return str(record[key])
    return None


def _records(text: str) -> Iterator[dict[str, Any]]:
    """The whole text as one object, else each line that is one."""
    if (whole := _object(text)) is not None:
        yield whole
        return
    for line in text.splitlines():
        if line.lstrip().startswith("{") and (record := _object(line)) is not None:
            yield record


def _object(text: str) -> dict[str, Any] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _dollars(value: Any) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9
    return float(value) if number else None


def found(text: str) -> dict[str, Any] | None:
    """The one JSON object that was asked for: all of the text, its last fenced block, or its last balanced object."""
    if (whole := _object(text)) is not None:
        return whole
    for block in reversed(_FENCE.findall(text)):
        if (inside := _object(block)) is not None:
            return inside
    return next(reversed([*objects(text, _DECODER)]), None)
