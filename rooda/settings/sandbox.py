"""Resolves the sandbox of a loop from the settings. A workspace may only tighten what the user has set."""

from collections.abc import Iterator
from typing import Any

from rooda.agents.records import Agent
from rooda.base.json import Json
from rooda.run.setup import Sandbox, Setup
from rooda.settings.layers import BUILT_IN, WORKSPACE, Layer, Settings, ancestors
from rooda.settings.lookup import Lookup
from rooda.settings.schema import GATE_NETWORKS, NETWORKS, SANDBOX, SANDBOXES

OFF = "off"
LISTS = ("hosts", "read", "write", "hide", "environment", "allow")
LIMITS = ("max_memory", "max_processes", "max_output")


def with_sandbox(setup: Setup, settings: Settings, look: Lookup) -> Setup:
    """Return the setup with the sandbox of its commands, its agent and its fallbacks."""
    more: Json = {key: (*_united(settings, key), *look.value(key, ())) for key in LISTS}
    more |= {key: _least(settings, key) for key in LIMITS}
    made = Sandbox(
        names_hosts=any(True for _ in _values(settings, "hosts")) or look.find("hosts") is not None,
        mode=_mode(look, settings, ""),
        network=_strictest(settings, "network", NETWORKS, Sandbox().network),
        gate_network=_strictest(settings, "gate_network", GATE_NETWORKS, Sandbox().gate_network),
        gates=_gates(settings),
        **more,
    )
    agent = setup.agent and _walled(look, settings, setup.agent)
    if not made.gates:
        made = made._replace(mode=OFF)
    return setup._replace(sandbox=made, agent=agent)


def _walled(look: Lookup, settings: Settings, agent: Agent) -> Agent:
    fallback = tuple(_walled(look, settings, each) for each in agent.fallback)
    table = settings.agents().get(agent.name, {})
    lists: Json = {key: tuple(table[key]) for key in ("hosts", "variables", "login", "own_files") if key in table}
    return agent._replace(sandbox=_mode(look, settings, agent.name), fallback=fallback, **lists)


def _mode(look: Lookup, settings: Settings, agent: str) -> str:
    """Return the mode of an agent or, if `agent` is "", of commands.

    An option or variable decides; else the stricter of the user's and the workspace's modes; else the default.
    """
    for each in look.tables:
        if "sandbox" in each.table and each.layer.tier not in (WORKSPACE, BUILT_IN) and not each.layer.path:
            return str(each.table["sandbox"])
    found = [mode for tier in _tiers(settings) if (mode := _of_layer(look, settings, tier, agent))]
    return max(found, key=SANDBOXES.index, default=OFF)


def _tiers(settings: Settings) -> list[Layer]:
    return [layer for layer in settings.written if layer.path]


def _of_layer(look: Lookup, settings: Settings, layer: Layer, agent: str) -> str:
    """Return the mode that one file sets: for the loop, else for the agent, else for all loops; "" if it sets none."""
    own = [each.table for each in look.tables if each.layer is layer and each.path != ("loop",)]
    agents = [layer.table("agents", name) for name in ancestors(settings.table("agents"), agent)]
    tables = (*own, *agents, layer.table("loop"))
    return next((str(table["sandbox"]) for table in tables if "sandbox" in table), "")


def _values(settings: Settings, key: str) -> Iterator[Any]:
    for layer in _tiers(settings):
        if key in (table := layer.table("sandbox")):
            yield SANDBOX[key].converted(table[key])


def _strictest(settings: Settings, key: str, words: tuple[str, ...], default: str) -> str:
    """Return the strictest value; `words` begin with the strictest."""
    return min((str(value) for value in _values(settings, key)), key=words.index, default=default)


def _gates(settings: Settings) -> bool:
    values = list(_values(settings, "gates"))
    return any(values) if values else Sandbox().gates


def _united(settings: Settings, key: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(name) for names in _values(settings, key) for name in names))


def _least(settings: Settings, key: str) -> int:
    return min((int(value) for value in _values(settings, key) if value), default=0)
