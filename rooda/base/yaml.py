"""Parses YAML safely, with line numbers; duplicate keys and recursion are reported as faults. Pure.

Only this module imports PyYAML, and only when it parses something.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

Path = tuple[str | int, ...]
DEEPEST = 100  # levels of nesting
MOST = 100_000  # values that aliases may repeat
LONGEST = 1000  # characters of a number
LARGEST = 10**18  # absolute value of an integer


class Fault(NamedTuple):
    """An error in a YAML document, and its line."""

    line: int
    text: str


class Read(NamedTuple):
    """A parsed YAML document: its value, the line of each key and list item, and its faults."""

    value: Any
    lines: Mapping[Path, int]
    faults: tuple[Fault, ...] = ()


def read(text: str) -> Read:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        if line := _too_deep(yaml, text, loader):
            return Read(None, {}, (Fault(line, "nested too deeply"),))
        top = yaml.compose(text, Loader=loader)
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        line = mark.line + 1 if mark else 1
        what = " ".join(part for part in (problem.context, problem.problem) if part)
        return Read(None, {}, (Fault(line, f"not YAML: {what}{_tab(text, line)}"),))
    except UnicodeEncodeError as problem:
        return Read(None, {}, (Fault(text.count("\n", 0, problem.start) + 1, "not UTF-8 text"),))
    except yaml.YAMLError as problem:
        return Read(None, {}, (Fault(1, f"not YAML: {str(problem).splitlines()[0]}"),))
    builder = _Builder(yaml)
    value = None if top is None else builder.value(top, (), ())
    if builder.again > MOST:
        return Read(None, {}, (Fault(1, "its aliases expand to too many values"),))
    return Read(value, builder.lines, tuple(builder.faults))


def _tab(text: str, line: int) -> str:
    """Return a hint to append to an error if the line is indented with a tab, else ""."""
    rows = text.split("\n", line)[line - 1 : line]
    return "; indent with spaces, not with tabs" if rows and re.match(r" *\t", rows[0]) else ""


def _too_deep(yaml: Any, text: str, loader: Any) -> int:
    """Return the line that is nested too deeply; 0 if none. The composer recurses in C, without Python's limit."""
    depth = 0
    for event in yaml.parse(text, Loader=loader) if sum(map(text.count, "[{-?:")) > DEEPEST else ():
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            return int(event.start_mark.line) + 1
    return 0


class _Builder:
    """Builds plain values from a composed YAML document; collects line numbers and faults."""

    def __init__(self, yaml: Any) -> None:
        self._yaml, self._scalars = yaml, yaml.constructor.SafeConstructor()
        self.lines: dict[Path, int] = {}
        self.faults: list[Fault] = []
        self._built: dict[int, Any] = {}  # values by node, shared by aliases
        self._sizes: dict[int, int] = {}
        self._all = self.again = 0  # number of values, and of those that aliases repeat

    def value(self, node: Any, path: Path, above: tuple[int, ...]) -> Any:
        line = node.start_mark.line + 1
        self.lines.setdefault(path, line)
        if id(node) in above:
            self.faults.append(Fault(line, "contains itself (its anchor is used by an alias inside it)"))
            return None
        if id(node) in self._built:
            self._all += self._sizes[id(node)]
            self.again += self._sizes[id(node)]
        else:
            before, self._all = self._all, self._all + 1
            self._built[id(node)] = self._value(node, path, (*above, id(node)))
            self._sizes[id(node)] = self._all - before
        return self._built[id(node)]

    def _value(self, node: Any, path: Path, above: tuple[int, ...]) -> Any:
        if isinstance(node, self._yaml.MappingNode):
            return self._mapping(node, path, above)
        if isinstance(node, self._yaml.SequenceNode):
            return [self.value(each, (*path, index), above) for index, each in enumerate(node.value)]
        return self._scalar(node, node.start_mark.line + 1)

    def _mapping(self, node: Any, path: Path, above: tuple[int, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key.value, str):
                self.faults.append(Fault(line, "a key must be a string"))
                continue
            name = key.value
            if name in found:
                self.faults.append(Fault(line, f"the key {name!r} is repeated"))
            self.lines[(*path, name)] = line
            found[name] = self.value(value, (*path, name), above)
        return found

    def _scalar(self, node: Any, line: int) -> Any:
        if node.tag.rpartition(":")[2] not in ("null", "bool", "int", "float"):
            return node.value
        try:
            value = self._scalars.construct_object(node) if len(node.value) <= LONGEST else LARGEST + 1
        except (ValueError, LookupError, self._yaml.YAMLError):
            value = LARGEST + 1
        if isinstance(value, int) and abs(value) > LARGEST:
            self.faults.append(Fault(line, f"{node.value[:60]!r} can't be read"))
            return node.value
        return value


_FENCE = re.compile(r"\ufeff?\s*^---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)


def front_matter(text: str) -> tuple[dict[str, Any] | None, str]:
    """Split a text into its front matter and the rest; the front matter is None if missing or not valid YAML."""
    found = _FENCE.match(text)
    if not found:
        return None, text
    document = read(found[1])
    keys = document.value if isinstance(document.value, dict) and not document.faults else None
    return keys, text[found.end() :]


@lru_cache(maxsize=64)
def lenient(text: str) -> Mapping[str, Any]:
    """Read the front matter of an agent file; if it is not valid YAML, read each `key: text` line by itself.

    Cached, since every call of a run needs the front matter of the same few files.
    """
    keys, _ = front_matter(text)
    found = _FENCE.match(text)
    if keys is not None or not found:
        return keys or {}
    return {key: value.strip() for key, value in re.findall(r"^([\w-]+):[ \t]*(.*?)\r?$", found[1], re.MULTILINE)}


def quoted(text: str) -> str:
    """Format a string as a double-quoted scalar on one line."""
    import json

    plain = json.dumps(text, ensure_ascii=False)
    unwelcome = r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]"
    return re.sub(unwelcome, lambda sign: f"\\u{ord(sign[0]):04x}", plain)


def scalar(value: object) -> str:
    """Format a value as a scalar; a string is quoted only if YAML requires it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return str(value)
    return value if _is_plain(value) else quoted(value)


@lru_cache(maxsize=256)
def _is_plain(text: str) -> bool:
    """True if YAML reads the string back unchanged without quotes. Cached, since the same headers are written often."""
    return bool(read(f"- {text}").value == [text])
