"""Writes the defaults of the settings' rows into config/rooda.toml. Run: python tools/defaults.py

It changes the values of [loop] and of the tables of the kinds of loops, keeps order and comments, appends a new key to
its table and a new table before those of the agents. With --print it prints the file instead; a test compares the
output with the file.
"""

import os
import sys
from collections.abc import Iterator

from making import made

from rooda.loops import registry
from rooda.settings.schema import LOOP
from rooda.settings.toml import toml_value
from rooda.settings.types import Key

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SHIPPED = os.path.join(ROOT, "config", "rooda.toml")
TABLES: dict[str, dict[str, Key]] = {"loop": LOOP, **registry.own_keys()}


def text(before: str) -> str:
    parts = before.split("\n[")
    heads = [part.partition("]")[0] for part in parts]
    first = next(at for at, head in enumerate(heads) if head.startswith("agents."))
    parts[first:first] = [f"{name}]\n" for name in TABLES if name not in heads]
    return "\n[".join("\n".join(_lines(part)) for part in parts)


def _lines(part: str) -> Iterator[str]:
    """The lines of one table with its defaults. The first line is `name]`."""
    head, *lines = part.split("\n")
    rows = TABLES.get(head.removesuffix("]"))
    yield head
    if rows is None:
        yield from lines
        return
    found = {key: f"{key} = {toml_value(row.default)}" for key, row in rows.items() if row.default is not None}
    keys = [line.partition(" = ")[0] for line in lines]
    last = max((at for at, key in enumerate(keys) if key in rows), default=-1)
    yield from (found[key] for key in found if last < 0)
    for at, (line, key) in enumerate(zip(lines, keys, strict=True)):
        if key not in rows and not _is_setting(line):
            yield line
        elif key in found:
            yield found[key]
        if at == last:
            yield from (row for key, row in found.items() if key not in keys)


def _is_setting(line: str) -> bool:
    return " = " in line and not line.startswith("#")


if __name__ == "__main__":
    with open(SHIPPED, encoding="utf-8") as file:
        shipped = file.read()
    sys.exit(made(text(shipped), SHIPPED))
