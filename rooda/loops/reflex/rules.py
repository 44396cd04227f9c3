"""Parses and checks the rules of a loop, names loops, and compares the sections of artifacts."""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rooda.base.json import Json

WEIGHTS = {"fail": 2, "warn": 1, "info": 0}  # severity: default weight
LEVELS = ("A", "B")
THRESHOLDS = {"A": 0.8, "B": 0.9}
ACTIVE = {"A": ("A",), "B": ("A", "B")}
NAME, VERSION = "loop_default_v1", 1
_ID = re.compile(r"[ab]\.[a-z0-9_-]+\.[a-z0-9_-]+")


class Rule(NamedTuple):
    """One rule that an artifact must meet."""

    id: str
    description: str
    severity: str  # fail | warn | info
    weight: int | float
    phase: str  # A | B
    check: str


class Criteria(NamedTuple):
    """The rules and thresholds that the user confirms; stored in `run.json`."""

    rules: tuple[Rule, ...]
    thresholds: Mapping[str, float] = THRESHOLDS
    name: str = NAME
    version: int = VERSION
    strict: bool = False  # warnings alone do not end the loop


class Draft(NamedTuple):
    """Parsed criteria, with the faults found in them."""

    criteria: Criteria
    faults: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()  # unknown keys of rules


def stored(criteria: Criteria) -> Json:
    """Return the criteria in the form that `run.json` stores."""
    phases = {
        level: {"threshold": criteria.thresholds[level], "active_levels": list(ACTIVE[level])} for level in LEVELS
    }
    rules = [rule._asdict() for rule in criteria.rules]
    strict = {"strict": True} if criteria.strict else {}
    return {"name": criteria.name, "version": criteria.version, "phase": phases, "rules": rules, **strict}


def drafted(data: Any) -> Draft:
    """Parse a list of rules, or an object with `rules` and optional thresholds."""
    table = {"rules": data} if isinstance(data, list) else data
    if isinstance(table, dict) and isinstance(table.get("criteria"), dict):
        table = table["criteria"]
    if not isinstance(table, dict) or not isinstance(table.get("rules"), list):
        return Draft(Criteria(()), ("expected a list of rules, or an object with the key 'rules'",))
    thresholds, faults = _thresholds(table)
    rules: list[Rule] = []
    for place, raw in enumerate(table["rules"], 1):
        rule, wrong = _rule(raw)
        who = raw.get("id") if isinstance(raw, dict) and raw.get("id") else f"number {place}"
        faults += [f"rule {who}: {what}" for what in wrong]
        rules += [rule] if rule else []
    faults += _together(rules, len(table["rules"]))
    unknown = {key: None for raw in table["rules"] if isinstance(raw, dict) for key in raw if key not in Rule._fields}
    name, version = table.get("name", NAME), table.get("version", VERSION)
    if not isinstance(name, str) or not name or type(version) is not int:
        return Draft(Criteria(()), (*faults, "name must be a string and version an integer"))
    return Draft(Criteria(tuple(rules), thresholds, name, version), tuple(faults), tuple(unknown))


def _together(rules: Sequence[Rule], written: int) -> list[str]:
    if not written:
        return ["there must be at least one rule"]
    ids = [rule.id for rule in rules]
    return [f"rule {each}: its id is used twice" for each in dict.fromkeys(ids) if ids.count(each) > 1]


def _thresholds(table: Json) -> tuple[dict[str, float], list[str]]:
    """Return the thresholds, from `phase.A.threshold` as in run.json or from `thresholds.A`, and their faults."""
    found, faults = dict(THRESHOLDS), []
    given = table.get("thresholds", {})
    if not isinstance(given, dict) or not {*given} <= {*LEVELS}:
        faults.append(f"thresholds must be an object with the keys {' and '.join(LEVELS)}, got {given!r}")
    for level in LEVELS:
        for value in (_inside(table, "phase", level, "threshold"), _inside(table, "thresholds", level)):
            if value is None:
                continue
            if is_number(value) and 0 <= value <= 1:
                found[level] = value
            else:
                faults.append(f"the threshold of phase {level} must be a number from 0 to 1")
    return found, faults


def _inside(table: Any, *keys: str) -> Any:
    for key in keys:
        table = table.get(key) if isinstance(table, dict) else None
    return table


def is_number(value: Any) -> bool:
    """True for a finite number that is not too large; False for booleans."""
    return type(value) in (int, float) and abs(value) < 1e15


def _rule(raw: Any) -> tuple[Rule | None, list[str]]:
    """Return the rule with defaults filled in (None if it is invalid) and its faults."""
    if not isinstance(raw, dict):
        return None, ["it must be an object"]
    name, severity = raw.get("id"), raw.get("severity")
    if not isinstance(name, str) or not _ID.fullmatch(name):
        return None, ["its id must have the form <a|b>.<category>.<specific>, in lowercase letters, digits, - and _"]
    if not isinstance(severity, str) or severity not in WEIGHTS:
        return None, [f"its severity must be one of {', '.join(WEIGHTS)}, got {severity!r}"]
    level = raw.get("phase", name[0].upper())
    if level not in LEVELS or level.lower() != name[0]:
        return None, [f"its phase must be {name[0].upper()}, as its id begins with {name[0]!r}, got {level!r}"]
    weight = raw.get("weight", WEIGHTS[severity])
    if not is_number(weight) or weight < 0 or (severity == "info" and weight != 0):
        return None, ["its weight must be a number >= 0, and 0 for an info rule"]
    description, check = raw.get("description") or "", raw.get("check") or ""
    if not isinstance(description, str) or not isinstance(check, str):
        return None, ["description and check must be strings"]
    description, check = description.strip(), check.strip()
    if not (description or check):
        return None, ["description and check are empty: at least one of them must state the rule"]
    # A rule without a check gets one from its description; the user confirms it with the other rules.
    return Rule(name, description or check, severity, weight, level, check or f"Verify: {description}"), []


def active(rules: Sequence[Json], level: str) -> list[Json]:
    """Return the stored rules that are active at this level."""
    return [rule for rule in rules if rule["phase"] in ACTIVE[level]]


# The name of a loop is also the name of its folder.
LONGEST, SHORTEST = 48, 3  # characters of a name derived from a task; a number may follow
MOST = 64  # most characters of any name
_ALIAS = re.compile(rf"(?=.{{3,{MOST}}}\Z)[a-z0-9]+(?:-[a-z0-9]+)*")


def is_alias(name: str) -> bool:
    return bool(_ALIAS.fullmatch(name))


def alias_of(task: str) -> str:
    """Derive a short name from the task's first words."""
    plain = unicodedata.normalize("NFKD", task.casefold()).encode("ascii", "ignore").decode()
    words = re.findall(r"[a-z0-9]+", plain.replace("'", ""))
    name = words[0][:LONGEST] if words else "task"
    for word in words[1:]:
        if len(name) + 1 + len(word) > LONGEST:
            break
        name += f"-{word}"
    return name if len(name) >= SHORTEST else f"task-{name}"


def numbered(name: str, number: int) -> str:
    """Append a number of 2 or more to a name, shortened so that the result is valid."""
    if number < 2:
        return name
    end = f"-{number}"
    return name[: MOST - len(end)].rstrip("-") + end


# Sections of an artifact, by heading.
TOP = "(beginning)"
_HEADING = re.compile(r" {0,3}#{1,6}[ \t](.*)$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def sections(text: str) -> dict[str, str]:
    """Map each heading to its section's text. Repeated headings are numbered; headings in code blocks don't count."""
    found: dict[str, list[str]] = {}
    numbers: dict[str, int] = {}
    name, fence = TOP, ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
        heading = None if fence or mark else _HEADING.match(line)
        if heading:
            name = _unused(heading[1].rstrip(" \t").rstrip("#").strip(" \t") or TOP, found, numbers)
        found.setdefault(name, []).append(line)
    if not "".join(found.get(TOP, ["-"])).strip():
        del found[TOP]
    return {name: "\n".join(lines) + "\n" for name, lines in found.items()}


def _unused(name: str, taken: Mapping[str, list[str]], numbers: dict[str, int]) -> str:
    """Return the heading, numbered if it is taken. `numbers`: the last number used for each heading."""
    each = name
    while each in taken:
        numbers[name] = numbers.get(name, 1) + 1
        each = f"{name} ({numbers[name]})"
    return each


def hashes(text: str, digest: Callable[[bytes], str]) -> dict[str, str]:
    """Map each heading to the first 8 characters of its section's hash."""
    found = sections(text).items()
    return {name: digest(body.rstrip().encode("utf-8", "surrogateescape"))[:8] for name, body in found}


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return the names of added and modified sections in order, then of removed ones, prefixed with a minus."""
    new = [name for name, mark in after.items() if before.get(name) != mark]
    return new + [f"-{name}" for name in before if name not in after]
