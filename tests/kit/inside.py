"""The values inside a JSON document: where each is, and the document with one of them replaced."""

import copy
from typing import Any

Path = tuple[Any, ...]


def places(value: Any, path: Path = ()) -> list[Path]:
    """The way to every value inside."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return ([path] if path else []) + [each for key, inner in items for each in places(inner, (*path, key))]


def changed(value: Any, path: Path, new: Any) -> Any:
    """A copy with `new` at that place."""
    if not path:
        return new
    value = copy.deepcopy(value)
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return value
