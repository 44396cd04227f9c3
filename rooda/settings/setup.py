"""Builds the `Setup` of a loop from the settings, with its hooks and prices."""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

from rooda.agents import prices as agents_prices
from rooda.agents.prices import Price, Prices
from rooda.agents.records import Bounds
from rooda.base import files
from rooda.base.dirs import shipped
from rooda.errors import ConfigProblem
from rooda.run.setup import Budget, Budgets, Hook, NewWorktree, Setup
from rooda.settings.agents import agent_of, with_prices
from rooda.settings.check import dotted
from rooda.settings.layers import USER, Settings, merge
from rooda.settings.lookup import Lookup, lookup_kind
from rooda.settings.schema import LOOP, PRICE
from rooda.settings.types import (
    COMMAND,
    FLAG,
    SECONDS,
    URL,
    Fault,
    Key,
    ValueType,
    shown,
    table_faults,
    table_schema,
    word,
)

R = TypeVar("R", bound=tuple[Any, ...])


def setup(settings: Settings, kind: str, flags: Mapping[str, Any], price_raw: bool = False) -> tuple[Setup, Lookup]:
    """Return the `Setup` of a loop of this kind, and a lookup for the settings that only this kind has.

    `flags`: command-line options, which override all settings. `price_raw`: set prices for a raw command too, so that
    its cost can be estimated.
    """
    look = lookup_kind(settings, kind, flags)
    made = setup_of(settings, look)
    if made.agent is not None:
        made = made._replace(agent=with_prices(made.agent, settings, raw=price_raw))
    return made, look


def setup_of(settings: Settings, look: Lookup) -> Setup:
    """Return the settings that all kinds of loops share, without prices."""
    made = Setup(agent_of(look), filled(Budget(), look), filled(Bounds(), look), hooks(settings))
    further = {key: row.converted(look.value(key, row.default)) for key, row in LOOP.items() if row.into == "setup"}
    table = settings.table("budget")
    price = float(table.get("unknown_call", 0))
    budgets = Budgets(float(table.get("day", 0)), float(table.get("project", 0)))
    made = filled(made, look)._replace(further=further, watch=settings.watch, worktree=new_worktree(settings))
    endpoint = str(settings.table("telemetry").get("endpoint", ""))
    made = made._replace(unknown_call=price, budgets=budgets, telemetry=endpoint)
    if not _wants_sandbox(settings, look):
        return made
    from rooda.settings import sandbox

    return sandbox.with_sandbox(made, settings, look)


def _wants_sandbox(settings: Settings, look: Lookup) -> bool:
    """True if a setting asks for a sandbox, or may limit resources."""
    agents = (table for layer in settings.written for table in layer.table("agents").values())
    asked = any(table.get("sandbox", "off") != "off" for table in (*(each.table for each in look.tables), *agents))
    return asked or any(layer.table("sandbox") for layer in settings.written)


def new_worktree(settings: Settings) -> NewWorktree:
    table = settings.table("worktree")
    own = [key for key in ("copy", "link") if settings.origin(("worktree", key)).startswith(USER)]
    return NewWorktree(table.get("setup", ""), tuple(table.get("copy", ())), tuple(table.get("link", ())), tuple(own))


def filled(record: R, look: Lookup) -> R:
    """Return a copy of the record with the settings that the schema assigns to its fields (`Key.into`)."""
    fields = {}
    for key, row in LOOP.items():
        name, _, field = row.into.partition(".")
        if field and name == type(record).__name__.lower() and (found := look.find(key)):
            fields[field] = type(getattr(record, field))(row.converted(found.value))
    made: R = record._replace(**fields)  # type: ignore[attr-defined]
    return made


# [hooks]: commands and web addresses that events are sent to.
HOOK = {
    "command": Key(COMMAND, "a shell command that gets the event on stdin"),
    "url": Key(URL, "a web address that the event is posted to"),
    "timeout": Key(SECONDS, "seconds after which rooda ends the hook; 10 by default"),
    "format": Key(
        word("json", "text", "slack", "discord", "ntfy"),
        "what is posted: the event as JSON (the default), a sentence about it as text, or a message for that service",
    ),
    "insecure": Key(FLAG, "true: post to an http address of another machine, although the network can read it"),
}


def _faults(value: Any) -> list[Fault]:
    if isinstance(value, str):
        return COMMAND.faults(value)
    if not isinstance(value, dict):
        return [Fault((), f"must be a command, or a table with command or url, got {shown(value)}")]
    faults = table_faults(value, HOOK)
    if ("command" in value) == ("url" in value):
        faults.append(Fault((), "must have either command or url, not both"))
    url = value.get("url")
    if "format" in value and "url" not in value:
        faults.append(
            Fault(
                ("format",), "applies only to hooks with a url; a hook with a command gets the event as JSON on stdin"
            )
        )
    if isinstance(url, str) and url.startswith("http://") and not _is_here(url) and value.get("insecure") is not True:
        faults.append(Fault(("url",), "must begin with https:// (http only on this machine, or with insecure = true)"))
    return faults


def _is_here(url: str) -> bool:
    """True if the address is on this machine."""
    from urllib.parse import urlsplit

    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    return host in ("localhost", "::1") or bool(re.fullmatch(r"127(?:\.\d{1,3}){3}", host, re.ASCII))


_HOOK = ValueType(
    "must be a command, or a table with command or url",
    _faults,
    schema={"anyOf": [COMMAND.schema, table_schema(HOOK)]},
)
HOOKS = {
    "done": Key(_HOOK, "the run ended as asked"),
    "failed": Key(
        _HOOK,
        "the run failed: failures in a row, a failure that a retry would repeat, or no success at the iteration limit",
    ),
    "paused": Key(_HOOK, "the run ended before its work was done, and can be resumed (exit 4)"),
    "stopped": Key(_HOOK, "a signal ended the run"),
    "stuck": Key(
        _HOOK, "the run ended without progress: failures in a row, a breaker, stagnation, an error in a node of a flow"
    ),
    "limit": Key(_HOOK, "the run waits until an account's usage limit resets, or ended at such a limit"),
    "budget": Key(_HOOK, "the run ended at a limit of money, tokens or time"),
    "needs_person": Key(_HOOK, "a question waits at the terminal, or the run ended and needs the user to continue"),
}


def hooks(settings: Settings) -> dict[str, Hook]:
    return {moment: _hook(value) for moment, value in settings.table("hooks").items()}


def _hook(value: Any) -> Hook:
    table = {"command": value} if isinstance(value, str) else value
    format = table.get("format", "json")
    return Hook(table.get("command", ""), table.get("url", ""), float(table.get("timeout", 10)), format)


# Prices: the built-in ones and the user's.


def prices_of(settings: Settings) -> Prices:
    """Return the built-in and the user's prices; a name in the user's settings replaces all built-in names it matches.

    The file with the built-in prices is read only if needed.
    """
    written = settings.table("prices")
    table = {
        name: price
        for name, price in shipped_prices().items()
        if name in written or not any(agents_prices.matches(each, agents_prices.names_of(name)) for each in written)
    }
    return {name: _price(settings, name, each) for name, each in merge(table, written).items()}


def shipped_prices() -> dict[str, Any]:
    import tomllib

    table: dict[str, Any] = tomllib.loads(files.text(shipped("config", "prices.toml")))["prices"]
    return table


def _price(settings: Settings, name: str, table: dict[str, Any]) -> Price:
    for key in ("input", "output"):
        if key not in table:
            where = settings.location(("prices", name))
            hint = f"The keys of a price are {', '.join(PRICE)}, in dollars per million tokens."
            raise ConfigProblem(f"{where}: {dotted(('prices', name))}: the key {key!r} is missing", hint)
    fresh = float(table["input"])
    return Price(fresh, float(table["output"]), float(table.get("cached", fresh)), float(table.get("written", fresh)))
