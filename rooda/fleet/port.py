"""The port between the fleet's engine, its legs, and the command line. Pure: no engine is imported here."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias

from rooda.base.json import Json
from rooda.errors import UsageProblem

PROTOCOL = 1  # of tickets and orders; a worker serves this one and the one before
SCHEME = "temporal://"
PORT = 7233
BEATS = 12  # proofs of life of each leg within one heartbeat timeout
NOW, AT_TURN = "now", "turn"  # `at` of the order to hand a task back: end its loop, or let its turn end
LOOPBACK = ("localhost", "127.0.0.1", "::1", "[::1]")


class Lost(Exception):
    """This leg belongs to another worker now: its loop has to end, and nothing of it counts any more."""


class Wish(NamedTuple):
    """A task as the desk submits it."""

    workflow: str  # rooda-task/<repository key>/<identity>
    ticket: Json
    task: Json  # tasks.model.encode(Task)
    key: str  # 12 hex digits of the state remote
    repository: str = ""
    ref: str = ""
    pool: str = "default"
    after: tuple[str, ...] = ()  # workflows of tasks that must have landed before
    batch: str = ""
    batch_cost: float = 0.0
    retries: int = 1
    v: int = PROTOCOL


class Order(NamedTuple):
    """One leg, as the engine hands it to a worker."""

    workflow: str
    leg: int  # 1, 2, …
    ticket: Json
    task: Json
    notes: tuple[Any, ...] = ()  # orders that no loop has heard yet: say, answer, set
    anew: bool = False  # the user continued the task: claims that were lost before don't count


class Desk(Protocol):
    """What a leg may ask of the engine. Every method may be called from any thread."""

    def record(self, facts: Json) -> None:
        """Report a closed turn, or the leg's beginning. Returns once the engine confirms the leg. Raises Lost."""

    def orders(self, timeout: float) -> list[Json]:
        """Return the orders since the last call; wait for one up to `timeout` seconds. Raises Lost."""

    def money(self, question: Json) -> Json:
        """Reserve, pay, release, or report a usage limit; the answer has a `cause` or None."""


Work: TypeAlias = Callable[[Order, Desk], Json]  # runs a leg in a thread, returns its outcome
Land: TypeAlias = Callable[[Json, Desk], Json]  # lands tasks of one target, returns what happened


class Place(NamedTuple):
    """A worker, as it presents itself."""

    name: str
    pool: str = "default"
    slots: int = 1
    heartbeat: float = 60.0


class Address(NamedTuple):
    """Address of the engine: `temporal://host:port/namespace`."""

    host: str
    namespace: str = "default"

    def __str__(self) -> str:
        return f"{SCHEME}{self.host}/{self.namespace}"

    @property
    def is_local(self) -> bool:
        return self.host.rpartition(":")[0] in LOOPBACK or self.host.startswith("127.")


def parse_address(text: str) -> Address:
    """Parse `temporal://host[:port][/namespace]`. Raises UsageProblem."""
    rest = text.strip().removeprefix(SCHEME)
    host, _, namespace = rest.partition("/")
    name, colon, port = host.rpartition(":")
    if not colon or host.endswith("]"):
        name, port = host, str(PORT)
    right = text.strip().startswith(SCHEME) and name and port.isdecimal() and 0 < int(port) < 65536
    if not right or "@" in host or "/" in namespace.rstrip("/"):
        what = "The fleet's address must be temporal://HOST:PORT/NAMESPACE."
        raise UsageProblem(what, "Give it with --fleet, or as address in [fleet] of your own settings.")
    return Address(f"{name}:{int(port)}", namespace.rstrip("/") or "default")
