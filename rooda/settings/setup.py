"""From settings to what a loop of any kind is run with."""

from collections.abc import Mapping
from typing import Any, TypeVar

from rooda.agents.records import Bounds
from rooda.run.setup import Budget, Setup
from rooda.settings.agents import agent_of, priced
from rooda.settings.hooks import hooks
from rooda.settings.layers import Settings
from rooda.settings.lookup import Lookup, lookup_kind
from rooda.settings.schema import LOOP

R = TypeVar("R", bound=tuple[Any, ...])


def setup(settings: Settings, kind: str, flags: Mapping[str, Any]) -> tuple[Setup, Lookup]:
    """The shared settings of this kind of loop, and where to look for its own. `flags` is what was typed; it wins."""
    look = lookup_kind(settings, kind, flags)
    made = setup_of(settings, look)
    if made.agent is not None:  # the cost of a goal's raw command is estimated
        made = made._replace(agent=priced(made.agent, settings, raw=kind == "goal"))
    return made, look


def setup_of(settings: Settings, look: Lookup) -> Setup:
    """What all kinds of loops share, without prices."""
    made = Setup(agent_of(look), filled(Budget(), look), filled(Bounds(), look), hooks(settings))
    further = {key: row.converted(look.value(key, row.default)) for key, row in LOOP.items() if row.into == "setup"}
    return filled(made, look)._replace(further=further)


def filled(record: R, look: Lookup) -> R:
    """The record with the fields that rows of the schema name with `into`, as far as they are set."""
    fields = {}
    for key, row in LOOP.items():
        name, _, field = row.into.partition(".")
        if field and name == type(record).__name__.lower() and (found := look.find(key)):
            fields[field] = type(getattr(record, field))(row.converted(found.value))
    made: R = record._replace(**fields)  # type: ignore[attr-defined]
    return made
