"""What agent calls have used, and when it is enough."""

from collections.abc import Iterable
from typing import NamedTuple

from rooda.model import Reply, Usage
from rooda.policy.durations import short
from rooda.terms import Budget


class Used(NamedTuple):
    """One agent call in the books."""

    ts: str
    run: str
    loop: str
    name: str
    number: int  # 1-indexed iteration
    call: str
    agent: str
    model: str
    seconds: float
    usage: Usage | None  # None: nobody said
    cost: float | None  # dollars; None: unknown, which is not 0
    source: str  # reported | computed | unknown

    @property
    def tokens(self) -> int:
        return sum(self.usage) if self.usage else 0


class Spent(NamedTuple):
    """A sum over calls."""

    calls: int = 0
    cost: float = 0.0
    unknown: int = 0  # calls whose cost nobody knows
    tokens: int = 0
    seconds: float = 0.0


def total(calls: Iterable[Used]) -> Spent:
    spent = Spent()
    for call in calls:
        spent = _plus(spent, call.cost, call.usage, call.seconds)
    return spent


def plus(one: Spent, other: Spent) -> Spent:
    return Spent(
        one.calls + other.calls,
        one.cost + other.cost,
        one.unknown + other.unknown,
        one.tokens + other.tokens,
        one.seconds + other.seconds,
    )


def with_reply(spent: Spent, reply: Reply) -> Spent:
    return _plus(spent, reply.cost, reply.usage, reply.seconds)


def _plus(spent: Spent, cost: float | None, usage: Usage | None, seconds: float) -> Spent:
    tokens = sum(usage) if usage else 0
    unknown = spent.unknown + (cost is None)
    return Spent(spent.calls + 1, spent.cost + (cost or 0.0), unknown, spent.tokens + tokens, spent.seconds + seconds)


def enough(budget: Budget, spent: Spent, seconds: float) -> str:
    """Why no further call may be made, as a sentence's beginning; "" while one may. `seconds`: run time so far."""
    if 0 < budget.cost <= round(spent.cost, 9):  # ten times $0.10 is $1
        return f"Cost limit reached: {dollars(spent.cost)} of {dollars(budget.cost)}{_doubt(spent)}"
    if 0 < budget.tokens <= spent.tokens:
        return f"Token limit reached: {spent.tokens:,} of {budget.tokens:,}"
    if 0 < budget.seconds <= seconds:
        return f"Time limit reached: {short(seconds)} of {short(budget.seconds)}"
    return ""


def uncounted(budget: Budget, reply: Reply) -> str:
    """What a person must know of a call that a cost limit can't count; "" where it can, or there is none."""
    if budget.cost <= 0 or reply.cost is not None or reply.ended == "not-started":
        return ""
    what = f"The cost of this call is unknown, so it does not count for the cost limit of {dollars(budget.cost)}"
    return f"{what}. A number of iterations and max_duration hold for such calls too"


def dollars(amount: float) -> str:
    """$1.25; small amounts with what is needed to tell them from nothing."""
    return f"${amount:.2f}" if amount >= 0.1 or not amount else f"${amount:.4f}"


def _doubt(spent: Spent) -> str:
    return f" (the cost of {spent.unknown} calls is unknown)" if spent.unknown else ""
