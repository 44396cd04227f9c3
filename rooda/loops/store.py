"""What the kernel asks of a public format. One module in `stores/` answers for each."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

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
