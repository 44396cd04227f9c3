"""Finds the errors and warnings in a settings file."""

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

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
    SHARED,
    TASKS,
    TELEMETRY,
    TRUST,
    WORKTREE,
)
from rooda.settings.toml import Lines, Path, Tree
from rooda.settings.types import (
    COMMANDS,
    WORDS,
    Fault,
    Hints,
    Key,
    ValueType,
    did_you_mean,
    is_near,
    shown,
    table_faults,
    table_of,
)

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
OwnKeys: TypeAlias = Mapping[str, Mapping[str, Key]]  # keys that only one kind of loop has, per table


def tables(own_keys: OwnKeys) -> tuple[str, ...]:
    """Return the names of all tables, in display order."""
    further = (
        "agents",
        "models",
        "prices",
        "budget",
        "ai_cmd_aliases",
        "hooks",
        "worktree",
        "sandbox",
        "tasks",
        "fleet",
        "telemetry",
        "trust",
    )
    return ("loop", "procedures", *own_keys, *further)


def keys_of_kind(own: Mapping[str, Key]) -> dict[str, Key]:
    """Return all keys that the table of a kind of loop may have; keys that only this kind has come first."""
    return {**own, **SHARED, **own}


def faults_of(tree: Tree, own_keys: OwnKeys) -> list[Fault]:
    faults, known = [], tables(own_keys)
    Hints.left = Hints.MOST
    for name, value in tree.items():
        if name not in known:
            near, text = is_near(name, known), f"unknown {_thing(value)}{_root_hint(name, known)}"
            faults.append(Fault((name,), text, warning=True, near=near))
        elif not isinstance(value, dict):
            faults.append(Fault((name,), f"must be a table, got {shown(value)}"))
        else:
            faults += [fault.under(name) for fault in _table(name, value, own_keys)]
    return faults


def _thing(value: Any) -> str:
    return "table" if isinstance(value, dict) else "key"


def _root_hint(name: str, known: tuple[str, ...]) -> str:
    near = did_you_mean(name, known)
    if name in LOOP or name in OLDER:
        return f"; did you mean {name!r} in [loop]?"
    return near


def _table(name: str, value: Tree, own_keys: OwnKeys) -> list[Fault]:
    if name == "loop":
        return table_faults(value, LOOP)
    if name == "procedures":
        return _procedure_names(value) + table_of(_PROCEDURE, "procedures").faults(value)
    if name == "agents":
        return table_of(_AGENT, "agents").faults(value)
    if name == "fleet":
        return table_faults(value, FLEET)
    if name == "trust":
        return table_faults(value, TRUST)
    if name == "worktree":
        return table_faults(value, WORKTREE)
    if name == "telemetry":
        return table_faults(value, TELEMETRY)
    if name == "tasks":
        return table_faults(value, TASKS)
    if name == "sandbox":
        return table_faults(value, SANDBOX)
    if name == "budget":
        return table_faults(value, BUDGET)
    if name == "prices":
        return table_of(_PRICE, "prices").faults(value)
    if name == "hooks":
        from rooda.settings.setup import HOOKS

        return table_faults(value, HOOKS)
    if own := own_keys.get(name):
        return table_faults(value, keys_of_kind(own))
    return (WORDS if name == "models" else COMMANDS).faults(value)


_PROCEDURE = ValueType("must be a table", lambda value: table_faults(value, PROCEDURE))
_AGENT = ValueType("must be a table", lambda value: table_faults(value, AGENT))
_PRICE = ValueType(
    "must be a table", lambda value: [fault._replace(near=False) for fault in table_faults(value, PRICE)]
)


def _procedure_names(procedures: Tree) -> list[Fault]:
    faults = []
    for name in procedures:
        if name in RESERVED:
            faults.append(Fault((name,), f"{name!r} is a rooda command; give the procedure another name"))
        elif not re.fullmatch(NAME, name):
            faults.append(
                Fault(
                    (name,),
                    "a procedure name has letters, digits, '.', '_' or '-', and begins with a letter or digit",
                )
            )
    return faults


def dotted(path: Path) -> str:
    """Format a path as `loop.quality_gates[0].name`; keys that TOML would quote are quoted."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += ("." if text else "") + (part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else repr(part))
    return text


def rename_old_keys(tree: Tree, lines: Lines) -> list[Fault]:
    """Rename keys with old names in place; return a warning for each."""
    notices = []
    named_tables = tree.get("procedures")
    tables: list[tuple[Path, object]] = [(("loop",), tree.get("loop"))]
    if isinstance(named_tables, dict):
        tables += [(("procedures", name), table) for name, table in named_tables.items()]
    for path, table in tables:
        for old, new in OLDER.items():
            if isinstance(table, dict) and old in table:
                notices.append(Fault((*path, old), f"is now called {new!r}", warning=True))
                lines.setdefault((*path, new), lines.get((*path, old), 0))
                table.setdefault(new, table.pop(old))
    return notices
