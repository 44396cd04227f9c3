"""What changed between two artifacts, told by their headings."""

import re
from collections.abc import Callable, Mapping

TOP = "(beginning)"
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(.*?)[ \t]*#*[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def sections(text: str) -> dict[str, str]:
    """Heading to the text below it. Headings that occur twice are numbered; code blocks have none."""
    found: dict[str, str] = {}
    name, fence = TOP, ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
        heading = None if fence or mark else _HEADING.match(line)
        if heading:
            name = _unused(heading[1] or TOP, found)
        found[name] = found.get(name, "") + line + "\n"
    if TOP in found and not found[TOP].strip():
        del found[TOP]
    return found


def _unused(name: str, taken: Mapping[str, str]) -> str:
    number, each = 1, name
    while each in taken:
        number += 1
        each = f"{name} ({number})"
    return each


def hashes(text: str, digest: Callable[[bytes], str]) -> dict[str, str]:
    """Heading to the first 8 characters of its section's hash."""
    found = sections(text).items()
    return {name: digest(body.rstrip().encode("utf-8", "surrogateescape"))[:8] for name, body in found}


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Sections added or modified, in order; then the removed ones with a minus."""
    new = [name for name, mark in after.items() if before.get(name) != mark]
    return new + [f"-{name}" for name in before if name not in after]
