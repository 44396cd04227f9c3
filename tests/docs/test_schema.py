"""The JSON Schema of rooda.toml, with which editors complete and check it."""

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from rooda.errors import ConfigProblem
from rooda.loops import configuration
from tests.kit.pages import ROOT
from tests.kit.workspace import Workspace

PATH = ROOT / "config" / "rooda.schema.json"
VALIDATOR = Draft7Validator(json.loads(PATH.read_text()))

WRONG = {
    "a misspelt key": "[loop]\nmodle = 'x'",
    "a misspelt table": "[lopo]\nmodel = 'x'",
    "a negative limit": "[loop]\nmax_cost = -1",
    "a text for a number": "[loop]\nfailure_threshold = 'three'",
    "an unknown choice": "[loop]\nsandbox = 'strong'",
    "a procedure with the name of a command": "[procedures.status]\nact = 'x'",
    "a hook that is a number": "[hooks]\ndone = 3",
    "a gate without a command": "[[loop.quality_gates]]\nname = 'tests'",
    "an agent's command that is a list": "[agents.mine]\ncommand = ['my-agent']",
    "a price that is a text": "[prices.'m']\ninput = 'cheap'",
}


def faults(toml: str) -> list[str]:
    return [error.message for error in VALIDATOR.iter_errors(tomllib.loads(toml))]


def nodes(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema in the schema, with its path."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from nodes(inner, f"{path}/{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from nodes(schema[key], f"{path}/{key}")
    for inner in schema.get("anyOf", ()):
        yield from nodes(inner, f"{path}/anyOf")


def test_E_36_the_schema_of_the_settings_is_current(bare: Workspace) -> None:
    """It is what tools/settings_schema.py makes today, `rooda config schema` prints it, and it is a valid schema."""
    made = subprocess.run(
        [sys.executable, "tools/settings_schema.py", "--print"], cwd=ROOT, capture_output=True, text=True
    )
    assert made.stdout == PATH.read_text() == bare.rooda("config", "schema").out, made.stderr
    VALIDATOR.check_schema(VALIDATOR.schema)


def test_E_36_shipped_and_written_settings_are_valid(bare: Workspace) -> None:
    """The defaults, what `rooda init` writes, and the settings of the demo projects."""
    bare.rooda("init", "--demo", "demo")
    bare.rooda("init", "--demo", "tasks", "--tasks")
    bare.rooda("flow", "setup", "--demo", "flow")
    demos = [Path(bare.path, name, "rooda.toml").read_text() for name in ("demo", "tasks", "flow")]
    shipped = [(ROOT / "config" / name).read_text() for name in ("rooda.toml", "procedures.toml")]
    for toml in (*shipped, *demos, bare.rooda("init", "--print").out):
        assert faults(toml) == []


@pytest.mark.parametrize("toml", WRONG.values(), ids=WRONG)
def test_E_36_wrong_settings_are_invalid_for_the_editor_and_for_rooda(bare: Workspace, toml: str) -> None:
    """The schema finds what rooda refuses or warns about."""
    assert faults(toml)
    bare.config(toml)
    try:
        assert configuration.load(bare.path, environ={"HOME": bare.home}).warnings
    except ConfigProblem:
        pass


def test_the_schema_is_ready_for_a_catalogue() -> None:
    """Draft 7 with `$id`, title, the files it is for; every key and table described; one type a node, as ajv wants."""
    schema = json.loads(PATH.read_text())
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert schema["$id"] == "https://json.schemastore.org/rooda.json" and schema["title"] and schema["description"]
    assert schema["x-taplo-info"]["patterns"] == [r"^(.*(/|\\)rooda\.toml|rooda\.toml)$"]
    for path, node in nodes(schema):
        assert isinstance(node.get("type"), str) or "anyOf" in node, path
        for name, inner in node.get("properties", {}).items():
            assert inner.get("description"), f"{path}/{name}"
