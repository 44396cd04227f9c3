"""Decides whether the budgets that all runs of a user share allow a call, given the spent and reserved costs. Pure."""

from collections import deque
from collections.abc import Iterable, Mapping
from math import ceil
from typing import NamedTuple, Protocol

from rooda.agents.records import Agent, Reply
from rooda.errors import Cause
from rooda.run.setup import Budgets
from rooda.run.spending import Used

RECENT = 172_800.0  # seconds for which a paid call is kept, which is more than the longest day has
AHEAD = 86_400.0  # seconds; a call before the last boot that is further in the future was recorded with a wrong clock
CALLS = 20  # number of an agent's latest calls from which the cost of a typical call is computed
PERCENT = 0.9


GROUP = "ROODA_TASKS_BUDGET"  # variable with the id of a `rooda tasks run` and its limit in dollars, as ID:LIMIT
PROJECT = "ROODA_BUDGET_PROJECT"  # variable with the project of a loop that a worker of the fleet starts
RUN = "run"  # the budget that this variable sets


def shared(budgets: Budgets, environ: Mapping[str, str]) -> Budgets:
    """Return the budgets; if `rooda tasks run` started this loop with a cost limit, add that limit."""
    group, _, limit = environ.get(GROUP, "").partition(":")
    return budgets._replace(run=float(limit), group=group) if group and limit else budgets


class Purse(Protocol):
    """Counts calls against the budgets that all runs of the user share."""

    def limited(self, agent: Agent) -> Cause | None:
        """Return the budget that forbids a call of this agent now; None if a call is allowed."""

    def reserve(self, call: str, agent: Agent) -> Cause | None:
        """Reserve the expected cost of a call before it starts; return the budget that forbids it, if any."""

    def release(self, calls: Iterable[str]) -> None:
        """Remove the reservations of calls that were not started."""

    def paid(self, call: str, kind: str, number: int, agent: Agent, reply: Reply) -> None:
        """Record a call that has ended, and remove its reservation."""

    def of_sessions(self, first: str, known: Iterable[str]) -> list[Used]:
        """Return this loop's calls since its session `first`, except those of the sessions in `known`."""

    def sync(self) -> None:
        """Sync the records to disk; called while an agent works, and before a wait."""

    def close(self) -> None:
        """End the session."""


class Reservation(NamedTuple):
    """The expected cost of a call that has not ended."""

    amount: float
    agent: str
    project: str
    account: str
    group: str = ""


class Paid(NamedTuple):
    """A call that has ended, as recorded in the ledger; its end in clock time (`at`) and in the machine's uptime."""

    at: float
    uptime: float
    boot: str
    agent: str
    project: str
    account: str
    cost: float | None
    group: str = ""


class Moment(NamedTuple):
    """The current wall-clock time (`at`), the machine's uptime and boot ID, and the start of the local day."""

    at: float
    uptime: float
    boot: str
    day_start: float


class Spending:
    """Costs from the ledger: recent costs by account, the total of one project, and the latest costs by agent."""

    def __init__(self, project: str, group: str = "") -> None:
        self._project, self._group = project, group
        self.of_project = self.of_group = 0.0
        self._recent: deque[Paid] = deque()
        self._costs: dict[str, deque[float]] = {}  # costs of the latest calls, keyed by agent

    def add(self, paid: Paid, now: Moment) -> None:
        """Add a call from the ledger. Most calls are added in chronological order."""
        if paid.cost is None:
            return
        self._costs.setdefault(paid.agent, deque(maxlen=CALLS)).append(paid.cost)
        if paid.project == self._project:
            self.of_project += paid.cost
        if self._group and paid.group == self._group:
            self.of_group += paid.cost
        if time_of(paid, now) > now.at - RECENT:
            self._recent.append(paid)

    def today(self, now: Moment, account: str | None = None) -> float:
        """Return the cost of the calls of this local day; with `account`, only those of this account."""
        while self._recent and time_of(self._recent[0], now) < now.at - RECENT:
            self._recent.popleft()
        return sum(
            paid.cost or 0.0
            for paid in self._recent
            if account in (None, paid.account) and now.day_start <= time_of(paid, now) <= now.at + AHEAD
        )

    def typical(self, agent: str) -> float:
        """Return the 90th percentile of the costs of an agent's latest calls; 0 if there are none."""
        costs = sorted(self._costs.get(agent, ()))
        return costs[ceil(PERCENT * len(costs)) - 1] if costs else 0.0


def time_of(paid: Paid, now: Moment) -> float:
    """Return when a call ended. If the clock was set since then, without a reboot, the time is corrected."""
    return now.at - (now.uptime - paid.uptime) if paid.boot == now.boot else paid.at


def has_limit(budgets: Budgets, agent: Agent) -> bool:
    return bool(budgets.day or budgets.project or budgets.run or agent.budget_day)


def first_limit(budgets: Budgets, agent: Agent, account: str) -> Cause:
    """Return the Cause for budgets that can't be checked: the first budget that applies to a call, with no usage."""
    kinds = (("day", budgets.day), ("project", budgets.project), (RUN, budgets.run), ("agent", agent.budget_day))
    kind, limit = next((each for each in kinds if each[1]), kinds[0])
    return Cause("cost", limit=limit, budget=kind, account=account if kind == "agent" else "")


def reached(
    budgets: Budgets, agent: Agent, own: Reservation, open_calls: Iterable[Reservation], spent: Spending, now: Moment
) -> Cause | None:
    """Return the budget that spending and the reservations of other open calls have used up; None if there is none.

    `own`: the reservation that the call would get.
    """
    others = [*open_calls]
    kinds = (
        ("day", budgets.day, spent.today, [*others]),
        ("project", budgets.project, lambda _: spent.of_project, [o for o in others if o.project == own.project]),
        (RUN, budgets.run, lambda _: spent.of_group, [o for o in others if o.group == own.group]),
        (
            "agent",
            agent.budget_day,
            lambda moment: spent.today(moment, own.account),
            [o for o in others if o.account == own.account],
        ),
    )
    for kind, limit, used_by, counted in kinds:
        used, reserved = (used_by(now), sum(each.amount for each in counted)) if limit else (0.0, 0.0)
        if limit and round(used + reserved, 9) >= limit:  # rounded: as floats, ten times 0.1 add up to less than 1
            account = own.account if kind == "agent" else ""
            return Cause("cost", round(used, 9), limit, account=account, budget=kind, reserved=round(reserved, 9))
    return None
