"""The store of the procedure's state: its law, its form, and that it never ends a loop."""

import json
import os
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rooda.base.text import format_tenths
from rooda.loops.procedure import store as procedure_store
from rooda.loops.procedure.state import OodaState
from rooda.loops.procedure.store import Place, ProcedureStore

counts = st.integers(min_value=0, max_value=10**9)
states = st.builds(
    OodaState,
    iteration=counts,
    max_iterations=counts,
    consecutive_failures=counts,
    failure_threshold=st.integers(min_value=1, max_value=10**6),
    started_at=st.just("2026-02-06T10:00:00Z"),
    last_iteration_at=st.none() | st.just("2026-02-06T10:05:32Z"),
    status=st.sampled_from(["running", "aborted", "interrupted"]),
    procedure_name=st.just("build"),
    elapsed_per_iteration=st.lists(st.floats(min_value=0, max_value=10**5).map(format_tenths), max_size=6).map(tuple),
)


def store(folder: Path, told: list[str] | None = None) -> ProcedureStore:
    return ProcedureStore(Place(str(folder), "build"), lambda event: (told or []).append(event.NAME))


@settings(max_examples=60)
@given(carried=st.lists(states, min_size=1, max_size=4))
def test_load_after_carry_gives_the_state_back(tmp_path_factory: Any, carried: list[OodaState]) -> None:
    """The law of stores, over any sequence of states: each load gives the state carried last."""
    folder = tmp_path_factory.mktemp("law")
    writer = store(folder)
    for state in carried:
        assert writer.carry((), state) == state
        assert writer.load(()).state == state


def test_O_038_nine_keys_with_json_types(tmp_path: Path) -> None:
    """The file is one object with exactly the nine keys, growing lists included."""
    writer = store(tmp_path)
    state = OodaState(0, 10, 0, 3, "2026-02-06T10:00:00Z", None, "running", "build", ())
    for count, duration in enumerate(["45.2s", "38.7s", "52.1s"], 1):
        state = state._replace(iteration=count, elapsed_per_iteration=(*state.elapsed_per_iteration, duration))
        writer.carry((), state)
    data = json.loads((tmp_path / ".rooda/state/build.json").read_bytes())
    assert list(data) == list(OodaState._fields)
    assert data["elapsed_per_iteration"] == ["45.2s", "38.7s", "52.1s"] and data["last_iteration_at"] is None


def test_an_unwritable_state_is_reported_not_raised(tmp_path: Path) -> None:
    """A regular file where the folder should be: the store says so each time and gives the state back."""
    (tmp_path / ".rooda").mkdir()
    (tmp_path / ".rooda" / "state").write_text("in the way")
    told: list[str] = []
    writer = ProcedureStore(Place(str(tmp_path), "build"), lambda event: told.append(event.NAME))
    state = OodaState(1, 10, 0, 3, "2026-02-06T10:00:00Z", None, "running", "build", ("1.0s",))
    assert writer.carry((), state) == state
    assert writer.carry((), state._replace(iteration=2)).iteration == 2
    assert told == ["state.unsaved", "state.unsaved"]


def test_a_killed_writer_s_rest_is_removed(tmp_path: Path) -> None:
    """`tidy` removes half-written files of this procedure and no others."""
    place = Place(str(tmp_path), "build")
    procedure_store.make_room(place)
    for name in ("build.json.77.tmp", "build.json", "other.json.78.tmp"):
        Path(place.folder, name).write_text("x")
    procedure_store.tidy(place)
    assert sorted(os.listdir(place.folder)) == ["build.json", "other.json.78.tmp"]
