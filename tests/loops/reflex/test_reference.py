"""Thousands of random runs against the reference: event trace, calls of each phase, and the end."""

import json

import pytest
from hypothesis import HealthCheck, given, settings

from rooda.loops.reflex import history
from rooda.loops.reflex.state import decoded, encoded
from tests.kit.examples import examples
from tests.kit.reflex_memory import Memory
from tests.kit.reflex_reference import Reference, Result, Script
from tests.kit.reflex_strategies import scripts

MANY = settings(max_examples=examples(400), deadline=None, suppress_health_check=list(HealthCheck))


def compared(script: Script, memory: Memory, wanted: Result) -> None:
    """The run in memory came to what the reference says."""
    state = memory.state
    assert state is not None
    assert [event["event"] for event in memory.history] == wanted.events
    assert memory.calls == wanted.calls
    assert (state.status, state.stop["reason"]) == (wanted.status, wanted.reason)
    assert (state.iteration, state.phase, state.stagnation_count) == (wanted.iteration, wanted.phase, wanted.stagnation)
    assert (state.evaluation is None) == (wanted.score is None)
    if wanted.score is not None:
        assert state.last_score == pytest.approx(float(wanted.score))
        assert state.evaluation["passed"] == wanted.passed
    assert state.stop["passed"] == wanted.passed


@MANY
@given(scripts())
def test_R_192_R_257_every_run_is_the_one_that_the_text_describes(script: Script) -> None:
    """Whatever rules, weights, thresholds, artifacts and failures: trace, calls and end are the reference's."""
    memory = Memory(script)
    memory.play()
    compared(script, memory, Reference(script).run())


@settings(MANY, max_examples=examples(200))
@given(scripts())
def test_R_048_R_235_a_run_can_be_rebuilt_from_its_events_at_any_moment(script: Script) -> None:
    """After each event that ends a transition the fold of the history is the state that was saved then."""
    memory = Memory(script)
    saved: list[tuple[int, dict[str, object]]] = []
    save = memory.save

    def noted(state):  # type: ignore[no-untyped-def]
        found = save(state)
        saved.append((len(memory.history), encoded(found)))
        return found

    memory.save = noted  # type: ignore[method-assign]
    memory.play()
    assert saved
    for count, state in saved:
        folded = history.fold(json.loads(json.dumps(memory.history[:count])))
        assert folded is not None
        assert encoded(folded) | {"updated_at": ""} == json.loads(json.dumps(state)) | {"updated_at": ""}
        assert decoded(json.loads(json.dumps(state))) == folded._replace(updated_at="")


@settings(MANY, max_examples=examples(100))
@given(scripts(failures=False))
def test_R_116_sequential_execution_ends_the_same(script: Script) -> None:
    """Without failures the sequential way has the same trace, calls and end."""
    one, other = Memory(script), Memory(script)
    assert one.play() == other.play(sequential=True)
    assert [event["event"] for event in one.history] == [event["event"] for event in other.history]
    assert one.calls == other.calls
