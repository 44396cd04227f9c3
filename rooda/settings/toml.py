"""Parses TOML with line numbers, using a copy of tomllib's parser that records the line of each key."""

import re
import sys
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, TypeAlias

Path: TypeAlias = tuple[str | int, ...]
Lines: TypeAlias = dict[Path, int]
Tree: TypeAlias = dict[str, Any]
DEEPEST = 40
_RULES = (
    *("parse_key", "parse_key_value_pair", "parse_inline_table"),
    *("key_value_rule", "create_dict_rule", "create_list_rule"),
)


class TooDeep(ValueError):
    """Raised for tables or arrays that are nested too deeply."""


def parse(text: str) -> tuple[Tree, Lines]:
    """Return the document and the line of every key; without lines if tomllib's internals differ in this Python."""
    import tomllib

    try:
        notes = _Notes()
        tree = _noting_loads(notes)(text)
    except ValueError:
        raise
    except Exception:
        notes = _Notes()
        try:
            tree = tomllib.loads(text)
        except RecursionError:
            raise TooDeep(f"nested more than {DEEPEST} deep") from None
    lines: Lines = {}
    _walk(tree, (), notes, lines)
    return tree, lines


class _Notes:
    """Line numbers of keys and tables, keyed by id() of their table. The parsed tree keeps these tables alive."""

    def __init__(self) -> None:
        self.keys: dict[int, dict[str, int]] = {}
        self.tables: dict[int, int] = {}
        self.pending: list[list[tuple[tuple[str, ...], int]]] = [[]]
        self.position = 0
        self.line = 1

    def line_at(self, source: str, position: int) -> int:
        if position < self.position:
            return source.count("\n", 0, position) + 1
        self.line += source.count("\n", self.position, position)
        self.position = position
        return self.line

    def key(self, table: Any, path: tuple[str, ...], line: int) -> None:
        for part in path:
            self.keys.setdefault(id(table), {}).setdefault(part, line)
            table = table[part]
            if isinstance(table, list) and table:
                table = table[-1]


def _noting_loads(notes: _Notes) -> Callable[[str], Tree]:
    """Return a private copy of `tomllib.loads` that records lines; tomllib itself is unchanged."""
    home = vars(sys.modules["tomllib._parser"])
    room = dict(home)
    for name, function in home.items():
        if isinstance(function, FunctionType) and function.__globals__ is home:
            copy = FunctionType(function.__code__, room, name, function.__defaults__, function.__closure__)
            copy.__kwdefaults__ = function.__kwdefaults__
            room[name] = copy
    for name in _RULES:
        room[name] = globals()["_" + name](notes, room[name])
    loads: Callable[[str], Tree] = room["loads"]
    return loads


def _parse_key(notes: _Notes, original: Any) -> Any:
    """Wrap tomllib's key parser to reject dotted keys with very many parts, which tomllib parses in quadratic time."""
    import re

    long = re.compile(rf"""(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{DEEPEST}}}""", re.ASCII)

    def key(source: str, position: int) -> Any:
        if long.match(source, position):
            raise TooDeep(f"nested more than {DEEPEST} deep")
        return original(source, position)

    return key


def _parse_key_value_pair(notes: _Notes, original: Any) -> Any:
    def pair(source: str, position: int, *rest: Any) -> Any:
        line = notes.line_at(source, position)
        end, key, value = original(source, position, *rest)
        notes.pending[-1].append((key, line))
        return end, key, value

    return pair


def _parse_inline_table(notes: _Notes, original: Any) -> Any:
    def inline_table(source: str, position: int, *rest: Any) -> Any:
        line = notes.line_at(source, position)
        notes.pending.append([])
        end, table = original(source, position, *rest)
        notes.tables[id(table)] = line
        for key, key_line in notes.pending.pop():
            notes.key(table, key, key_line)
        return end, table

    return inline_table


def _key_value_rule(notes: _Notes, original: Any) -> Any:
    def key_value(source: str, position: int, out: Any, header: tuple[str, ...], *rest: Any) -> Any:
        end = original(source, position, out, header, *rest)
        key, line = notes.pending[-1].pop()
        notes.key(out.data.dict, header + key, line)
        return end

    return key_value


def _create_dict_rule(notes: _Notes, original: Any) -> Any:
    def table_header(source: str, position: int, out: Any) -> Any:
        end, key = original(source, position, out)
        notes.key(out.data.dict, key, notes.line_at(source, position))
        return end, key

    return table_header


def _create_list_rule(notes: _Notes, original: Any) -> Any:
    def item_header(source: str, position: int, out: Any) -> Any:
        line = notes.line_at(source, position)
        end, key = original(source, position, out)
        notes.key(out.data.dict, key, line)
        notes.tables[id(out.data.get_or_create_nest(key))] = line
        return end, key

    return item_header


def _walk(value: Any, path: Path, notes: _Notes, lines: Lines) -> None:
    if len(path) > DEEPEST:
        raise TooDeep(f"nested more than {DEEPEST} deep")
    if isinstance(value, dict):
        own = notes.keys.get(id(value), {})
        for key, inner in value.items():
            if key in own:
                lines[(*path, key)] = own[key]
            if isinstance(inner, dict | list):
                _walk(inner, (*path, key), notes, lines)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            if id(inner) in notes.tables:
                lines[(*path, index)] = notes.tables[id(inner)]
            if isinstance(inner, dict | list):
                _walk(inner, (*path, index), notes, lines)


def line_of(lines: Mapping[Path, int], path: Path) -> int:
    """Return the line of a key, or of the nearest table around it; 0 if unknown."""
    while path:
        if path in lines:
            return lines[path]
        path = path[:-1]
    return 0


# Error messages of tomllib, and the likely fix.
_MEANT = {
    "Invalid value": "a string needs quotes",
    "Illegal character '\\n'": "the string before it has no closing quote",
    "Unterminated string": "the last string has no closing quote",
    "Cannot declare": "a table may appear only once: put its keys together",
    "Cannot overwrite a value": "that key or table already exists",
    "Unescaped": "write \\\\ for a backslash, or put the string in single quotes",
    "Invalid hex value": "write \\\\ for a backslash, or put the string in single quotes",
    "Expected '=' after a key": "a line is KEY = VALUE, and a key has no spaces",
    "Invalid statement": "a line is KEY = VALUE or [TABLE]",
    "Expected newline": "one KEY = VALUE per line, and a string needs quotes",
    "Unclosed array": "a comma or the ] is missing",
    "Invalid initial character for a key part": "{ … } must be on one line, without a comma at its end",
}


def sentence(problem: ValueError, data: bytes) -> str:
    """Return `:LINE:COLUMN: problem; how to fix it` for an error of tomllib."""
    text = str(problem)
    found = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", text)
    if not found:
        return f": {text[:200]}"
    line, column = found.groups()
    if line and text.startswith("Cannot declare") and b"]" not in data.split(b"\n")[int(line) - 1]:
        return f":{line}:{column}: Expected ']' at the end of a table declaration"
    where = f"{line}:{column}" if line else str(data.rstrip(b"\n").count(b"\n") + 1)
    return f":{where}: {_plain(text[: found.start()])}{'' if line else ' (at the end of the file)'}{_hint_for(text)}"


def _hint_for(text: str) -> str:
    return next((f"; {hint}" for words, hint in _MEANT.items() if text.startswith(words)), "")


def _plain(text: str) -> str:
    """Return tomllib's message with table names written as in TOML, not as Python tuples."""
    parts = re.findall(r"'([^']*)'", text)
    return f"Cannot declare [{'.'.join(parts)}] twice" if text.startswith("Cannot declare (") and parts else text


# Values as TOML on one line.


def toml_value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml_value(item) for item in value)}]"
    if isinstance(value, dict):
        inner = ", ".join(f"{toml_key(key)} = {toml_value(item)}" for key, item in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    import tomli_w

    return tomli_w.dumps({"x": value}).removeprefix("x = ").rstrip("\n")


def toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else toml_value(key)
