"""Reads quality gates and commands from the AGENTS.md of a project."""

import re
from collections.abc import Iterator

from rooda.run.records import Gate

# Possessive quantifiers, so that no line can be slow: AGENTS.md may hold anything.
_HEADING = re.compile(r"^(#{1,6})\s++(.*)$")
_BULLET = re.compile(r"^\s*+[-*+]\s++(?P<lead>[^`]*+)(?P<ticks>`++)(?P<command>.+?)(?P=ticks)(?!`)")

_COMMAND = re.compile(
    r"^\s*+(?:[-*+]\s++)?\*\*(?P<name>[^*:`]++):?\*\*:?\s*+(?P<ticks>`++)(?P<command>.+?)(?P=ticks)(?!`)"
)
_FENCE = re.compile(r"^\s*+(?P<marks>`{3,}+|~{3,}+)\s*+(?P<info>.*?)\s*$")
LONGEST = 10_000  # characters of a line that is read
_NOT_ONE = re.compile(r"manual verification|not required", re.I)


def gates(text: str, path: str = "") -> tuple[Gate, ...]:
    """Return the bullets ``- name: `command` `` in the section `## Quality Gates` as gates. `path`: of the file."""
    found = []
    for number, line in _section(text, "quality gates"):
        if (bullet := _BULLET.match(line)) and (command := bullet["command"].strip()):
            lead = bullet["lead"].rstrip()
            if lead and not lead.endswith(":"):
                continue
            name = lead.removesuffix(":").strip().strip("*_").strip()
            found.append(Gate(name or command, command, origin=_origin(path, number)))
    return tuple(found)


def commands(text: str, path: str = "") -> tuple[Gate, ...]:
    """Return the commands ``**Test:** `command` `` in `## Build/Test/Lint Commands`, except manual ones."""
    found = []
    for number, line in _section(text, "build/test/lint commands"):
        if (said := _COMMAND.match(line)) and not _NOT_ONE.search(line) and said["command"].strip():
            name, command = said["name"].strip().lower(), said["command"].strip()
            found.append(Gate(name, command, origin=_origin(path, number)))
    return tuple(found)


def _origin(path: str, number: int) -> str:
    return f"{path}:{number}" if path else ""


def _section(text: str, title: str) -> Iterator[tuple[int, str]]:
    """Yield numbers and lines below second-level headings with this title, up to the next of this or a higher level."""
    inside = False
    for number, line in _content(text):
        heading = _HEADING.match(line)
        if heading and len(heading[1]) <= 2:
            inside = len(heading[1]) == 2 and heading[2].rstrip().rstrip("#").rstrip().lower() == title
        elif inside:
            yield number, line


def _content(text: str) -> Iterator[tuple[int, str]]:
    """Yield the numbers and lines outside code fences and comments, which hold examples or disabled text."""
    fence, comment = "", False
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        if len(line) > LONGEST:
            continue
        mark = _FENCE.match(line)
        if comment or (not fence and line.lstrip().startswith("<!--")):
            comment = "-->" not in line
        elif fence:
            fence = "" if mark and mark["marks"].startswith(fence) and not mark["info"] else fence
        elif mark and "`" not in mark["info"]:
            fence = mark["marks"]
        else:
            yield number, line
