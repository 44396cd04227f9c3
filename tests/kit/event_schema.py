"""Every event that a test made, held against config/events.schema.json: nothing wrong, nothing missing, nothing more.

Readers ignore unknown events and fields. Here one that the schema does not know is an error.
"""

import glob
import json
import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

Json = dict[str, Any]
Test = Callable[[Any], bool]

PATH = Path(__file__).resolve().parents[2] / "config" / "events.schema.json"
KNOWN = {"type", "const", "enum", "pattern", "minimum", "required", "properties", "additionalProperties", "items"}
WORDS = {"description", "title"}
TYPES: dict[str, set[type]] = {
    "string": {str},
    "boolean": {bool},
    "integer": {int},
    "number": {int, float},
    "object": {dict},
    "array": {list},
    "null": {type(None)},
}


@cache
def schema() -> Json:
    found: Json = json.loads(PATH.read_text())
    return found


@cache
def definition(loop: str, event: str) -> Json:
    """All fields of this event of this kind of loop, and which of them it must have; {} if there is no such event."""
    defs = schema()["$defs"]
    own = defs.get(f"{loop}:{event}") or defs.get(f"any:{event}")
    if own is None:
        return {}
    named, other = ("procedure", "name") if loop == "ooda" else ("name", "procedure")
    shared = [defs["end"]] if event == "run.ended" else [] if event.startswith("run.") else [defs["turn"]]
    parts = [schema(), *shared, own]
    fields = {name: field for part in parts for name, field in part["properties"].items() if name != other}
    return {
        "type": "object",
        "required": [*(name for part in parts for name in part.get("required", ())), named],
        "properties": fields,
    }


@cache
def _tests(loop: str, event: str) -> tuple[Test, dict[str, Test]]:
    """For the event as a whole, and for each of its fields."""
    found = definition(loop, event)
    return compiled(found), {name: compiled(rule) for name, rule in found["properties"].items()}


def compiled(rule: Json) -> Test:
    """Does a value keep to this rule? An object has only the properties that are named."""
    assert set(rule) <= KNOWN | WORDS, f"tests/event_schema.py does not know {set(rule) - KNOWN - WORDS}"
    if "const" in rule or "enum" in rule:
        words = {(type(word), word) for word in rule.get("enum", [rule.get("const")])}
        return lambda value: value.__hash__ is not None and (type(value), value) in words
    kinds = set().union(*(TYPES[kind] for kind in ([rule["type"]] if isinstance(rule["type"], str) else rule["type"])))
    inner = _inner(rule)
    return lambda value: type(value) in kinds and (inner is None or value is None or inner(value))


def _inner(rule: Json) -> Test | None:
    """What a value of the right type has to keep to besides."""
    if "properties" in rule or "additionalProperties" in rule:
        fields = {name: compiled(field) for name, field in rule.get("properties", {}).items()}
        more = compiled(rule["additionalProperties"]) if "additionalProperties" in rule else lambda value: False
        needed = set(rule.get("required", ()))
        return lambda value: needed <= value.keys() and all(fields.get(key, more)(value[key]) for key in value)
    if "items" in rule:
        item = compiled(rule["items"])
        return lambda value: all(map(item, value))
    if "pattern" in rule:
        search = re.compile(rule["pattern"]).search
        return lambda value: bool(search(value))
    return (lambda value: value >= rule["minimum"]) if "minimum" in rule else None


def faults(record: Json) -> list[str]:
    """What is wrong with one event."""
    loop, event = str(record.get("loop")), str(record.get("event"))
    rules = definition(loop, event)
    if not rules:
        return [f"{event} of {loop} is not in the schema"]
    whole, fields = _tests(loop, event)
    if whole(record):
        return []
    wrong = [f"{event}.{name} is missing" for name in rules["required"] if name not in record]
    for name, value in record.items():
        if name not in fields:
            wrong.append(f"{event}.{name} is not in the schema: {value!r}")
        elif not fields[name](value):
            wrong.append(f"{event}.{name} is {value!r}, which is not {rules['properties'][name]}")
    return wrong


def of_file(path: str) -> Iterator[str]:
    """What is wrong in one events.jsonl: lines, numbers, or the run that it is said to be of."""
    folder = os.path.basename(os.path.dirname(path))
    moved = folder.startswith("rooda-")  # the rest of a run whose own folder could not be written any more
    lines, before = Path(path).read_bytes().split(b"\n"), 0
    if lines.pop():
        yield "the last line has no end"
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            yield f"no JSON: {line[:200]!r}"
            continue
        yield from faults(record)
        if record.get("run") != folder and not moved:
            yield f"{record.get('event')} is of the run {record.get('run')}"
        if record.get("seq") != before + 1 and not (moved and not before):
            yield f"{record.get('event')} has the number {record.get('seq')} after {before}"
        before = record.get("seq", before)


def check_all(root: str) -> None:
    """Every events.jsonl of a workspace's root, those of work trees and of runs that had to move included."""
    patterns = [f"{root}/{'*/' * depth}.rooda/runs/*/events.jsonl" for depth in (1, 2, 3)]
    found = {path for pattern in (*patterns, f"{root}/home/tmp/rooda-*/events.jsonl") for path in glob.iglob(pattern)}
    wrong = [f"{path}: {fault}" for path in sorted(found) for fault in of_file(path)]
    if wrong:
        hint = "what is new belongs into the records of events; then: python tools/events.py"
        raise AssertionError("\n".join([f"{len(wrong)} faults of events ({hint})", *wrong[:12]]))
