"""ROODA_LOOP_<KEY>: the settings of [loop] from the environment."""

from collections.abc import Mapping
from typing import Any

from rooda.settings.kinds import Kind, meant, shown
from rooda.settings.schema import LOOP, OLDER, VARIABLES, variable_of
from rooda.settings.toml import Tree
from rooda.settings.types import called


def environment(environ: Mapping[str, str]) -> tuple[Tree, list[str], list[str]]:
    """The tree that the variables make, what is wrong with them, and warnings. An empty variable is not set."""
    loop: Tree = {}
    problems: list[str] = []
    warnings: list[str] = []
    for variable in sorted(name for name in environ if name.startswith(VARIABLES) and environ[name].strip()):
        key = variable.removeprefix(VARIABLES).lower() if variable.isupper() else ""
        if key in OLDER:
            warnings.append(f"{variable}: is now called {variable_of(OLDER[key])}")
            key = OLDER[key]
        if key not in LOOP:
            warnings.append(f"{variable}: unknown variable{_known(variable, key)}")
            continue
        value, faults = _value(LOOP[key].kind, environ[variable])
        problems += [f"{variable} {fault}" for fault in faults]
        loop.setdefault(key, value)
    return ({"loop": loop} if loop else {}), problems, warnings


def _known(variable: str, key: str) -> str:
    if other := called(key, LOOP):
        return f"; did you mean {variable_of(other)!r}?"
    return meant(variable, [variable_of(name) for name in LOOP])


def _value(kind: Kind, text: str) -> tuple[Any, list[str]]:
    try:
        value = kind.read(text)
    except (ValueError, OverflowError):
        return None, [f"{kind.expected}, got {shown(text)}"]
    return value, [fault.text for fault in kind.faults(value)]
