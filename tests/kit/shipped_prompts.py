"""The built-in procedures as they ship, read the way rooda reads them: TOML, fragments, parameters, assembly."""

import os
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from rooda.base.dirs import shipped
from rooda.loops.procedure.model import PHASES
from rooda.loops.procedure.prompts import assemble
from rooda.run.placeholders import substitute

BUILTIN = "builtin:"


class Use(NamedTuple):
    """A fragment as a procedure uses it."""

    procedure: str
    phase: str
    path: str  # below prompts/
    parameters: Mapping[str, str] | None


@cache
def procedures() -> dict[str, Any]:
    with open(shipped("config", "procedures.toml"), "rb") as file:
        tables: dict[str, Any] = tomllib.load(file)["procedures"]
    return tables


def uses() -> Iterator[Use]:
    for name, table in procedures().items():
        for phase in PHASES:
            for item in table[phase]:
                path, parameters = (item, None) if isinstance(item, str) else (item["path"], item["parameters"])
                assert path.startswith(BUILTIN), (name, path)
                yield Use(name, phase, path.removeprefix(BUILTIN), parameters)


@cache
def fragments() -> dict[str, str]:
    """Text of every file of the four phase folders, by its path below prompts/."""
    found = {}
    for phase in PHASES:
        for name in os.listdir(shipped("prompts", phase)):
            with open(shipped("prompts", os.path.join(phase, name)), encoding="utf-8") as file:
                found[f"{phase}/{name}"] = file.read()
    return found


def text(use: Use) -> str:
    raw = fragments()[use.path]
    return raw if use.parameters is None else substitute(raw, use.parameters, use.path)


def prompt(procedure: str) -> str:
    mine = [use for use in uses() if use.procedure == procedure]
    return assemble({phase: [text(use) for use in mine if use.phase == phase] for phase in PHASES})


def user_page() -> str:
    with open(os.path.join(os.path.dirname(shipped("prompts")), "docs", "procedures.md"), encoding="utf-8") as file:
        return file.read()
