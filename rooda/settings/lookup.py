"""One procedure's settings by precedence: what a person wrote beats what ships, the closer beats the general."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from rooda.settings.check import dotted, tables
from rooda.settings.layers import Layer, Settings, flag_layer, merge
from rooda.settings.schema import LOOP
from rooda.settings.toml import Path


class Place(NamedTuple):
    """A table that may hold a procedure's setting."""

    table: Mapping[str, Any]
    layer: Layer
    path: Path


class Found(NamedTuple):
    """A value and who said it."""

    value: Any
    layer: Layer
    path: Path

    @property
    def origin(self) -> str:
        return self.layer.origin(self.path)

    @property
    def where(self) -> str:
        """The beginning of a sentence about it: FILE:LINE: KEY, or the flag or variable."""
        if self.layer.path:
            return f"{self.layer.at(self.path)}: {dotted(self.path)}"
        return self.layer.place(self.path)


class Lookup(NamedTuple):
    """Everything that can be asked about one procedure."""

    settings: Settings
    name: str
    places: tuple[Place, ...]  # strongest first

    def find(self, *keys: str) -> Found | None:
        """The first place that has one of the keys; within a place the first key."""
        for table, layer, path in self.places:
            for key in keys:
                if key in table:
                    return Found(table[key], layer, (*path, key))
        return None

    def value(self, key: str, default: Any = None) -> Any:
        """A key whose row has a default needs none here: config/rooda.toml has it."""
        found = self.find(key)
        return default if found is None else found.value

    def merged(self, key: str) -> dict[str, Any]:
        """A table setting such as parameters, merged over all places."""
        merged: dict[str, Any] = {}
        for table, _, _ in reversed(self.places):
            merged = merge(merged, table.get(key, {}))
        return merged


def lookup(settings: Settings, name: str, flags: Mapping[str, Any]) -> Lookup:
    """flag > a person's [procedures.NAME] > a person's [loop] > shipped [procedures.NAME] > shipped [loop]."""
    return _lookup(settings, name, ("procedures", name), flags)


def lookup_kind(settings: Settings, kind: str, flags: Mapping[str, Any]) -> Lookup:
    """The same for a kind of loop: [reflex], [flow] and [goal] beat [loop]."""
    return _lookup(settings, kind, (kind,), flags)


def _lookup(settings: Settings, name: str, own: tuple[str, ...], flags: Mapping[str, Any]) -> Lookup:
    flag = flag_layer(flags)
    places = [Place(flag.tree, flag, ())]
    for layers in (settings.written, settings.shipped):
        for path in (own, ("loop",)):
            places += [Place(layer.table(*path), layer, path) for layer in layers]
    return Lookup(settings, name, tuple(place for place in places if place.table))


# Every setting with its value and where it came from, for people.


def origins(settings: Settings) -> list[tuple[str, Any, str]]:
    """(dotted key, value, origin) of all that is set, table by table."""
    rows = []
    for name in tables(settings.own_keys):
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
