"""Converts frozen records to plain JSON values and back. Values of a wrong type are rejected, not converted."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

Record = TypeVar("Record")
LARGEST_FLOAT = 1e300  # largest absolute value of a float; infinity and NaN are invalid too


class Mismatch(ValueError):
    """Raised when JSON does not have the record's shape."""


def parse_object(data: bytes) -> dict[str, Any]:
    """Parse bytes as one JSON object; raises Mismatch if they are anything else."""
    try:
        value = loads(data)
    except ValueError as problem:
        raise Mismatch(f"not JSON ({problem})" if data.strip() else "it is empty") from None
    if not isinstance(value, dict):
        raise Mismatch(f"expected one JSON object, found {_kind(value)}")
    return value


def encode(record: Any) -> Any:
    """Convert NamedTuples to dicts and tuples to lists; scalars are unchanged."""
    if hasattr(record, "_asdict"):
        return {key: encode(value) for key, value in record._asdict().items()}
    if isinstance(record, Mapping):
        return {key: encode(value) for key, value in record.items()}
    if isinstance(record, tuple | list):
        return [encode(value) for value in record]
    return record


def decode(kind: type[Record], data: Mapping[str, Any]) -> Record:
    """Build the NamedTuple `kind` from a JSON object. Unknown keys are ignored; missing ones need a default."""
    hints = _hints(kind)  # type: ignore[arg-type]
    defaults: Mapping[str, Any] = getattr(kind, "_field_defaults", {})
    values = {}
    for key, hint in hints.items():
        if key in data:
            values[key] = _value(hint, data[key], key)
        elif key not in defaults:
            raise Mismatch(f"key {key!r} is missing")
    return kind(**values)


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _value(hint: Any, value: Any, where: str) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is tuple:
        if not isinstance(value, list):
            raise Mismatch(f"{where} must be a list, found {_kind(value)}")
        return tuple(_value(arguments[0], item, f"{where}[{index}]") for index, item in enumerate(value))
    if type(None) in arguments:
        return None if value is None else _value(next(a for a in arguments if a is not type(None)), value, where)
    if hasattr(hint, "_fields"):
        if not isinstance(value, dict):
            raise Mismatch(f"{where} must be an object, found {_kind(value)}")
        return decode(hint, value)
    return _scalar(hint, value, where)


def _scalar(hint: Any, value: Any, where: str) -> Any:
    if hint is float and type(value) in (int, float) and abs(value) <= LARGEST_FLOAT:
        return float(value)
    if hint is Any or (hint is not float and isinstance(value, hint) and (hint is bool or not isinstance(value, bool))):
        return value
    names = {int: "a whole number", str: "a string", bool: "true or false", float: "a number"}
    raise Mismatch(f"{where} must be {names.get(hint, hint)}, found {_kind(value)}")


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    number = "a number"
    kinds = {bool: "true or false", int: number, float: number, str: "a string", list: "a list", dict: "an object"}
    return kinds.get(type(value), type(value).__name__)


# Untrusted JSON may be nested so deeply that recursive code fails.
MAX_DEPTH = 100
Json: TypeAlias = dict[str, Any]  # a JSON object


def loads(data: bytes | str, read: Callable[[Any], Any] = json.loads) -> Any:
    """Parse JSON. Raises ValueError if it is invalid or nested too deeply."""
    try:
        value = read(data)
    except RecursionError:
        raise ValueError(f"nested more than {MAX_DEPTH} deep") from None
    if too_deep(data, value):
        raise ValueError(f"nested more than {MAX_DEPTH} deep")
    return value


def too_deep(data: bytes | str, value: Any) -> bool:
    """True if a parsed value is nested more than MAX_DEPTH deep. Searches it only if `data` has enough brackets."""
    opened = data.count("[") + data.count("{") if isinstance(data, str) else data.count(b"[") + data.count(b"{")
    if opened <= MAX_DEPTH:
        return False
    level = [value]
    for _ in range(MAX_DEPTH):
        inner = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level = [each for values in inner for each in values if isinstance(each, dict | list)]
    return bool(level)


# Finding JSON objects inside other text. The effort is limited, since an agent's answer may be anything.
MAX_EFFORT = 50_000_000  # characters searched without success
COST_PER_BRACE = 1000  # added for each brace that does not start an object


def find_objects(text: str, decoder: json.JSONDecoder) -> Iterator[Json]:
    """Yield each outermost JSON object in the text, in order."""
    effort, place = 0, text.find("{")
    while place >= 0 and effort < MAX_EFFORT:
        try:
            value, after = decoder.raw_decode(text, place)
            if not too_deep(text[place:after], value):
                yield value
        except (ValueError, RecursionError) as problem:
            after = place + 1
            effort += COST_PER_BRACE + place // 100 + getattr(problem, "pos", place + 50 * COST_PER_BRACE) - place
        place = text.find("{", after)
