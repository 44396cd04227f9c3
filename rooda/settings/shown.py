"""Every setting with its value and where it came from, for people."""

from collections.abc import Iterator, Mapping
from typing import Any

from rooda.settings.check import dotted
from rooda.settings.layers import Settings
from rooda.settings.lookup import lookup
from rooda.settings.loop_kinds import TABLES
from rooda.settings.schema import LOOP
from rooda.settings.toml import Path


def origins(settings: Settings) -> list[tuple[str, Any, str]]:
    """(dotted key, value, origin) of all that is set, table by table."""
    rows = []
    for name in TABLES:
        for path, value in _leaves((name,), settings.table(name)):
            rows.append((dotted(path), value, settings.origin(path)))
    return rows


def decided(settings: Settings, name: str, flags: Mapping[str, Any]) -> list[tuple[str, Any, str]]:
    """(key, value, origin) of the settings one run of a procedure goes by."""
    look = lookup(settings, name, flags)
    return [(key, found.value, found.origin) for key in LOOP if (found := look.find(key))]


def _leaves(path: Path, table: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from _leaves((*path, key), value)
        else:
            yield (*path, key), value
