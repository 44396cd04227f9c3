"""The kernel of all loops: saves the state at the end of each turn, and replays steps that an earlier run finished."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

Scope = tuple[str, ...]  # () is the loop itself; ("child", …) a loop inside it


class Saved(NamedTuple):
    """A loop's saved state, and the finished steps of the turn that has not ended yet."""

    state: Any = None  # None: nothing saved yet
    done: Mapping[str, Any] = {}


class Store(Protocol):
    """Saves and loads the states of loops, one state per scope."""

    def load(self, scope: Scope) -> Saved: ...

    def carry(self, scope: Scope, state: Any) -> Any:
        """Save the state at the end of a turn; return the state that a later `load` would return."""


class StepStore(Store, Protocol):
    """A store that also records finished steps. `load` returns their values if the store's file format keeps them."""

    def begin(self, scope: Scope, name: str) -> None: ...

    def end(self, scope: Scope, name: str, value: Any) -> Any:
        """Record a finished step; return the value that a later `load` would return."""


State = TypeVar("State")
Value = TypeVar("Value")


class StepReused(Exception):
    """Raised if a loop function uses the same step name twice in one turn, which is a bug in that function."""


class Turns:
    """A loop that saves its state at the end of each turn. An interrupted turn is repeated."""

    def __init__(self, store: Store, scope: Scope = ()) -> None:
        self._states = store
        self._scope = scope
        self._saved = store.load(scope)
        self._state: Any = self._saved.state

    def carried(self, fresh: State) -> State:
        """Return the state that the last turn saved; `fresh` if there is none."""
        return fresh if self._state is None else self._state

    def carry(self, state: State) -> State:
        """Save the state and end the turn; return the state that a later `load` would return."""
        carried: State = self._states.carry(self._scope, state)
        self._state = carried
        return carried


class Run(Turns):
    """A loop that also records the steps of a turn. A repeated turn reuses the values of steps that had finished."""

    def __init__(self, store: StepStore, scope: Scope = ()) -> None:
        super().__init__(store, scope)
        self._store = store
        self._done: dict[str, Any] = dict(self._saved.done)
        self._used: set[str] = set()

    def step(self, name: str, work: Callable[[], Value]) -> Value:
        """Run a step and record its value; if this turn has already recorded it, return the recorded value.

        A step whose `work` raises isn't finished.
        """
        if name in self._used:
            raise StepReused(f"step {name!r} of {self._scope} is used twice in one turn")
        self._used.add(name)
        if name not in self._done:
            self._store.begin(self._scope, name)
            self._done[name] = self._store.end(self._scope, name, work())
        value: Value = self._done[name]
        return value

    def carry(self, state: State) -> State:
        carried = super().carry(state)
        self._done, self._used = {}, set()
        return carried

    def child(self, name: str) -> "Run":
        """Return a loop that runs inside this turn and saves its own state and steps."""
        if name in self._used:
            raise StepReused(f"child {name!r} of {self._scope} is used twice in one turn")
        self._used.add(name)
        return Run(self._store, (*self._scope, name))
