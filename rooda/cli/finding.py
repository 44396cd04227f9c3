"""What `rooda doctor` looks at, and what it finds."""

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from rooda.base.json import Json
from rooda.settings import layers
from rooda.settings.where import Where

GOOD, WARN, BAD, INFO = "ok", "warn", "fail", "info"


class Finding(NamedTuple):
    """One thing that was looked at. `fail`: a loop can't run; `warn`: it can, with less."""

    what: str
    status: str
    detail: str
    do: str = ""


class Patient(NamedTuple):
    """The place that is examined; no settings where they can't be read."""

    where: Where
    settings: layers.Settings | None
    problem: str = ""
    agents: tuple[Json, ...] = ()  # those that are here; each was asked for its version


Look: TypeAlias = Callable[[Patient], Iterator[Finding]]
