"""Decides which tool calls an ACP agent may make, and answers its permission requests. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from rooda.agents.records import ToolRules

READING = frozenset({"read", "search", "fetch", "think"})  # ACP kinds of tools that change nothing
CHANGING = frozenset({"edit", "delete", "move"})
ASKING_MODES = ("ask", "approve", "default")  # the agent asks before it acts
FREE_MODES = ("agent-full-access", "yolo", "auto-approve")  # the agent never asks, and no second model decides
ALLOWING, REJECTING = ("allow_once", "allow_always"), ("reject_once", "reject_always")
_FIRST_WORD = re.compile(r"[\w.-]+")


def modes(rules: ToolRules) -> tuple[str, ...]:
    """Return the names of modes that suit the rules, best first."""
    return ASKING_MODES if rules.restrict else FREE_MODES


def allows(rules: ToolRules, kind: str, titles: Sequence[str]) -> bool:
    """True if the rules allow a tool call of this kind with these titles."""
    if rules.read_only and kind not in READING:
        return False
    if rules.allowed and not any(_matches(name, kind, titles) for name in rules.allowed):
        return False
    return not denies(rules, kind, titles)


def denies(rules: ToolRules, kind: str, titles: Sequence[str]) -> bool:
    """True if `rules.denied` names the tool call's kind, one of its titles, or the first word of a title."""
    first = [found[0] for title in titles if (found := _FIRST_WORD.match(title))]
    return any(_matches(name, kind, [*titles, *first]) for name in rules.denied)


def breaks(rules: ToolRules, kind: str, titles: Sequence[str]) -> bool:
    """True if a tool that ran without asking for permission broke the rules.

    `denied` always applies. `allowed` and `read_only` apply only to tools that may change something. If the agent is
    known to ask (`asks`), they apply to fewer kinds of tools, because such an agent runs harmless commands without
    asking.
    """
    if denies(rules, kind, titles):
        return True
    restricted = kind in CHANGING if rules.asks else kind not in READING
    return restricted and not allows(rules, kind, titles)


def outcome(options: Iterable[Mapping[str, Any]], allowed: bool) -> dict[str, Any]:
    """Return the answer to a permission request; prefer an option for this one call to an option for all calls."""
    offered = {str(option.get("kind")): option.get("optionId") for option in reversed([*options])}
    for kind in ALLOWING if allowed else REJECTING:
        if kind in offered:
            return {"outcome": {"outcome": "selected", "optionId": offered[kind]}}
    return {"outcome": {"outcome": "cancelled"}}


def is_allowing(answer: Mapping[str, Any], options: Iterable[Mapping[str, Any]]) -> bool:
    """True if the answer selects an option that allows the call."""
    chosen = answer["outcome"].get("optionId")
    return any(option.get("optionId") == chosen and option.get("kind") in ALLOWING for option in options)


def _matches(name: str, kind: str, titles: Sequence[str]) -> bool:
    """True if `name` is the kind, or a pattern that matches a whole title; * matches anything, and case is ignored."""
    wanted = name.casefold()
    pattern = wanted.replace("[", "[[]")
    return wanted == kind.casefold() or any(fnmatchcase(title.casefold(), pattern) for title in titles)
