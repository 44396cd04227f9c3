"""Generates the JSON schema of events from their records; comments and docstrings become descriptions."""

import ast
import importlib
import inspect
import json
import os
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Literal

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PATH = os.path.join(ROOT, "config", "events.schema.json")
sys.path.insert(0, ROOT)

from rooda.loops.registry import KINDS  # noqa: E402
from rooda.run.event_records import Event, SessionEnd  # noqa: E402

FIRST = ("ooda", "goal", "reflex", "flow")  # the order of the kinds on the page; others follow
RECORDS = {"any": "rooda.run.event_records"}  # modules, by kind of loop
RECORDS |= {kind: f"{KINDS[kind].package}.events" for kind in dict.fromkeys([*FIRST, *KINDS])}
ORDER = (  # of the events that the page describes first; all others follow
    *("run.started", "run.resumed", "iteration.started", "prompt.assembled", "budget.exceeded"),
    *("agent.started", "agent.ended", "output.truncated", "transcript.replaced", "resting", "rested"),
    *("gate.started", "gate.ended", "gates.ended", "state.saved", "state.unsaved"),
    *("iteration.ended", "run.ended", "snapshot.taken", "snapshot.omitted", "question.asked", "question.answered"),
    "problem",
)
ONLY_OF_PROCEDURES = ("gate.started", "gate.ended", "gates.ended")  # although the session of any loop emits them
DESCRIBED_ONCE = ("iteration", "cause")  # for all events, for all ends
WIDTH = 137
TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", types.NoneType: "null"}
Json = dict[str, Any]

HEAD = r"""{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "$id": "urn:rooda:events:1",
  "title": "An event of a rooda loop, version 1",
  "description": "One line of events.jsonl and of --json. Readers should ignore unknown events and fields: new ones may be added at any time.",
  "type": "object",
  "required": ["v", "ts", "run", "loop", "seq", "event"],
  "properties": {
    "v": {"const": 1, "description": "version of this format: 1"},
    "ts": {
      "type": "string",
      "pattern": "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$",
      "description": "time, UTC with milliseconds: `2026-02-06T10:00:45.213Z`"
    },
    "run": {"type": "string", "description": "the id of the session, also the name of its folder"},
    "loop": {"enum": ["ooda", "reflex", "flow", "goal"], "description": "the kind of loop; `ooda` for procedures"},
    "procedure": {"type": "string", "description": "the procedure's name, if `loop` is `ooda`"},
    "name": {"type": "string", "description": "the loop's name for all other kinds: alias, id of the flow's run, `goal`"},
    "seq": {"type": "integer", "minimum": 1, "description": "1, 2, 3, … within the session"},
    "event": {"type": "string", "description": "the name of the event"}
  },
  "allOf": [
    {"if": {"properties": {"loop": {"const": "ooda"}}}, "then": {"required": ["procedure"]}, "else": {"required": ["name"]}},
    {"if": {"properties": {"event": {"pattern": "^run\\."}}}, "else": {"$ref": "#/$defs/turn"}},
    {"if": {"properties": {"event": {"const": "run.ended"}}}, "then": {"$ref": "#/$defs/end"}},
"""  # noqa: E501
TURN = """\
    "turn": {
      "type": "object",
      "required": ["iteration", "display"],
      "properties": {
        "iteration": {"type": "integer", "minimum": -1, "description": "iterations closed before this one, from 0; -1 if a flow enters a node"},
        "display": {"type": "integer", "minimum": 0, "description": "the iteration as the screen shows it, from 1; 0 if a flow enters a node"}
      }
    },
"""  # noqa: E501


def schema() -> Json:
    found: Json = json.loads(text())
    return found


@cache
def text() -> str:
    """The file, with order and line breaks that make changes easy to see in a diff."""
    found = {"end": definition(SessionEnd)} | {key: definition(record) for key, record in records()}
    rules = ",\n".join("    " + json.dumps(rule(key)) for key in list(found)[1:])
    definitions = ",\n".join(f"    {json.dumps(key)}: {written(each, 4, len(key) + 8)}" for key, each in found.items())
    return f'{HEAD}{rules}\n  ],\n  "$defs": {{\n{TURN}{definitions}\n  }}\n}}\n'


def records() -> Iterator[tuple[str, type[Event]]]:
    """Each event with its key, such as `any:problem`, `goal:run.ended`."""
    found = {
        ("ooda" if record.NAME in ONLY_OF_PROCEDURES else kind, record.NAME): record
        for kind, module in RECORDS.items()
        for record in vars(importlib.import_module(module)).values()
        if isinstance(record, type) and issubclass(record, Event) and record.__module__ == module
        if record not in (Event, SessionEnd)
    }
    first = [key for key in found if key[0] in ("any", "ooda")]
    first.sort(key=lambda key: ORDER.index(key[1]) if key[1] in ORDER else len(ORDER))
    for key in dict.fromkeys([*first, *found]):
        yield ":".join(key), found[key]


def rule(key: str) -> Json:
    kind, _, event = key.partition(":")
    where = {"event": {"const": event}} | ({} if kind == "any" else {"loop": {"const": kind}})
    return {"if": {"properties": where}, "then": {"$ref": f"#/$defs/{key}"}}


def definition(record: type[Event]) -> Json:
    hints, said = typing.get_type_hints(record, include_extras=True), comments(record)
    fields = {name: hints[name] for name in said if record is SessionEnd or name not in DESCRIBED_ONCE}
    needed = [name for name in fields if not hasattr(record, name)]
    about = {"description": record.__doc__} if record.__doc__ and record is not SessionEnd else {}
    properties = {name: {**of_type(hint), "description": said[name]} for name, hint in fields.items()}
    return {**about, "type": "object", **({"required": needed} if needed else {}), "properties": properties}


def of_type(hint: Any) -> Json:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return {"enum": list(arguments[1:])}
    if origin is Literal:
        return {"const": arguments[0]}
    if origin is types.UnionType:
        one = of_type(arguments[0])
        return {"type": [one.pop("type"), "null"], **one}
    if origin is list:
        return {"type": "array", "items": of_type(arguments[0])}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": of_type(arguments[1])}
    if typing.is_typeddict(hint):
        properties = {name: of_type(each) for name, each in typing.get_type_hints(hint).items()}
        needed = [name for name in properties if name in hint.__required_keys__]
        return {"type": "object", "required": needed, "properties": properties}
    return {"type": TYPES[hint]}


def comments(record: type[Event]) -> dict[str, str]:
    """The fields of an event and its base classes, each with the comment beside or above it."""
    found: dict[str, str] = {}
    for each in reversed(record.__mro__):
        if issubclass(each, Event) and each is not Event:
            found |= own_comments(each)
    return found


def own_comments(record: type[Event]) -> dict[str, str]:
    lines = inspect.getsource(record).splitlines()
    (tree,) = ast.parse("\n".join(lines)).body
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for field in tree.body:
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            beside = lines[(field.end_lineno or 0) - 1].encode()[field.end_col_offset :].decode().strip()
            above = []
            while not beside and (line := lines[field.lineno - 2 - len(above)].strip()).startswith("#"):
                above.insert(0, line.removeprefix("# "))
            found[field.target.id] = beside.removeprefix("# ") or " ".join(above)
    return found


def written(value: Any, indent: int, used: int) -> str:
    """JSON on one line if it fits. The description of a field is always on one line."""
    whole = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or used + len(whole) <= WIDTH or indent > 6:
        return whole
    inner, (begin, end) = " " * (indent + 2), "{}" if isinstance(value, dict) else "[]"
    if isinstance(value, dict):
        shown = {key: written(each, indent + 2, indent + len(key) + 6) for key, each in value.items()}
        parts = [f"{json.dumps(key)}: {each}" for key, each in shown.items()]
    else:
        parts = [json.dumps(each, ensure_ascii=False) for each in value]
    return f"{begin}\n{inner}" + f",\n{inner}".join(parts) + f"\n{' ' * indent}{end}"
