"""Defines the records and interfaces between Temporal, a worker's legs, and the command line. Pure.

A leg is the work of one worker on a task, from the claim to the end of the task's loop there."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias

from rooda.base.json import Json
from rooda.errors import UsageProblem

PROTOCOL = 1  # version of tickets and orders; a worker serves this one and the one before
SCHEME = "temporal://"
PORT = 7233
BEATS = 12  # number of proofs of life that each leg sends within one heartbeat timeout
NOW, AT_TURN = "now", "turn"  # `at` of the order to hand a task back: end its loop, or let its turn end
LOOPBACK = ("localhost", "127.0.0.1", "::1", "[::1]")


class Lost(Exception):
    """Raised if this leg now belongs to another worker: its loop must end, and its results no longer count."""


class Wish(NamedTuple):
    """A task as the command line submits it."""

    workflow: str  # rooda-task/<repository key>/<identity>
    ticket: Json
    task: Json  # tasks.model.encode(Task)
    key: str  # 12 hex digits of the state remote
    repository: str = ""
    ref: str = ""
    pool: str = "default"
    after: tuple[str, ...] = ()  # workflows of tasks that must land first
    batch: str = ""
    batch_cost: float = 0.0
    retries: int = 1
    v: int = PROTOCOL


class Order(NamedTuple):
    """One leg, as Temporal hands it to a worker."""

    workflow: str
    leg: int  # 1, 2, …
    ticket: Json
    task: Json
    notes: tuple[Any, ...] = ()  # orders that no loop has received yet: say, answer, set
    anew: bool = False  # the user continued the task: lost claims before that don't count


class Desk(Protocol):
    """Interface through which a leg reports to Temporal, receives the user's orders, and asks for budget.

    Any thread may call its methods.
    """

    def record(self, facts: Json) -> None:
        """Report the leg's beginning, or the end of a turn (an iteration). Raises Lost.

        Returns once Temporal has confirmed the leg.
        """

    def orders(self, timeout: float) -> list[Json]:
        """Return the orders since the last call; if there are none, wait up to `timeout` seconds. Raises Lost."""

    def money(self, question: Json) -> Json:
        """Reserve the cost of a call, pay or release it, or report a usage limit.

        In the answer, `cause` is the limit that forbids the call, or None.
        """


Work: TypeAlias = Callable[[Order, Desk], Json]  # runs a leg in a thread, returns its outcome
Land: TypeAlias = Callable[[Json, Desk], Json]  # lands tasks of one target, returns the result


class Place(NamedTuple):
    """A worker as other machines see it: name, pool, and how many loops it runs at once."""

    name: str
    pool: str = "default"
    slots: int = 1
    heartbeat: float = 60.0


class Address(NamedTuple):
    """Address of Temporal: `temporal://host:port/namespace`."""

    host: str
    namespace: str = "default"

    def __str__(self) -> str:
        return f"{SCHEME}{self.host}/{self.namespace}"

    @property
    def is_local(self) -> bool:
        return self.host.rpartition(":")[0] in LOOPBACK or self.host.startswith("127.")


def parse_address(text: str) -> Address:
    """Parse `temporal://host[:port][/namespace]`. Raises UsageProblem if the address is invalid."""
    rest = text.strip().removeprefix(SCHEME)
    host, _, namespace = rest.partition("/")
    name, colon, port = host.rpartition(":")
    if not colon or host.endswith("]"):
        name, port = host, str(PORT)
    right = text.strip().startswith(SCHEME) and name and port.isdecimal() and 0 < int(port) < 65536
    if not right or "@" in host or "/" in namespace.rstrip("/"):
        what = "The fleet's address must be temporal://HOST:PORT/NAMESPACE."
        raise UsageProblem(what, "Correct the address after --fleet, or address in [fleet] of your own settings.")
    return Address(f"{name}:{int(port)}", namespace.rstrip("/") or "default")
