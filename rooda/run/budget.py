"""Admits agent calls while the limits of the run and the usage limits of the agents' accounts allow it."""

import os
from collections.abc import Callable, Sequence
from math import inf
from typing import NamedTuple

from rooda.agents import limits
from rooda.agents.backoff import until_reset
from rooda.agents.call import transcript_name
from rooda.agents.outcome import USAGE_LIMIT
from rooda.agents.records import Agent, Call, Reply
from rooda.base import clock
from rooda.base.text import counted
from rooda.errors import Cause, LimitReached
from rooda.run import history, installed
from rooda.run.budgets import Purse, first_limit, has_limit, shared
from rooda.run.messages import Inbox
from rooda.run.setup import Setup
from rooda.run.spending import (
    BudgetUse,
    Spent,
    Used,
    add,
    dollars,
    in_words,
    plus,
    reached_limit,
    remedy,
    total,
    uncounted,
)

Wait = Callable[[float, str], None]  # arguments: end of the wait, account
Warn = Callable[[str], None]
_RAISE = "No further agent is started. Resume with a higher limit."
_STOPPED = "No further agent is started."
_UNKNOWN = (
    "the usage of a call is unknown, since the transcript or the event log disappeared;"
    " price such calls with [budget] unknown_call"
)


class BudgetGate:
    """Counts what a run uses over all its sessions, and admits calls until a limit is reached."""

    def __init__(
        self, setup: Setup, purse: Purse, inbox: Inbox, wait: Wait, signalled: Callable[[], int], warn: Warn
    ) -> None:
        self._budget, self._unknown_call = setup.budget, setup.unknown_call
        self._budgets, self._agent, self._purse = shared(setup.budgets, os.environ), setup.agent, purse
        self._inbox = inbox
        self._wait, self._signalled, self._warn = wait, signalled, warn
        self._warned = self._lost_call = False
        self._accounts: dict[str, str] = {}  # account, keyed by the name of its agent
        self._acting: dict[str, str] = {}  # name of the agent in use, keyed by the name of the preferred agent
        self._known: dict[str, limits.Limit] = {}  # usage limits reached in this session, in case saving them failed
        self._began, self._spent, self._earlier = clock.running_time(), Spent(), 0.0

    def count_earlier(self, workspace: str, name: str, loop: str, agent: Agent | None) -> None:
        """Add what the run used in earlier sessions; the prices of `agent` apply to calls that a crash cut off."""
        if not any(self._budget):
            return
        sessions, prices = history.of_run(workspace, name, loop), agent.prices if agent else {}
        self._spent = total(self._with_price(call) for session in sessions for call in session.used(lambda: prices))
        self._spent = self._spent._replace(lost=self._spent.lost + history.count_lost(sessions))
        self._count_deleted(sessions)
        self._earlier = sum(session.run_time for session in sessions)

    def _count_deleted(self, sessions: list[history.SessionLog]) -> None:
        """Add the calls of earlier sessions whose logs were deleted; the user's ledger still lists them."""
        runs = [session.run for session in sessions]
        deleted = [self._with_price(call) for call in self._purse.of_sessions(runs[0], runs)] if runs else []
        if not deleted:
            return
        spent = total(deleted)
        self._spent = plus(self._spent, spent)
        names = ", ".join(dict.fromkeys(call.run for call in deleted))
        known = f"{dollars(spent.cost)} for {counted(spent.calls, 'call')}"
        self._warn(f"the log of {names} is missing; the cost is taken from the ledger: {known}")

    def priced(self, reply: Reply) -> Reply:
        """Return the reply; if its cost is unknown, set the cost to `[budget] unknown_call`."""
        made = reply.ended != "not-started" and reply.outcome != USAGE_LIMIT
        if reply.cost is not None or not made or not self._unknown_call:
            return reply
        return reply._replace(cost=self._unknown_call, cost_source="assumed")

    def _with_price(self, call: Used) -> Used:
        return call._replace(cost=self._unknown_call) if call.cost is None and self._unknown_call else call

    def session_seconds(self) -> float:
        """Return the run time of this session, excluding time for which it was suspended."""
        return round(clock.running_time() - self._began, 3)

    def seconds_left(self) -> float:
        """Return the run time left before the time limit; infinite without a limit."""
        return self._budget.seconds - self._run_seconds() if self._budget.seconds else inf

    def used(self) -> BudgetUse:
        """Return the limits of the run, and what it has used so far."""
        return BudgetUse(self._budget, self._spent, self._run_seconds())

    def _run_seconds(self) -> float:
        return self._earlier + clock.running_time() - self._began

    @property
    def known_cost(self) -> float | None:
        """The cost of the run so far; None if there were calls and the cost of each is unknown."""
        return self._spent.known_cost

    def reached_limit(self) -> Cause | None:
        """Return the limit that forbids a further call; None if a call is allowed."""
        return self._limit_of_run() or (self._purse.limited(self._agent) if self._agent else None)

    def _limit_of_run(self) -> Cause | None:
        if version := installed.other_version():
            return Cause("upgrade", problem=installed.in_words(version))
        self._budget = self._inbox.with_limits(self._budget)
        if self._agent and self._lost_call and has_limit(self._budgets, self._agent):
            return first_limit(self._budgets, self._agent, "")._replace(problem=_UNKNOWN)
        lost = self._spent.lost if self._budget.tokens or not self._unknown_call else 0
        return reached_limit(self._budget, self._spent._replace(lost=lost), self._run_seconds())

    def admit(self, call: Call) -> Call:
        """Return the call with an available agent; wait for an agent if needed.

        Raises LimitReached if a limit forbids the call.
        """
        while not self._signalled():
            if cause := self._limit_of_run():
                raise stopped(cause)
            chosen = self._chosen(call) if call.agent.name else call  # the limits of a raw command are unknown
            if chosen:
                if cause := self._purse.reserve(transcript_name(chosen), chosen.agent):
                    raise stopped(cause)
                return chosen
        return call

    def _chosen(self, call: Call) -> Call | None:
        """Return the call with an available agent. If none is available, wait until one is, then return None."""
        choices = [self._choice(agent) for agent in call.agent.choices]
        first = min(choices, key=lambda choice: choice.free_at if choice.free_at > clock.now() else 0.0)
        if first.free_at <= clock.now():
            self._report_switch(choices[0], first)
            return call._replace(agent=first.agent)
        if call.agent.on_limit == "stop":
            raise stopped(Cause("account", account=first.account, until=clock.rfc3339_local(first.free_at)))
        self._wait(first.free_at, first.account)
        return None

    def sync(self) -> None:
        """Sync the ledger to disk; called while an agent works."""
        self._purse.sync()

    def release(self, calls: Sequence[Call]) -> None:
        """Remove the budget reservations of calls that were admitted but not started."""
        self._purse.release(map(transcript_name, calls))

    def _report_switch(self, preferred: "Choice", taken: "Choice") -> None:
        """Emit a warning if the agent in use changes, even if it changes back to the preferred one."""
        before = self._acting.get(preferred.agent.name, preferred.agent.name)
        self._acting[preferred.agent.name] = taken.agent.name
        if before == taken.agent.name:
            return
        limit = f"Usage limit of {preferred.account} until {clock.rfc3339_local(preferred.free_at)}: "
        self._warn(f"{limit if preferred != taken else ''}{taken.agent.name} is used from now on")

    def _choice(self, agent: Agent) -> "Choice":
        if agent.name not in self._accounts:
            self._accounts[agent.name] = limits.account(agent)
        account = self._accounts[agent.name]
        known = self._known.get(account)
        return Choice(agent, account, max(limits.limited_until(account), known.usable_at() if known else 0.0))

    def record(self, call: Call, reply: Reply) -> bool:
        """Add a reply to the run's usage; return True if the call hit a usage limit and must be repeated later."""
        self._purse.paid(transcript_name(call), call.kind, call.number, call.agent, reply)
        self._lost_call = self._lost_call or (reply.lost and not self._unknown_call)
        spent = add(self._spent, reply.cost, reply.usage, reply.seconds)
        self._spent = spent._replace(lost=spent.lost + reply.lost)
        if not self._warned and (doubt := uncounted(self._budget, reply)):
            self._warned = True
            self._warn(doubt)
        if reply.outcome != USAGE_LIMIT:
            return False
        now, account = clock.now(), self._choice(call.agent).account
        self._known[account] = limits.new_limit(now + until_reset(reply.reset_at, now))
        limits.record_limit(account, self._known[account], reply.message)
        return True


class Choice(NamedTuple):
    """An agent that could be called, and the time from which its account is available."""

    agent: Agent
    account: str
    free_at: float  # Unix time; in the past if available now


def stopped(cause: Cause) -> LimitReached:
    return LimitReached(in_words(cause), _hint(cause), cause)


def _hint(cause: Cause) -> str:
    if cause.kind == "upgrade":
        return installed.HINT
    if cause.kind == "account":
        return "No further agent is started. Resume then, or with another --agent."
    if cause.lost or cause.problem:
        return _STOPPED  # also for a loop that another worker continues
    return f"{_STOPPED} Before you resume: {before}." if (before := remedy(cause)) else _RAISE
