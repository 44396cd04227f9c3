"""A loop is straight code over `step`, `carry` and `child`; the store behind it is the public format."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

# What the kernel asks of a public format. One module in `stores/` answers for each.
Scope = tuple[str, ...]  # () is the loop itself; ("child", …) what runs inside it


class Saved(NamedTuple):
    """What the public files say: the carried state, and the steps of the open turn that are done."""

    state: Any = None  # None: nothing carried yet
    done: Mapping[str, Any] = {}


class Store(Protocol):
    """Law: `load` after `carry(s)` gives `s` back; after `end(n, v)` it has `v` under `n` if the format keeps steps."""

    def load(self, scope: Scope) -> Saved: ...

    def begin(self, scope: Scope, name: str) -> None: ...

    def end(self, scope: Scope, name: str, value: Any) -> Any:
        """Record a finished step; gives back what a later load would."""

    def carry(self, scope: Scope, state: Any) -> Any:
        """Close the turn with this state; gives back what a later load would."""


State = TypeVar("State")
Value = TypeVar("Value")


class StepReused(Exception):
    """A defect in a loop function: a step name was used twice in one turn."""


class Run:
    """One loop on one store. Replays the finished steps of an open turn, does the rest."""

    def __init__(self, store: Store, scope: Scope = ()) -> None:
        self._store = store
        self._scope = scope
        saved = store.load(scope)
        self._state: Any = saved.state
        self._done: dict[str, Any] = dict(saved.done)
        self._used: set[str] = set()

    def carried(self, fresh: State) -> State:
        """The state the last turn left, or `fresh`."""
        return fresh if self._state is None else self._state

    def step(self, name: str, work: Callable[[], Value]) -> Value:
        """`work`'s value, or the recorded one if this turn has it already. An exception means: not done."""
        if name in self._used:
            raise StepReused(f"step {name!r} of {self._scope} is used twice in one turn")
        self._used.add(name)
        if name not in self._done:
            self._store.begin(self._scope, name)
            self._done[name] = self._store.end(self._scope, name, work())
        value: Value = self._done[name]
        return value

    def carry(self, state: State) -> State:
        """End the turn: what a later load would give is what the loop goes on with."""
        carried: State = self._store.carry(self._scope, state)
        self._state = carried
        self._done, self._used = {}, set()
        return carried

    def child(self, name: str) -> "Run":
        """A loop inside this turn, with its own states and steps."""
        if name in self._used:
            raise StepReused(f"child {name!r} of {self._scope} is used twice in one turn")
        self._used.add(name)
        return Run(self._store, (*self._scope, name))
