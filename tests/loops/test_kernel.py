"""The laws of the kernel: what `step`, `carry` and `child` promise on any store."""

from typing import Any, NamedTuple

import pytest

from rooda.base import json
from rooda.loops.kernel import Run, Saved, Scope, StepReused


class MemoryStore:
    """The smallest store that keeps steps; values pass through JSON as they would through a file."""

    def __init__(self) -> None:
        self.states: dict[Scope, Any] = {}
        self.steps: dict[Scope, dict[str, Any]] = {}
        self.trace: list[str] = []

    def load(self, scope: Scope) -> Saved:
        return Saved(self.states.get(scope), self.steps.get(scope, {}))

    def begin(self, scope: Scope, name: str) -> None:
        self.trace.append("/".join((*scope, f"begin {name}")))

    def end(self, scope: Scope, name: str, value: Any) -> Any:
        self.trace.append("/".join((*scope, f"end {name}")))
        self.steps.setdefault(scope, {})[name] = json.encode(value)
        return self.steps[scope][name]

    def carry(self, scope: Scope, state: Any) -> Any:
        self.trace.append("/".join((*scope, "carry")))
        self.states[scope] = json.encode(state)
        for inner in [known for known in self.steps if known[: len(scope)] == scope]:
            del self.steps[inner]
        return self.states[scope]


class Crash(Exception):
    """Represents a death in the middle of a step."""


def counting(calls: list[str], name: str, value: Any = 1) -> Any:
    def work() -> Any:
        calls.append(name)
        return value

    return work


def test_a_step_runs_once_and_is_replayed_after_a_crash() -> None:
    """A new Run on the same store gives back recorded values and does only what is missing."""
    store, calls = MemoryStore(), []
    run = Run(store)
    assert run.step("A", counting(calls, "A", {"x": 1})) == {"x": 1}
    with pytest.raises(Crash):
        run.step("B", lambda: (_ for _ in ()).throw(Crash()))
    again = Run(store)
    assert again.step("A", counting(calls, "A again")) == {"x": 1}
    assert again.step("B", counting(calls, "B", 2)) == 2
    assert calls == ["A", "B"]


def test_a_step_gives_what_a_load_would_give() -> None:
    """The first run gets the recorded form, not the raw value, so a replay can't differ."""
    run = Run(MemoryStore())
    assert run.step("PAIR", lambda: (1, 2)) == [1, 2]


def test_a_name_is_used_once_per_turn() -> None:
    """Using a step or child name twice is a defect and says so; the next turn may use it again."""
    run = Run(MemoryStore())
    run.step("A", lambda: 1)
    with pytest.raises(StepReused):
        run.step("A", lambda: 2)
    run.child("c")
    with pytest.raises(StepReused):
        run.child("c")
    run.carry({"turn": 1})
    assert run.step("A", lambda: 3) == 3


def test_carry_ends_the_turn() -> None:
    """After carry the steps are open again, and the state is what the next Run finds."""
    store, calls = MemoryStore(), []
    run = Run(store)
    assert run.carried({"turn": 0}) == {"turn": 0}
    run.step("A", counting(calls, "A"))
    assert run.carry({"turn": 1}) == {"turn": 1}
    run.step("A", counting(calls, "A"))
    assert calls == ["A", "A"]
    assert Run(store).carried({"turn": 0}) == {"turn": 1}


def test_a_child_has_its_own_steps() -> None:
    """Steps of a child don't collide with its parent's, and are replayed with it."""
    store, calls = MemoryStore(), []
    run = Run(store)
    run.step("A", counting(calls, "parent"))
    run.child("inner").step("A", counting(calls, "child"))
    again = Run(store)
    again.step("A", counting(calls, "no"))
    again.child("inner").step("A", counting(calls, "no"))
    assert calls == ["parent", "child"]
    assert store.trace == ["begin A", "end A", "inner/begin A", "inner/end A"]


class Inner(NamedTuple):
    names: tuple[str, ...]
    share: float = 0.5


class Outer(NamedTuple):
    count: int
    inner: Inner
    note: str | None = None


def test_codec_round_trip() -> None:
    """decode(encode(x)) is x for nested records."""
    record = Outer(3, Inner(("a", "b"), 1.0), None)
    assert json.decode(Outer, json.encode(record)) == record


@pytest.mark.parametrize(
    "data, says",
    [
        ({"inner": {"names": []}}, "'count' is missing"),
        ({"count": True, "inner": {"names": []}}, "count must be a whole number, found true or false"),
        ({"count": 1.5, "inner": {"names": []}}, "count must be a whole number"),
        ({"count": 1, "inner": []}, "inner must be an object, found a list"),
        ({"count": 1, "inner": {"names": "ab"}}, "names must be a list, found a string"),
        ({"count": 1, "inner": {"names": ["a", 2]}}, "names[1] must be a string, found a number"),
        ({"count": None, "inner": {"names": []}}, "found null"),
    ],
)
def test_codec_says_what_is_wrong(data: dict[str, Any], says: str) -> None:
    """A wrong shape is a sentence with its place."""
    with pytest.raises(json.Mismatch) as caught:
        json.decode(Outer, data)
    assert says in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"3", b'"x"', b"null", b"\xff\xfe", b"[" * 100_000])
def test_codec_refuses_what_is_not_an_object(data: bytes) -> None:
    """Whatever the bytes are, the answer is Mismatch."""
    with pytest.raises(json.Mismatch):
        json.parse_object(data)
