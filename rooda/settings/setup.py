"""From settings to what a reflex, flow or goal loop is run with."""

from collections.abc import Mapping
from typing import Any

from rooda.settings.agents import agent_of
from rooda.settings.budget import budget
from rooda.settings.hooks import hooks
from rooda.settings.lookup import Lookup, lookup_kind
from rooda.settings.tiers import Settings
from rooda.terms import Setup

_PLAIN = (
    *("token_budget", "token_encoding", "max_output_buffer", "safety"),
    *("show_ai_output", "log_level", "log_timestamp_format"),
)
_SECONDS = ("iteration_timeout", "idle_timeout", "kill_grace", "retry_wait")


def setup(settings: Settings, kind: str, flags: Mapping[str, Any]) -> tuple[Setup, Lookup]:
    """The shared settings of this kind of loop, and where to look for its own. `flags` is what was typed; it wins."""
    look = lookup_kind(settings, kind, flags)
    agent = agent_of(look)
    if agent is not None and agent.output != "text":
        from rooda.settings.prices import prices_of

        agent = agent._replace(prices=prices_of(settings))
    plain: dict[str, Any] = {key: found.value for key in _PLAIN if (found := look.find(key))}
    seconds: dict[str, Any] = {key: float(found.value) for key in _SECONDS if (found := look.find(key))}
    return Setup(agent, budget(look), hooks(settings), **plain, **seconds), look
