"""Generates the tables of agents in docs/agents.md from config/rooda.toml. Run: python tools/agents.py

With --print it prints the page instead; a test compares the output with the file.
"""

import os
import sys
import tomllib
from collections.abc import Iterator
from typing import Any

from making import made

from rooda.views.agents_table import row_of

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, "docs", "agents.md")
BEGIN = "<!-- made from config/rooda.toml by: python tools/agents.py -->\n"
END = "<!-- end of what is made -->\n"
COMMANDS = ("agent", "command", "prompt", "first signal to stop it")
FACTS = ("agent", "unattended", "tokens", "dollars", "tool rules", "limits seen", "tested with")


def page() -> str:
    with open(PAGE, encoding="utf-8") as file:
        before, _, rest = file.read().partition(BEGIN)
    with open(os.path.join(ROOT, "config", "rooda.toml"), "rb") as settings:
        tables: dict[str, dict[str, Any]] = tomllib.load(settings)["agents"]
    agents = {name: {**tables.get(table.get("like", ""), {}), **table} for name, table in tables.items()}
    facts = (
        (f"`{name}`", *row_of(table, "tested" in table), table.get("tested", "-")) for name, table in agents.items()
    )
    commands = (_command(name, table) for name, table in agents.items())
    tables = "".join(_rows(COMMANDS, commands)) + "\n" + "".join(_rows(FACTS, facts))
    return f"{before}{BEGIN}{tables}{END}{rest.partition(END)[2]}"


def _command(name: str, table: dict[str, Any]) -> tuple[str, ...]:
    prompt = table.get("prompt", "argument" if "{prompt}" in table["command"] else "stdin")
    return f"`{name}`", f"`{table['command']}`", prompt, table.get("stop", "TERM")


def _rows(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    for row in (head, ("---",) * len(head), *rows):
        yield f"| {' | '.join(row)} |\n"


if __name__ == "__main__":
    sys.exit(made(page(), PAGE))
