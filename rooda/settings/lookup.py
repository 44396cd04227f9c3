"""Looks up a loop's settings: first those of the user, then built-in ones; specific tables before general ones."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from rooda.settings.check import dotted, tables
from rooda.settings.layers import FLAG, Layer, Settings, flag_layer, merge
from rooda.settings.schema import LOOP
from rooda.settings.toml import Path


class SearchedTable(NamedTuple):
    """A table that may hold a setting of the loop."""

    table: Mapping[str, Any]
    layer: Layer
    path: Path


class Found(NamedTuple):
    """The value of a setting, and the layer that it comes from."""

    value: Any
    layer: Layer
    path: Path

    @property
    def origin(self) -> str:
        return self.layer.origin(self.path)

    @property
    def where(self) -> str:
        """Return the setting's name in messages: `FILE:LINE: KEY`, the flag or the environment variable."""
        if self.layer.path:
            return f"{self.layer.file_line(self.path)}: {dotted(self.path)}"
        return self.layer.location(self.path)


class Lookup(NamedTuple):
    """Finds the settings of one loop."""

    settings: Settings
    name: str
    tables: tuple[SearchedTable, ...]  # strongest first

    def find(self, *keys: str) -> Found | None:
        """Return the value of the first of `keys` in the first table that sets any of them; None if no table does."""
        for table, layer, path in self.tables:
            for key in keys:
                if key in table:
                    return Found(table[key], layer, (*path, key))
        return None

    def value(self, key: str, default: Any = None) -> Any:
        """Return the value of a key.

        Pass `default` only for a key without a default in the schema (config/rooda.toml).
        """
        found = self.find(key)
        return default if found is None else found.value

    def gates(self) -> Found | None:
        """Return the setting `quality_gates`; None if it is not set, so that the gates of AGENTS.md apply.

        The procedure's value, built-in or not, comes before that of [loop]. With --gates, empty lists are ignored.
        """
        typed = next((each for each in self.tables if each.layer.tier == FLAG and "gates" in each.table), None)
        if typed and not typed.table["gates"]:
            return Found([], typed.layer, ("no_gates",))
        key = "quality_gates"
        found = [each for each in self.tables if each.table.get(key) or (not typed and key in each.table)]
        chosen = next((each for each in found if each.path[:1] == ("procedures",)), found[0] if found else None)
        return chosen and Found(chosen.table[key], chosen.layer, (*chosen.path, key))

    def merged(self, key: str) -> dict[str, Any]:
        """Return a setting that is itself a table, such as `parameters`, merged from all configuration tables."""
        merged: dict[str, Any] = {}
        for table, _, _ in reversed(self.tables):
            merged = merge(merged, table.get(key, {}))
        return merged


def lookup(settings: Settings, name: str, flags: Mapping[str, Any]) -> Lookup:
    """Return a `Lookup` that searches the flags, the user's [procedures.NAME] and [loop], then the built-in ones."""
    return _lookup(settings, name, ("procedures", name), flags)


def lookup_kind(settings: Settings, kind: str, flags: Mapping[str, Any]) -> Lookup:
    """Return a `Lookup` that searches the table of a kind of loop before [loop]."""
    return _lookup(settings, kind, (kind,), flags)


def _lookup(settings: Settings, name: str, own: tuple[str, ...], flags: Mapping[str, Any]) -> Lookup:
    flag = flag_layer(flags)
    searched = [SearchedTable(flag.tree, flag, ())]
    for layers in (settings.written, settings.shipped):
        for path in (own, ("loop",)):
            searched += [SearchedTable(layer.table(*path), layer, path) for layer in layers]
    return Lookup(settings, name, tuple(each for each in searched if each.table))


# Every setting with its value and origin, for `rooda config show` and `rooda info`.


def origins(settings: Settings) -> list[tuple[str, Any, str]]:
    """Return (dotted key, value, origin) of every setting, table by table."""
    rows = []
    for name in tables(settings.own_keys):
        for path, value in _leaves((name,), settings.table(name)):
            rows.append((dotted(path), value, settings.origin(path)))
    return rows


def agents_in_use(settings: Settings) -> set[str]:
    """Return the agents that the user's layers change or choose, and those that they inherit from or fall back to."""
    agents, found = settings.table("agents"), set[str]()
    named = [name for layer in settings.written for name in layer.table("agents")]
    for name in tables(settings.own_keys):
        named += _agents_named(settings.table(name)) if name != "agents" else []
    while named:
        if (name := named.pop()) in agents and name not in found:
            found.add(name)
            named += _agents_named(agents[name])
    return found


def _agents_named(table: Mapping[str, Any]) -> list[str]:
    values = [value for path, value in _leaves((), table) if path[-1] in ("agent", "fallback", "like")]
    return [name for value in values for name in (value if isinstance(value, list) else [value])]


def decided(settings: Settings, name: str, flags: Mapping[str, Any]) -> list[tuple[str, Any, str]]:
    """Return (key, value, origin) of each setting that a run of the procedure would use."""
    look = lookup(settings, name, flags)
    rows = ((key, look.gates() if key == "quality_gates" else look.find(key)) for key in LOOP)
    return [(key, found.value, found.origin) for key, found in rows if found]


def _leaves(path: Path, table: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from _leaves((*path, key), value)
        else:
            yield (*path, key), value
