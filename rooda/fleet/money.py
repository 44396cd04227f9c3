"""Decides whether an account or a batch allows an agent call. Pure and deterministic.

A worker reserves an amount before each call, and pays the real cost after it. A leg is one stay of a task on a worker;
if the worker vanishes, the leg is lost, and what it had reserved counts as spent.
"""

from math import ceil
from typing import Any, NamedTuple

from rooda.base import json
from rooda.base.json import Json
from rooda.errors import Cause

CALLS, PERCENT = 20, 0.9  # number of an agent's latest calls from which the cost of a typical call is computed
REMEMBERED = 200  # number of calls for which a repeated payment is recognized


class Account(NamedTuple):
    """The dollars spent and reserved for one account with a model service, or for one batch of tasks."""

    name: str = ""
    budget: str = "agent"  # what the budget belongs to: agent | batch
    limit: float = 0.0  # dollars in all; 0: no limit
    day: str = ""
    today: float = 0.0
    total: float = 0.0
    until: str = ""  # end of the usage limit, as the agent reported it
    until_at: float = 0.0  # the same as a time
    open: Any = None  # reservations: call -> [dollars, leg]
    lost: Any = None  # calls whose end no worker saw: call -> dollars charged
    costs: Any = None  # latest costs, keyed by agent
    paid: tuple[str, ...] = ()


def encode(account: Account) -> Json:
    found: Json = json.encode(account)
    return found


def decode(data: Json) -> Account:
    return json.decode(Account, data)


def answer(account: Account, question: Json, now: float, day: str) -> tuple[Account, Json]:
    """Answer a worker's request to reserve or pay an amount; return the new account and the answer.

    A repeated request counts once.
    """
    account = account if account.day == day else account._replace(day=day, today=0.0)
    word = question.get("ask")
    if word == "reserve":
        return _reserve(account, question, now)
    if word == "paid":
        return _paid(account, question), {"cause": None}
    if word == "limited":
        return _limited(account, question), {"cause": None}
    if word == "release":
        gone = question.get("calls", ())
        left = {call: each for call, each in (account.open or {}).items() if call not in gone}
        return account._replace(open=left), {"cause": None}
    if word == "lost":
        return _lost(account, str(question.get("leg", ""))), {"cause": None}
    if word == "limit":
        return account._replace(limit=float(question["limit"])), {"cause": None}
    reserved = round(sum(each[0] for each in (account.open or {}).values()), 9)
    shown = {"today": account.today, "total": account.total, "reserved": reserved, "limit": account.limit}
    return account, {"cause": None, "until": account.until, **shown}


def _reserve(account: Account, question: Json, now: float) -> tuple[Account, Json]:
    call, others = question["call"], {**(account.open or {})}
    others.pop(call, None)
    if account.until_at > now:
        return account, {"cause": json.encode(Cause("account", account=account.name, until=account.until))}
    exact = float(question.get("amount") or 0.0)
    amount = exact or _typical(account, str(question.get("agent", "")))
    reserved = sum(each[0] for each in others.values())
    for used, limit in ((account.today, float(question.get("day") or 0.0)), (account.total, account.limit)):
        if limit and not _fits(used, reserved, amount, limit, bool(exact)):
            cause = Cause("cost", round(used, 9), limit, budget=account.budget, reserved=round(reserved, 9))
            cause = cause._replace(account=account.name if account.budget == "agent" else "")
            return account, {"cause": json.encode(cause)}
    others[call] = [amount, str(question.get("leg", ""))]
    return account._replace(open=others), {"cause": None}


def _fits(used: float, reserved: float, amount: float, limit: float, exact: bool) -> bool:
    """True if a call may start. If an estimated `amount` exceeds what is left, no other call may be running."""
    total = round(used + reserved, 9)
    return total < limit and (round(total + amount, 9) <= limit or not (exact or reserved))


def _typical(account: Account, agent: str) -> float:
    costs = sorted((account.costs or {}).get(agent, ()))
    return float(costs[ceil(PERCENT * len(costs)) - 1]) if costs else 0.0


def _paid(account: Account, question: Json) -> Account:
    call, cost, agent = question["call"], question.get("cost"), str(question.get("agent", ""))
    if call in account.paid:
        return account
    opened, lost = {**(account.open or {})}, {**(account.lost or {})}
    reserved = opened.pop(call, [0.0, ""])[0]
    charged = lost.pop(call, 0.0)
    spent = (float(cost) if cost is not None else reserved) - charged
    costs = {**(account.costs or {})}
    if cost is not None:
        costs[agent] = [*costs.get(agent, ()), float(cost)][-CALLS:]
    account = account._replace(open=opened, lost=lost, costs=costs, paid=(*account.paid, call)[-REMEMBERED:])
    return account._replace(today=account.today + spent, total=account.total + spent)


def _limited(account: Account, question: Json) -> Account:
    at = float(question.get("until_at") or 0.0)
    return account._replace(until=str(question.get("until", "")), until_at=at) if at > account.until_at else account


def _lost(account: Account, leg: str) -> Account:
    """Charge the reservations of a lost leg in full, because no worker saw its calls end."""
    mine = {call: each[0] for call, each in (account.open or {}).items() if each[1] == leg}
    left = {call: each for call, each in (account.open or {}).items() if call not in mine}
    spent, lost = sum(mine.values()), {**(account.lost or {}), **mine}
    kept = dict([*lost.items()][-REMEMBERED:])
    return account._replace(open=left, lost=kept, today=account.today + spent, total=account.total + spent)
