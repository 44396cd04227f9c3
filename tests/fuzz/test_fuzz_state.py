"""Mutated state files: always a sentence and the right exit code, never a traceback, and never a byte lost."""

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rooda.base.text import format_tenths
from rooda.errors import USAGE, StateDamaged, UsageProblem
from rooda.loops.procedure import loop
from rooda.loops.procedure.start import load_earlier, require_saved
from rooda.loops.procedure.state import OodaState, resumed_state, total_seconds
from rooda.loops.procedure.store import Place, ProcedureStore, load_state
from rooda.loops.procedure.view import LINES
from rooda.views.lines import lines
from rooda.views.screen import Screen, ScreenOptions
from tests.kit.workspace import SAMPLE, Workspace

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=10**18, max_value=10**400)
    | st.floats()
    | st.text(st.characters(), max_size=20)
    | st.sampled_from(
        ["\ud800", "\x00", "é\u202e", "1" * 400 + "s", "-5s", "0", "9" * 30 + "h", "0001-01-01T00:00:00Z"]
    )
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
DURATIONS = st.floats(min_value=0, max_value=10**7).map(format_tenths) | st.sampled_from(
    ["250ms", "1h2m3.5s", "7µs", "0", "+1s"]
)
ZONES = st.sampled_from(["Z", "z", "+05:45", "-11:00", ".25Z", ".123456789+00:00"])
TIMES = st.just("") | st.builds("{}{}".format, st.datetimes().map("{:%Y-%m-%dT%H:%M:%S}".format), ZONES).filter(
    lambda text: text[:4].isdigit() and text[4] == "-"
)
STATES = st.builds(
    OodaState,
    iteration=st.integers(0, 10**9),
    max_iterations=st.integers(0, 10**9),
    consecutive_failures=st.integers(0, 10**6),
    failure_threshold=st.integers(1, 10**6),
    started_at=TIMES,
    last_iteration_at=st.none() | TIMES.filter(lambda text: not text.startswith("0001-01-01")),
    status=st.sampled_from(["running", "paused", "aborted", "interrupted"]),
    procedure_name=st.just("build"),
    elapsed_per_iteration=st.lists(DURATIONS, max_size=5).map(tuple),
)


@st.composite
def almost_right(draw: st.DrawFn) -> bytes:
    """The sample with some keys changed, some left out, some added."""
    state = SAMPLE | draw(st.dictionaries(st.sampled_from(sorted(SAMPLE)), VALUES, max_size=3))
    for key in draw(st.sets(st.sampled_from(sorted(SAMPLE)), max_size=2)):
        del state[key]
    state |= draw(st.dictionaries(st.text(max_size=8), VALUES, max_size=1))
    return json.dumps(state).encode()


@st.composite
def harmed(draw: st.DrawFn) -> bytes:
    """The sample's bytes with a piece cut out, overwritten or put in."""
    data = json.dumps(SAMPLE, indent=2).encode()
    start = draw(st.integers(0, len(data)))
    end = draw(st.integers(start, min(len(data), start + 30)))
    return data[:start] + draw(st.binary(max_size=12)) + data[end:]


ANY_FILE = almost_right() | harmed() | st.binary(max_size=60)


@pytest.fixture(scope="module")
def folder() -> Iterator[str]:
    """One workspace for all examples of this module."""
    with tempfile.TemporaryDirectory() as name:
        yield name


def put(workspace: str, data: bytes) -> Place:
    place = Place(workspace, "build")
    os.makedirs(place.folder, exist_ok=True)
    Path(place.state).write_bytes(data)
    Path(place.corrupt).unlink(missing_ok=True)
    return place


@QUICK
@given(data=ANY_FILE)
@example(data=json.dumps(SAMPLE | {"elapsed_per_iteration": ["1" * 400 + "s"]}).encode())
@example(data=json.dumps(SAMPLE | {"elapsed_per_iteration": ["9" * 30 + "h"] * 3}).encode())
@example(data=b"[" * 100_000)
@example(data=b'{"a":' * 50_000)
@example(data=b'{"iteration": 1' + b"0" * 5000 + b"}")
@example(data=json.dumps(SAMPLE).encode("utf-16"))
@example(data=b"\xef\xbb\xbf" + json.dumps(SAMPLE).encode())
def test_any_bytes_load_as_a_state_or_one_error_line(folder: str, data: bytes) -> None:
    """Whatever the bytes are, they are understood, or refused in one line; what is understood can be run and shown."""
    place = put(folder, data)
    try:
        state = load_state(place)
    except StateDamaged as problem:
        assert problem.code == USAGE
        assert str(problem).startswith(f"State file {place.state} is damaged: ")
        assert Path(place.state).read_bytes() == data
        return
    assert state is not None
    begun = resumed_state(state, None, None)
    loop.why_stop(begun, 0)
    facts = {"procedure": "build", "iterations": state.iteration, "max_iterations": state.max_iterations}
    shown = lines({"event": "run.resumed", **facts, "elapsed": total_seconds(state)}, LINES)
    assert [line.text.partition(" ")[0] for line in shown] == ["Resuming", "Previous"]
    json.dumps(loop.run_ended(begun, loop.Ending("signal", 130, 2), begun, 0.0).facts)


@QUICK
@given(data=ANY_FILE)
def test_a_start_and_a_resume_lose_nothing(folder: str, data: bytes) -> None:
    """What neither understands lies as .corrupt, byte for byte; what they understand stays where it is."""
    screen = Screen(ScreenOptions("error"))
    for way in (lambda place: load_earlier(place, screen), require_saved):
        place = put(folder, data)
        try:
            found = way(place)
        except StateDamaged:
            found = None
        except UsageProblem as problem:
            assert "No saved state" in str(problem)  # an understood file that says completed
            assert Path(place.state).read_bytes() == data
            continue
        kept = place.state if found else place.corrupt
        assert Path(kept).read_bytes() == data
        assert not (found and os.path.exists(place.corrupt))


@settings(QUICK, max_examples=25)
@given(states=st.lists(STATES, min_size=1, max_size=4))
def test_a_stored_state_is_loaded_unchanged(folder: str, states: list[OodaState]) -> None:
    """The store's law, for any sequence of states; and the file always has exactly the nine keys."""
    place = put(folder, b"")
    told: list[tuple[str, Any]] = []
    store = ProcedureStore(place, lambda event: told.append((event.NAME, event.facts)))
    for state in states:
        assert store.carry((), state) == state
        assert load_state(place) == state
        assert set(json.loads(Path(place.state).read_bytes())) == set(SAMPLE)
    assert {event for event, _ in told} == {"state.saved"}


REAL = {
    "random": bytes(range(255, -1, -1)),
    "nested": b"[" * 200_000,
    "huge-number": b'{"iteration": 1' + b"0" * 5000 + b"}",
    "missing": json.dumps({"iteration": 1}).encode(),
    "types": json.dumps({key: [value] for key, value in SAMPLE.items()}).encode(),
    "surrogate-status": json.dumps(SAMPLE | {"status": "\ud800"}).encode(),
    "endless-duration": json.dumps(SAMPLE | {"elapsed_per_iteration": ["1" * 400 + "s"]}).encode(),
    "negative-duration": json.dumps(SAMPLE | {"elapsed_per_iteration": ["-5s"]}).encode(),
    "word-for-a-time": json.dumps(SAMPLE | {"started_at": "yesterday"}).encode(),
    "surrogate-time": json.dumps(SAMPLE | {"started_at": "\ud800"}).encode(),
    "escape-time": json.dumps(SAMPLE | {"last_iteration_at": "\x1b[31m"}).encode(),
    "utf-16": json.dumps(SAMPLE).encode("utf-16") + b"\xff",
}


@pytest.mark.parametrize("name", REAL)
def test_damaged_files_through_the_real_command(ws: Workspace, name: str) -> None:
    """`resume` refuses with 2, `status` shows it, `build` warns and starts fresh; the bytes stay in .corrupt."""
    ws.write(".rooda/state/build.json", REAL[name])
    status = ws.rooda("status")
    assert status.code == 0 and "build: state file is damaged" in status.out
    resumed = ws.rooda("resume", "build")
    assert (resumed.code, resumed.out) == (2, "")
    assert "is damaged" in resumed.err and "Start over with: rooda build" in resumed.err
    assert Path(ws.state_file() + ".corrupt").read_bytes() == REAL[name]
    os.rename(ws.state_file() + ".corrupt", ws.state_file())
    started = ws.rooda("build", "--max-iterations", "1")
    assert (started.code, len(ws.calls)) == (0, 1)
    assert "starting fresh" in started.err
    assert Path(ws.state_file() + ".corrupt").read_bytes() == REAL[name]
    assert not [text for text in (status.both, resumed.both, started.both) if "Traceback" in text]


ODD = {
    "surrogate-name": {"procedure_name": "\ud83d"},
    "controls": {"procedure_name": "\n\x1b[31m"},
    "copied-from-another": {"procedure_name": "audit-spec"},
    "no-time-at-all": {"last_iteration_at": None, "started_at": ""},
    "large": {"iteration": 10**30, "max_iterations": 10**30 + 1, "failure_threshold": 10**30},
    "unlike-lengths": {"iteration": 7, "max_iterations": 8, "elapsed_per_iteration": []},
}


@pytest.mark.parametrize("name", ODD)
def test_unusual_state_files_with_the_real_command(ws: Workspace, name: str) -> None:
    """A file that is odd but whole is shown, offered, and resumed for the one iteration that is left."""
    ws.put_state(**({"max_iterations": 4} | ODD[name]))
    answers = [ws.rooda("status"), ws.rooda("status", "--json"), ws.rooda("build"), ws.rooda("resume", "build")]
    assert [answer.code for answer in answers] == [0, 0, 3, 0], answers
    assert not [answer for answer in answers if "Traceback" in answer.both]
    assert "rooda resume build" in answers[0].out and "rooda resume build" in answers[2].err
    assert len(ws.calls) == 1
