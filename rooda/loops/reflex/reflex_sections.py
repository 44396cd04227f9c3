"""What changed between two artifacts, told by their headings."""

import re
from collections.abc import Callable, Mapping

TOP = "(beginning)"
_HEADING = re.compile(r" {0,3}#{1,6}[ \t](.*)$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def sections(text: str) -> dict[str, str]:
    """Heading to the text below it. Headings that occur twice are numbered; code blocks have none."""
    found: dict[str, list[str]] = {}
    numbers: dict[str, int] = {}
    name, fence = TOP, ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
        heading = None if fence or mark else _HEADING.match(line)
        if heading:
            name = _unused(heading[1].rstrip(" \t").rstrip("#").strip(" \t") or TOP, found, numbers)
        found.setdefault(name, []).append(line)
    if not "".join(found.get(TOP, ["-"])).strip():
        del found[TOP]
    return {name: "\n".join(lines) + "\n" for name, lines in found.items()}


def _unused(name: str, taken: Mapping[str, list[str]], numbers: dict[str, int]) -> str:
    """`numbers` are those that were given last."""
    each = name
    while each in taken:
        numbers[name] = numbers.get(name, 1) + 1
        each = f"{name} ({numbers[name]})"
    return each


def hashes(text: str, digest: Callable[[bytes], str]) -> dict[str, str]:
    """Heading to the first 8 characters of its section's hash."""
    found = sections(text).items()
    return {name: digest(body.rstrip().encode("utf-8", "surrogateescape"))[:8] for name, body in found}


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Sections added or modified, in order; then the removed ones with a minus."""
    new = [name for name, mark in after.items() if before.get(name) != mark]
    return new + [f"-{name}" for name in before if name not in after]
