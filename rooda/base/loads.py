"""JSON that others may have written: nested no deeper than everything that is done with it can follow."""

import json
from collections.abc import Callable
from typing import Any, TypeAlias

DEEPEST = 100
Json: TypeAlias = dict[str, Any]  # an object


def loads(data: bytes | str, read: Callable[[Any], Any] = json.loads) -> Any:
    """The value; ValueError for what is no JSON, or is nested too deeply."""
    try:
        value = read(data)
    except RecursionError:
        raise ValueError(f"nested more than {DEEPEST} deep") from None
    if too_deep(data, value):
        raise ValueError(f"nested more than {DEEPEST} deep")
    return value


def too_deep(data: bytes | str, value: Any) -> bool:
    """Few texts have so many brackets that it must be looked at."""
    opened = data.count("[") + data.count("{") if isinstance(data, str) else data.count(b"[") + data.count(b"{")
    if opened <= DEEPEST:
        return False
    level = [value]
    for _ in range(DEEPEST):
        inner = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level = [each for values in inner for each in values if isinstance(each, dict | list)]
    return bool(level)
