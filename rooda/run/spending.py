"""Adds up what agent calls used and checks it against limits. Pure."""

from collections.abc import Iterable
from typing import NamedTuple

from rooda.agents.records import Reply, Usage
from rooda.base import json
from rooda.base.json import Json
from rooda.base.text import counted, format_short
from rooda.errors import Cause
from rooda.run.setup import Budget

LIMIT_OPTIONS = {"cost": "--max-cost", "tokens": "--max-tokens", "time": "--max-duration"}  # keyed by kind of cause


class Used(NamedTuple):
    """Tokens, time and cost of one agent call."""

    ts: str
    run: str
    loop: str
    name: str
    number: int  # 1-indexed iteration
    call: str
    agent: str
    model: str
    seconds: float
    usage: Usage | None  # None: not reported
    cost: float | None  # dollars; None: unknown, which is not 0
    source: str  # reported | computed | assumed | unknown
    lost: bool = False  # its transcript or the event log disappeared
    transcript: str = ""  # file name, which identifies the call in its session

    @property
    def tokens(self) -> int:
        return sum(self.usage) if self.usage else 0


class Spent(NamedTuple):
    """The total usage of several agent calls, such as those of a session, a run, a goal, or a row of `rooda usage`."""

    calls: int = 0
    cost: float = 0.0
    unknown: int = 0  # calls of unknown cost; `cost` leaves them out
    tokens: int = 0
    seconds: float = 0.0
    estimated: bool = False  # part of `cost` is an estimate
    lost: int = 0  # calls whose transcript or event log disappeared, so that their usage is unknown

    @property
    def known_cost(self) -> float | None:
        """The total cost; None if there are calls and the cost of each is unknown."""
        return None if self.calls and self.unknown == self.calls else self.cost


class BudgetUse(NamedTuple):
    """The limits of a run, and what it has used so far."""

    budget: Budget = Budget()
    spent: Spent = Spent()
    seconds: float = 0.0  # run time


def total(calls: Iterable[Used]) -> Spent:
    spent = Spent()
    for call in calls:
        spent = add(spent, call.cost, call.usage, call.seconds)
        spent = spent._replace(lost=spent.lost + call.lost)
    return spent


def usage_row(key: str, calls: list[Used]) -> Json:
    """Return the object with which `rooda usage --json` describes these calls."""
    spent = total(calls)
    tokens = [sum(column) for column in zip(*(call.usage or Usage() for call in calls), strict=True)]
    costs = {source: sum(call.cost or 0.0 for call in calls if call.source == source) for source in _sources(calls)}
    return {
        "name": key,
        "calls": spent.calls,
        "seconds": round(spent.seconds, 3),
        **dict(zip(Usage._fields, tokens or Usage(), strict=True)),
        "calls_without_usage": sum(call.usage is None for call in calls),
        "cost": round(spent.cost, 6) if spent.unknown < spent.calls else None,
        "cost_by_source": {source: round(cost, 6) for source, cost in costs.items()},
        "calls_of_unknown_cost": spent.unknown,
    }


def _sources(calls: list[Used]) -> list[str]:
    return sorted({call.source for call in calls if call.cost is not None})


def plus(one: Spent, other: Spent) -> Spent:
    return Spent(
        one.calls + other.calls,
        one.cost + other.cost,
        one.unknown + other.unknown,
        one.tokens + other.tokens,
        one.seconds + other.seconds,
        one.estimated or other.estimated,
        one.lost + other.lost,
    )


def add(
    spent: Spent, cost: float | None, usage: Usage | None = None, seconds: float = 0.0, estimated: bool = False
) -> Spent:
    """Return the total with one call added. A cost of None adds no dollars; it counts as a call of unknown cost."""
    return plus(spent, Spent(1, cost or 0.0, int(cost is None), sum(usage) if usage else 0, seconds, estimated))


def difference(before: Spent, now: Spent) -> Spent:
    """Return what was spent between two running totals."""
    calls, cost, unknown = now.calls - before.calls, now.cost - before.cost, now.unknown - before.unknown
    return Spent(calls, cost, unknown, now.tokens - before.tokens, now.seconds - before.seconds, now.estimated)


def reached_limit(budget: Budget, spent: Spent, seconds: float) -> Cause | None:
    """Return the limit that forbids a further call, None if a call is allowed. `seconds` is the run time so far.

    A lost call reaches any limit of cost or tokens, since it could have used any amount.
    """
    if spent.lost and budget.cost > 0:
        return Cause("cost", spent.cost, budget.cost, spent.unknown, spent.lost)
    if spent.lost and budget.tokens > 0:
        return Cause("tokens", spent.tokens, budget.tokens, lost=spent.lost)
    if 0 < budget.cost <= round(spent.cost, 9):  # rounded: as floats, ten times 0.1 add up to less than 1
        return Cause("cost", spent.cost, budget.cost, spent.unknown)
    if 0 < budget.tokens <= spent.tokens:
        return Cause("tokens", spent.tokens, budget.tokens)
    if 0 < budget.seconds <= seconds:
        return Cause("time", seconds, budget.seconds)
    return None


def in_words(cause: Cause) -> str:
    """Describe a limit, an upgrade or a handover as the beginning of a sentence; "" for any other cause."""
    if cause.lost:
        limit = dollars(cause.limit) if cause.kind == "cost" else f"{cause.limit:,.0f} tokens"
        calls = "a call" if cause.lost == 1 else counted(cause.lost, "call")
        why = f"the usage of {calls} is unknown, since the transcript or the event log disappeared"
        price = ", or price such calls with [budget] unknown_call" if cause.kind == "cost" else ""
        return f"Limit of {limit}: {why}; resume with {LIMIT_OPTIONS[cause.kind]} 0 (no limit){price}"
    if cause.budget:
        return _budget_in_words(cause)
    if cause.kind == "cost":
        doubt = f" (the cost of {counted(cause.unknown, 'call')} is unknown)" if cause.unknown else ""
        return f"Cost limit reached: {dollars(cause.used)} of {dollars(cause.limit)}{doubt}"
    if cause.kind == "tokens":
        return f"Token limit reached: {cause.used:,.0f} of {cause.limit:,.0f}"
    if cause.kind == "time":
        return f"Time limit reached: {format_short(cause.used)} of {format_short(cause.limit)}"
    if cause.kind in ("upgrade", "handover"):
        return cause.problem
    return f"Usage limit of {cause.account} until {cause.until}" if cause.kind == "account" else ""


_BUDGETS = {
    "run": "Limit of this `rooda tasks run`",
    "day": "Daily budget",
    "project": "Project budget",
    "batch": "Budget of the batch",
    "agent": "Daily budget of {}",
}


def _budget_in_words(cause: Cause) -> str:
    name = _BUDGETS.get(cause.budget, "Budget").format(cause.account)
    if cause.problem:
        return f"{name} of {dollars(cause.limit)} can't be checked: {cause.problem}"
    reserved = f", and {dollars(cause.reserved)} reserved for running calls" if cause.reserved else ""
    return f"{name} reached: {dollars(cause.used)} of {dollars(cause.limit)}{reserved}"


_REMEDIES = {
    "day": "wait until tomorrow, or raise [budget] day",
    "project": "raise [budget] project",
    "agent": "wait until tomorrow, or raise the agent's budget_day",
}


def remedy(cause: Cause | None) -> str:
    """Return what must change before a run paused by a shared budget can continue; "" for any other cause."""
    return _REMEDIES.get(cause.budget, "") if cause and not cause.problem else ""


def cause_facts(cause: Cause | None) -> Json:
    """Return the field `cause` of `run.ended`, without empty keys."""
    return {"cause": {key: value for key, value in cause._asdict().items() if value}} if cause else {}


def cause_of(record: Json) -> Cause | None:
    """Read the field `cause` of an event; None if it is missing or malformed."""
    try:
        return json.decode(Cause, record["cause"])
    except (KeyError, TypeError, json.Mismatch):
        return None


def uncounted(budget: Budget, reply: Reply) -> str:
    """Return a warning if there is a cost limit but the cost of this call is unknown, else ""."""
    if budget.cost <= 0 or reply.cost is not None or reply.ended == "not-started":
        return ""
    what = f"The cost of this call is unknown, so it does not count towards the cost limit of {dollars(budget.cost)}"
    return f"{what}. Limit such calls with max_duration or a number of iterations"


def dollars(amount: float) -> str:
    """Format an amount as $1.25, or with four decimals below ten cents."""
    return f"${amount:.2f}" if amount >= 0.1 or not amount else f"${amount:.4f}"
