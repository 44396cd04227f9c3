"""Generates config/rooda.schema.json from rooda/settings/schema.py. Run: python tools/settings_schema.py

With --print it prints the schema instead; a test compares the output with the file.
"""

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from making import made

from rooda.loops import registry
from rooda.settings.check import NAME, keys_of_kind
from rooda.settings.schema import (
    AGENT,
    BUDGET,
    FLEET,
    LOOP,
    OLDER,
    PRICE,
    PROCEDURE,
    RESERVED,
    SANDBOX,
    TASKS,
    TELEMETRY,
    TRUST,
    WORKTREE,
)
from rooda.settings.setup import HOOKS
from rooda.settings.types import COMMANDS, WORDS, Key, table_schema

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PATH = os.path.join(ROOT, "config", "rooda.schema.json")


WHAT = {
    "loop": "settings of every procedure; the other kinds of loops use those that agent calls need",
    "procedures": "procedures, and changes of built-in ones, by name",
    "reflex": "settings of reflex loops",
    "flow": "settings of flows",
    "goal": "settings of goals",
    "agents": "agent CLIs by name: their commands, and how rooda reads their output",
    "models": "the name that the agent gets for each word",
    "prices": "what models cost, for agents that report only tokens",
    "budget": "what counts when a cost is unknown",
    "ai_cmd_aliases": "the older form of agents, with only a command",
    "hooks": "commands and web addresses that are notified",
    "sandbox": "what agents and gates may see, change and reach",
    "worktree": "what --worktree prepares",
    "tasks": "tasks and their landing",
    "fleet": "the same tasks on many machines; only in the user's own settings",
    "telemetry": "export with OpenTelemetry",
    "trust": "workspaces whose settings rooda trusts; only in the user's own settings",
}


def schema() -> dict[str, Any]:
    found = _properties()
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "https://json.schemastore.org/rooda.json",
        "title": "rooda.toml",
        "description": "Settings of rooda, which runs AI coding CLIs in loops that end",
        "x-taplo-info": {"authors": [], "patterns": [r"^(.*(/|\\)rooda\.toml|rooda\.toml)$"]},
        "type": "object",
        "properties": {name: {**each, "description": WHAT[name]} for name, each in found.items()},
        "additionalProperties": False,
    }


def _properties() -> dict[str, Any]:
    names = {"pattern": f"^{NAME}$", "not": {"enum": sorted(RESERVED)}}
    return {
        "loop": _with_older(LOOP),
        "procedures": {**_tables(_with_older(PROCEDURE)), "propertyNames": names},
        **{kind: table_schema(keys_of_kind(own)) for kind, own in registry.own_keys().items()},
        "agents": _tables(table_schema(AGENT)),
        "models": WORDS.schema,
        "prices": _tables(table_schema(PRICE)),
        "budget": table_schema(BUDGET),
        "ai_cmd_aliases": COMMANDS.schema,
        "hooks": table_schema(HOOKS),
        "sandbox": table_schema(SANDBOX),
        "worktree": table_schema(WORKTREE),
        "tasks": table_schema(TASKS),
        "fleet": table_schema(FLEET),
        "telemetry": table_schema(TELEMETRY),
        "trust": table_schema(TRUST),
    }


def _with_older(keys: Mapping[str, Key]) -> dict[str, Any]:
    found = table_schema(keys)
    for old, new in OLDER.items():
        found["properties"][old] = {**keys[new].type.schema, "description": f"old name of {new}", "deprecated": True}
    return found


def _tables(each: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": each}


if __name__ == "__main__":
    sys.exit(made(json.dumps(schema(), indent=1) + "\n", PATH))
