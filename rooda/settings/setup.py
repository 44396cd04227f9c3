"""From settings to what a loop of any kind is run with."""

from collections.abc import Mapping
from typing import Any

from rooda.settings.agents import agent_of, priced
from rooda.settings.budget import budget
from rooda.settings.hooks import hooks
from rooda.settings.lookup import Lookup, lookup_kind
from rooda.settings.tiers import Settings
from rooda.terms import Bounds, Setup

_PLAIN = (
    *("token_budget", "token_encoding", "safety"),
    *("show_ai_output", "log_level", "log_timestamp_format"),
)


def setup(settings: Settings, kind: str, flags: Mapping[str, Any]) -> tuple[Setup, Lookup]:
    """The shared settings of this kind of loop, and where to look for its own. `flags` is what was typed; it wins."""
    look = lookup_kind(settings, kind, flags)
    made = setup_of(settings, look)
    if made.agent is not None:  # the cost of a goal's raw command is estimated
        made = made._replace(agent=priced(made.agent, settings, raw=kind == "goal"))
    return made, look


def setup_of(settings: Settings, look: Lookup) -> Setup:
    """What all kinds of loops share, without prices."""
    found: dict[str, Any] = {key: value for key in _PLAIN if (value := look.value(key, None)) is not None}
    found["retry_wait"] = float(look.value("retry_wait", 5))
    return Setup(agent_of(look), budget(look), _bounds(look), hooks(settings), **found)


def _bounds(look: Lookup) -> Bounds:
    standard = Bounds()._asdict().items()
    return Bounds(**{key: type(value)(look.value(key, value)) for key, value in standard})
