"""Formats what rooda knows about agents as one table, for `rooda agents` and docs/agents.md."""

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rooda.agents.reader import ACP, ASKING, of_program

HEAD = ("AGENT", "INSTALLED", "UNATTENDED", "TOKENS", "DOLLARS", "TOOL RULES", "LIMITS SEEN", "TESTED")
NONE = "-"
_FIRST = (0, 1, 2, 7)  # columns of the first of two tables, for a narrow terminal: what can be used here
_SECOND = (0, 3, 4, 5, 6)  # what rooda learns from the agent
_RULES = {"read_only": "read-only", "allow": "allow", "deny": "deny"}


class Row(NamedTuple):
    """What rooda knows about an agent from its settings, in words."""

    unattended: str  # yes | edits only | as documented | unknown
    tokens: str
    dollars: str
    rules: str
    limits: str


def row_of(table: Mapping[str, Any], tested: bool) -> Row:
    """Return the row of an agent; `tested`: its CLI was run with these settings, by rooda's tests or by the user."""
    known = table.get("known", ())
    dollars = "reported" if "cost" in known else "computed" if "usage" in known else NONE
    return Row(
        unattended=_unattended(table, tested),
        tokens="yes" if "usage" in known else NONE,
        dollars=dollars,
        rules=", ".join(word for key, word in _RULES.items() if key in table or _asks(table)) or NONE,
        limits="yes" if "limits" in known else NONE,
    )


def parts(table: Sequence[Sequence[str]]) -> list[list[list[str]]]:
    """Split the table into two narrower ones."""
    return [[[row[place] for place in places] for row in table] for places in (_FIRST, _SECOND)]


def _asks(table: Mapping[str, Any]) -> bool:
    """True for an ACP agent that asks before it changes anything, so that rooda's answers restrict it."""
    return table.get("output") == ACP and os.path.basename(shlex.split(table["command"])[0]) in ASKING


def _unattended(table: Mapping[str, Any], tested: bool) -> str:
    if table.get("documented_only"):
        return "as documented"
    if not tested:
        return "unknown"
    words = shlex.split(table.get("command", ""))
    return "yes" if not words or of_program(os.path.basename(words[0])).runs_commands else "edits only"
