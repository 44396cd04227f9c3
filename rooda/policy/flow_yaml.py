"""YAML as rooda takes it: the safe kind, with line numbers; keys said twice and recursion are faults. Pure.

The only importer of PyYAML, and only when a text is to be read.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

Path = tuple[str | int, ...]


class Fault(NamedTuple):
    """What is wrong in a line."""

    line: int
    text: str


class Read(NamedTuple):
    """A document: its value, where each part of it begins, and what is wrong."""

    value: Any
    lines: Mapping[Path, int]
    faults: tuple[Fault, ...] = ()


def read(text: str) -> Read:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        top = yaml.compose(text, Loader=loader)
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        what = " ".join(part for part in (problem.context, problem.problem) if part)
        return Read(None, {}, (Fault(mark.line + 1 if mark else 1, f"not YAML: {what}"),))
    except (yaml.YAMLError, RecursionError) as problem:
        return Read(None, {}, (Fault(1, f"not YAML: {str(problem).splitlines()[0]}"),))
    builder = _Builder(yaml)
    try:
        value = None if top is None else builder.value(top, (), ())
    except RecursionError:
        return Read(None, {}, (Fault(1, "nested too deeply"),))
    return Read(value, builder.lines, tuple(builder.faults))


class _Builder:
    """Plain values out of a composed document."""

    def __init__(self, yaml: Any) -> None:
        self._yaml, self._scalars = yaml, yaml.constructor.SafeConstructor()
        self.lines: dict[Path, int] = {}
        self.faults: list[Fault] = []
        self._built: dict[int, Any] = {}  # an alias stands for what its anchor stands for, however often

    def value(self, node: Any, path: Path, above: tuple[int, ...]) -> Any:
        line = node.start_mark.line + 1
        self.lines.setdefault(path, line)
        if id(node) in above:
            self.faults.append(Fault(line, "contains itself (an anchor and its alias make a circle)"))
            return None
        if id(node) not in self._built:
            self._built[id(node)] = self._value(node, path, (*above, id(node)))
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
            name, line = str(key.value), key.start_mark.line + 1
            if name in found:
                self.faults.append(Fault(line, f"the key {name!r} stands here a second time"))
            self.lines[(*path, name)] = line
            found[name] = self.value(value, (*path, name), above)
        return found

    def _scalar(self, node: Any, line: int) -> Any:
        if node.tag.rpartition(":")[2] not in ("null", "bool", "int", "float"):
            return node.value
        try:
            return self._scalars.construct_object(node)
        except (ValueError, self._yaml.YAMLError):
            self.faults.append(Fault(line, f"{node.value!r} can't be read"))
            return node.value


_FENCE = re.compile(r"\ufeff?\s*^---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)


def front_matter(text: str) -> tuple[dict[str, Any] | None, str]:
    """The keys between the first two `---`, and what follows; None where there are none, or they are no YAML."""
    found = _FENCE.match(text)
    if not found:
        return None, text
    document = read(found[1])
    keys = document.value if isinstance(document.value, dict) and not document.faults else None
    return keys, text[found.end() :]


def lenient(text: str) -> dict[str, Any]:
    """The front matter of a file that people write: where it is no YAML, each `key: text` for itself."""
    keys, _ = front_matter(text)
    found = _FENCE.match(text)
    if keys is not None or not found:
        return keys or {}
    return {key: value.strip() for key, value in re.findall(r"^([\w-]+):[ \t]*(.*?)\r?$", found[1], re.MULTILINE)}


def quoted(text: str) -> str:
    """Any text as one double-quoted scalar on one line."""
    import json

    plain = json.dumps(text, ensure_ascii=False)
    return re.sub(r"[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]", lambda sign: f"\\u{ord(sign[0]):04x}", plain)


def scalar(value: object) -> str:
    """A value as one scalar: a text plain where YAML gives it back as it is, else in quotes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return str(value)
    return value if read(f"- {value}").value == [value] else quoted(value)
