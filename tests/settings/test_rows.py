"""Each setting is one row: its option, variable, default, place in a run and stay over a resume follow from it."""

import subprocess
import sys
import tomllib
from operator import attrgetter
from pathlib import Path
from typing import Any

import click
import pytest

from rooda.loops import options, registry, remembered
from rooda.loops.procedure import settings
from rooda.settings.check import keys_of_kind
from rooda.settings.layers import environment
from rooda.settings.schema import LOOP, PROCEDURE, flag_of, variable_of
from rooda.settings.toml import toml_value
from rooda.settings.types import ALL, GATES, PARAMETERS, Key
from tests.kit.tiers import OWN as MINE
from tests.kit.tiers import Tiers

ROOT = Path(__file__).parents[2]
OWN = registry.own_keys()
TABLES = {"loop": LOOP, **OWN}
OPTIONS = [(key, row) for key, row in PROCEDURE.items() if row.flag]
KINDS_OPTIONS = [(kind, key, row) for kind, keys in OWN.items() for key, row in keys.items() if row.flag]
FILLED = [(key, row) for key, row in LOOP.items() if "." in row.into]
PLACES = {"procedure": "", "setup": "setup.", "budget": "setup.budget.", "bounds": "setup.bounds."}


def sample(row: Key) -> Any:
    """A valid value that is not the default, as TOML has it."""
    for value in (*row.type.choices, 2048, 2048.5, ["a", "b"], "3h", "text", not row.default):
        if not row.type.faults(value) and value != row.default:
            return value
    raise AssertionError(row)


def typed(row: Key, key: str) -> list[str]:
    """The words of the command line for the sample."""
    assert row.flag
    if row.flag.both or row.flag.switch or row.type.expected == "must be true or false":
        return [row.flag.flag(key)]
    return [row.flag.flag(key), "a=b" if row.type is PARAMETERS else str(sample(row))]


def parsed(params: list[click.Parameter], words: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = click.Command("start", params=params).make_context("start", words).params
    return found


@pytest.mark.parametrize("table", TABLES)
def test_each_default_is_shipped(table: str) -> None:
    """config/rooda.toml has the defaults of the rows, and no other keys in these tables."""
    shipped = tomllib.loads((ROOT / "config" / "rooda.toml").read_text())[table]
    assert shipped == {key: row.default for key, row in TABLES[table].items() if row.default is not None}


def test_the_shipped_file_is_current() -> None:
    """config/rooda.toml is what tools/defaults.py makes of it today."""
    made = subprocess.run([sys.executable, "tools/defaults.py", "--print"], cwd=ROOT, capture_output=True, text=True)
    assert made.stdout == (ROOT / "config" / "rooda.toml").read_text(), made.stderr


@pytest.mark.parametrize("table", TABLES)
def test_each_default_is_valid(table: str) -> None:
    """A default is a value that a file may have."""
    rows = TABLES[table].items()
    assert [key for key, row in rows if row.default is not None and row.type.faults(row.default)] == []


@pytest.mark.parametrize(("key", "row"), OPTIONS, ids=[key for key, _ in OPTIONS])
def test_each_option_sets_its_key(key: str, row: Key) -> None:
    """What is typed after a row's option is found under its key, at a start and at a resume."""
    assert row.flag and flag_of(key) == row.flag.flag(key)
    for params in (options.for_start(), options.for_resume()):
        assert list(options.run_options(parsed(params, typed(row, key))).flags) == [row.flag.sets or key]


@pytest.mark.parametrize(("key", "row"), OPTIONS, ids=[key for key, _ in OPTIONS])
def test_each_option_is_one_of_its_kinds(key: str, row: Key) -> None:
    """Reflex, flow and goal take the options of the keys that they share, and no other of a procedure's."""
    assert row.flag
    taken = {word for option in options.for_kind() for word in option.opts}
    assert (row.flag.flag(key) in taken) == (key in LOOP and row.kinds == ALL)


@pytest.mark.parametrize("kind", OWN)
def test_each_kind_takes_the_shared_keys(kind: str) -> None:
    """The keys for all kinds are valid in each kind's table, next to its own."""
    assert set(keys_of_kind(OWN[kind])) == {key for key, row in LOOP.items() if row.kinds == ALL} | set(OWN[kind])


@pytest.mark.parametrize(("kind", "key", "row"), KINDS_OPTIONS, ids=[f"{kind}.{key}" for kind, key, _ in KINDS_OPTIONS])
def test_each_option_of_a_kind_is_offered(kind: str, key: str, row: Key) -> None:
    """A row of one kind has its option at the kind's start."""
    assert row.flag
    offered = {word for option in registry.kind(kind).options() for word in option.opts}
    assert row.flag.flag(key) in offered


def test_a_resume_keeps_the_marked_rows() -> None:
    """KEPT holds the options of the rows that are kept, and --config."""
    rows = [item for keys in (PROCEDURE, *OWN.values()) for item in keys.items()]
    kept = {row.flag.parameter(key) for key, row in rows if row.flag and row.kept}
    assert set(remembered.KEPT) == kept | {"config"}
    assert [key for key, row in rows if row.kept and not row.flag] == []


@pytest.mark.parametrize("key", LOOP)
def test_each_key_has_a_variable(key: str) -> None:
    """The environment's word for a key is read as the key."""
    row = LOOP[key]
    text = "make" if row.type is GATES else toml_value(sample(row)).strip('"[]').replace('"', "")
    tree, problems, warnings = environment({variable_of(key): text})
    assert (list(tree["loop"]), problems, warnings) == ([key], [], [])


@pytest.mark.parametrize(("key", "row"), FILLED, ids=[key for key, _ in FILLED])
def test_each_value_arrives(key: str, row: Key, tiers: Tiers) -> None:
    """The record field that the row names has the value of the file, else the default."""
    name, _, field = row.into.partition(".")
    found = attrgetter(f"{PLACES[name]}{field}")
    tiers.write(MINE)
    assert found(tiers.procedure("mine")) == row.default
    tiers.write(f"[loop]\n{key} = {toml_value(sample(row))}\n", MINE)
    assert found(tiers.procedure("mine")) == row.converted(sample(row))


def test_a_setting_without_a_field_arrives_by_its_name(tiers: Tiers, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row whose `into` is setup is read with `setup.value`; a duration is in seconds."""
    row = LOOP["max_duration"]._replace(default=0, into="setup")
    monkeypatch.setitem(LOOP, "nap", row)
    tiers.write(MINE)
    assert tiers.procedure("mine").setup.value("nap", float) == 0.0
    tiers.write('[loop]\nnap = "2m"\n', MINE)
    assert tiers.procedure("mine").setup.value("nap", float) == 120.0
    assert settings.procedure(tiers.load(), "mine", {"nap": 7}).setup.value("nap", int) == 7
