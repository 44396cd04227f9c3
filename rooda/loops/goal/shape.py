"""Reads and writes SHAPE.md: criteria, mustNot entries, and how each criterion is verified."""

import re
from typing import NamedTuple

from rooda.loops.goal import criteria
from rooda.loops.goal.criteria import EXECUTION, KNOWN, MEASUREMENT, Criterion, plain
from rooda.loops.goal.plan import MustNot, Plan

_SECTIONS = {
    "criteria": "criteria", "implementation criteria": "criteria", "success criteria": "criteria",
    "mustnot": "mustNot", "must not": "mustNot", "must not constraints": "mustNot", "must nots": "mustNot",
    "verification": "verification", "verification plan": "verification",
}  # fmt: skip
# Possessive quantifiers avoid backtracking: an agent may write anything. Lines have no trailing blanks.
_HEAD = re.compile(r"^\s{0,3}(?:#++\s*+|\*\*)?([A-Za-z][\w -]*+)(?:\*\*)?\s*+(:?)(?:\*\*)?\s*+(\[.*\])?$")
_INLINE = re.compile(r"\s*(\"[^\"]*\"|'[^']*'|[^,]+)")
_ITEM = re.compile(r"^\s*+(?:[-*+]|\d++[.)])\s++(?:\[[ xX]\]\s++)?(.+)$")
_PAIR = re.compile(r"^\s*+[\"'`]?([^\"'`:|]++)[\"'`]?\s*+:\s*+(\S.*)$")
_VIOLATED = re.compile(r"violated[_ ]if:?\s*+(.+)$", re.IGNORECASE)
_QUOTED = re.compile(r"\s*+(?:\"([^\"]+)\"|'([^']+)')\s*+:\s*+([\"']?[A-Za-z`].*)$")
_PLAIN = re.compile(r":\s*+([\"']?[A-Za-z`].*)$")


class Shape(NamedTuple):
    """The content of SHAPE.md."""

    criteria: tuple[Criterion, ...] = ()
    must_not: tuple[MustNot, ...] = ()


class _Item(NamedTuple):
    text: str
    keys: dict[str, str]


def read_shape(text: str) -> Shape:
    """Parse SHAPE.md tolerantly; text in another format yields an empty Shape."""
    items, methods = _gathered(text)
    criteria = [_criterion(item, methods) for item in items["criteria"]]
    listed = {item.name for item in criteria}
    return Shape(
        tuple({each.name: each for each in criteria if each.name in listed and each.name}.values()),
        tuple(_must_not(item) for item in items["mustNot"]),
    )


def _gathered(text: str) -> tuple[dict[str, list[_Item]], dict[str, tuple[str, str]]]:
    """Return the list items per section, and the type and method per criterion name."""
    items: dict[str, list[_Item]] = {"criteria": [], "mustNot": []}
    methods: dict[str, tuple[str, str]] = {}
    section, table = "", False
    for line in map(str.rstrip, text.splitlines()):
        if line.strip().startswith("```"):
            continue
        cells = _cells(line)
        if cells:
            table = _row(cells, table, methods)
            continue
        table = False
        if head := _section(line):
            section, inline = head
            items.get(section, []).extend(_Item(word, {}) for word in inline)
        elif section in items:
            _take(line, items[section])
        elif section == "verification":
            _read_method(line, methods)
    return items, methods


def _section(line: str) -> tuple[str, list[str]] | None:
    """Return the section that starts on this line and its inline list; None if no section starts here.

    An unknown section is called "other".
    """
    found = _HEAD.match(line)
    if not found or _ITEM.match(line):
        return None
    name, heading = plain(found[1]), bool(found[2]) or line.lstrip().startswith(("#", "**"))
    if not heading or (name not in _SECTIONS and line[:1].isspace()):
        return None
    inline = _INLINE.findall((found[3] or "[]")[1:-1])
    words = [_bare(word) for word in inline if word.strip()]
    return _SECTIONS.get(name, "other"), words


def _take(line: str, items: list[_Item]) -> None:
    """Append the line's item to the list, or add the line's key to the last item."""
    found = _ITEM.match(line)
    if found:
        pair = re.match(r"(name|text|criterion)\s*:\s*(.+)$", found[1], re.IGNORECASE)
        items.append(_Item(_bare(pair[2] if pair else found[1]), {}))
    elif items and line[:1].isspace() and (pair := _PAIR.match(line)):
        items[-1].keys[plain(pair[1])] = _bare(pair[2])


def _cells(line: str) -> list[str]:
    text = line.strip()
    if not text.startswith("|"):
        return []
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", text.strip("|"))]


def _row(cells: list[str], table: bool, methods: dict[str, tuple[str, str]]) -> bool:
    """Add a row of the verification table to `methods`; return True if the header was this row or an earlier one."""
    if plain(cells[0]) == "criterion":
        return True
    if table and len(cells) > 1 and not set(cells[0]) <= set("-: "):
        methods[_bare(cells[0])] = (_bare(cells[1]), cells[2] if len(cells) > 2 else "")
    return table


def _read_method(line: str, methods: dict[str, tuple[str, str]]) -> None:
    """Add a line such as `name: type (`command`)` or `name: `command`` to `methods`; bullet and quotes are optional."""
    found = _ITEM.match(line)
    text = (found[1] if found else line).strip()
    quoted = _QUOTED.match(text)
    pair = quoted or _PLAIN.search(text, 1)
    if pair:
        name = quoted[1] or quoted[2] if quoted else text[: pair.start()]
        kind, _, method = _bare(pair[pair.re.groups]).partition("`")
        methods[_bare(name)] = (_bare(kind.strip(" (-–—:")), f"`{method}" if method else "")


def _criterion(item: _Item, methods: dict[str, tuple[str, str]]) -> Criterion:
    """Build a criterion, looking up its method by its full text, else by the text before its colon."""
    name = item.text
    kind, method = methods.get(name) or methods.get(name.partition(":")[0].strip()) or ("", "")
    command, expect = _command(method)
    kind = item.keys.get("verification", kind)
    command, expect = item.keys.get("command", command), item.keys.get("expect", expect)
    natural = (MEASUREMENT if criteria.is_bound(expect) else EXECUTION) if command else ""
    note = "" if command else method
    hidden = item.keys.get("holdout", "").lower() == "true"
    return Criterion(name, _word(kind) or natural, command, expect, hidden, note)


def _word(kind: str) -> str:
    """Return the verification type in rooda's spelling if rooda knows the type, else as written."""
    return plain(kind) if plain(kind) in KNOWN else kind


def _command(method: str) -> tuple[str, str]:
    """Return the backticked command in a table cell and the comparison after it, such as `>= 80`; "" if missing."""
    found = re.search(r"`([^`]+)`\s*([<>=!≤≥]+\s*\$?-?\.?\d(?:[\w.%/]|(?<=[eE])[+-])*)?", method)
    return (found[1].strip(), (found[2] or "").strip().rstrip(".")) if found else ("", "")


def _must_not(item: _Item) -> MustNot:
    if "violated if" in item.keys:
        return MustNot(item.text, item.keys["violated if"].strip("`"))
    found = _VIOLATED.search(item.text)
    if not found:
        return MustNot(item.text)
    command = _unbracketed(found[1].strip())
    if command[0] == command[-1] == "`" and command.count("`") == 2:
        command = command[1:-1].strip() or command
    text = item.text[: found.start()].rstrip().rstrip("([—–-").strip(" ;,:|")
    return MustNot(_bare(text) or command, command)


def _unbracketed(text: str) -> str:
    """Return the text without a closing bracket at its end."""
    return text[:-1].rstrip() or text if text.endswith((")", "]")) else text


def _bare(text: str) -> str:
    """Return the text without surrounding quotes."""
    text = text.strip()
    for quote in ('"', "'"):
        if len(text) > 1 and text[0] == text[-1] == quote:
            return text[1:-1]
    return text


# Writing SHAPE.md from a plan.
HEAD = "| Criterion | Verification Type | Command/Method |\n|---|---|---|"


def shape_text(plan: Plan, total: int) -> str:
    """Return the plan as the text of SHAPE.md, which `read_shape` can parse."""
    rows = [f"| {_cell(each.name)} | {each.verification} | {_method_text(each)} |" for each in plan.criteria]
    entries = [f'  - "{each.text}"' + (f" (violated_if: `{each.violated_if}`)" if each.violated_if else "")
               for each in plan.must_not]  # fmt: skip
    parts = [
        ("# Shape", f"Spec Score: {total}/10"),
        ("## Implementation Criteria", _list("criteria", list(map(_item, plan.criteria)))),
        ("## Must-NOT Constraints", _list("mustNot", entries)),
        ("## Verification Plan", "\n".join([HEAD, *rows])),
        ("## Exit Gate", "All criteria met, none by assumption, no mustNot true."),
    ]
    return "\n\n".join(f"{title}\n\n{body}" for title, body in parts) + "\n"


def _list(name: str, rows: list[str]) -> str:
    return "\n".join([f"{name}:", *rows])


def _item(criterion: Criterion) -> str:
    """Return the criterion as a list item, with the keys that the table has no column for."""
    pattern = f"\n    expect: {criterion.expect}" if criterion.expect else ""
    return f'  - "{criterion.name}"{pattern}' + ("\n    holdout: true" if criterion.holdout else "")


def _method_text(criterion: Criterion) -> str:
    return f"`{_cell(criterion.command)}`" if criterion.command else criterion.note


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
