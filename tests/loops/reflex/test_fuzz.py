"""Damaged files of a loop: whatever is in them, they are reported or refused, never with a traceback."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rooda.loops.reflex import files, status
from rooda.loops.reflex.files import Place
from rooda.loops.reflex.inspect import event_line, versions
from rooda.loops.reflex.state import State, encoded
from rooda.loops.reflex.status import row, row_line
from rooda.loops.reflex.store import open_store, tidy_all
from tests.kit.examples import examples
from tests.kit.inside import changed, places
from tests.kit.reflex_memory import Memory
from tests.kit.reflex_reference import Rule, Script

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
MANY = settings(max_examples=examples(300), deadline=None, suppress_health_check=list(HealthCheck))


def whole() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The state and the history of a loop in its second iteration."""
    from decimal import Decimal

    rules = (Rule("a.x.one", "fail", Decimal(2), "A"), Rule("b.x.two", "fail", Decimal(1), "B"))
    limits = {"A": Decimal("0.8"), "B": Decimal("0.9")}
    memory = Memory(Script(rules, limits, 2, (frozenset(), frozenset({"a.x.one"})), frozenset()))
    memory.play()
    state: State = memory.state._replace(status="running", stop={"passed": False, "reason": ""})
    history = [{"ts": "2026-01-01T00:00:00Z", "run_id": "loop-1", **event} for event in memory.history]
    return json.loads(json.dumps(encoded(state))), json.loads(json.dumps(history))


RUN, HISTORY = whole()


def told(folder: Path, run: str, history: str) -> None:
    """Every way to look at these files, and to continue with them."""
    place = Place(str(folder), "loop")
    Path(place.folder).mkdir(parents=True, exist_ok=True)
    Path(place.run).write_text(run)
    Path(place.history).write_text(history)
    Path(place.artifact).write_text("# A\n")
    assert status.lines(status.facts_of(place)) and row_line(row(place), 9)
    found = files.load(place)
    assert all(map(event_line, found.history))
    versions(place)
    files.active(str(folder))
    tidy_all(str(folder))
    if found.state is not None:
        open_store(place, found)
        assert files.read_state(place) is not None


@MANY
@given(path=st.sampled_from(places(RUN)), new=VALUES)
def test_R_235_any_value_in_run_json(tmp_path_factory: pytest.TempPathFactory, path: Any, new: Any) -> None:
    """One value is another: it is understood, or run.json is rebuilt."""
    lines = "".join(json.dumps(event) + "\n" for event in HISTORY)
    told(tmp_path_factory.mktemp("loop"), json.dumps(changed(RUN, path, new)), lines)


@MANY
@given(path=st.sampled_from(places(HISTORY)), new=VALUES)
def test_R_238_any_value_in_the_history(tmp_path_factory: pytest.TempPathFactory, path: Any, new: Any) -> None:
    """One value is another, and run.json is gone: what can be understood is."""
    lines = "".join(json.dumps(event) + "\n" for event in changed(HISTORY, path, new))
    told(tmp_path_factory.mktemp("loop"), "{", lines)


@MANY
@given(st.binary(max_size=200))
def test_R_238_any_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    """Neither file is anything at all."""
    text = data.decode("latin-1")
    told(tmp_path_factory.mktemp("loop"), text, text)
