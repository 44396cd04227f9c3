"""What every agent call passes: is there money left, may its account be asked? Waits, or takes another agent."""

from collections.abc import Callable
from math import inf
from typing import NamedTuple

from rooda.agents import limits
from rooda.agents.backoff import until_reset
from rooda.agents.outcome import USAGE_LIMIT
from rooda.agents.records import Agent, Call, Reply
from rooda.base import clock
from rooda.errors import Cause, LimitReached
from rooda.run import history
from rooda.run.setup import Budget
from rooda.run.spending import Spent, add, enough, in_words, total, uncounted

Rest = Callable[[float, str], None]  # until when, for whom
Warn = Callable[[str], None]


class Turnstile:
    """Counts what a run uses, over all its sessions, and minds the limits of accounts."""

    def __init__(self, budget: Budget, rest: Rest, signalled: Callable[[], int], warn: Warn) -> None:
        self._budget, self._rest, self._signalled, self._warn = budget, rest, signalled, warn
        self._warned = False
        self._accounts: dict[str, str] = {}  # by the agent's name
        self._acting: dict[str, str] = {}  # who is asked in the place of an agent, by its name
        self._known: dict[str, limits.Limit] = {}  # should they not be noted anywhere else
        self._began, self._spent, self._earlier = clock.running_time(), Spent(), 0.0

    def count_earlier(self, workspace: str, name: str, loop: str, agent: Agent | None) -> None:
        """What the run used before this session; what a crash cut off at this agent's prices."""
        if not any(self._budget):
            return
        sessions, prices = history.of_run(workspace, name, loop), agent.prices if agent else {}
        self._spent = total(call for session in sessions for call in session.used(lambda: prices))
        self._earlier = sum(session.run_time for session in sessions)

    def ran(self) -> float:
        """Seconds that this session has run, without those in which it stood still."""
        return round(clock.running_time() - self._began, 3)

    def left(self) -> float:
        """Seconds until no further call may be made."""
        return self._budget.seconds - self._run_time() if self._budget.seconds else inf

    def _run_time(self) -> float:
        return self._earlier + clock.running_time() - self._began

    def enough(self) -> Cause | None:
        """The limit of the run that forbids a further call; None while one may be made."""
        return enough(self._budget, self._spent, self._run_time())

    def passed(self, call: Call) -> Call:
        """The call as it can be made now. LimitReached if it can't."""
        while not self._signalled():
            if cause := self.enough():
                raise _stopped(cause, "No further agent is started. Resume with a higher limit.")
            if not call.agent.name:  # nothing is known of a raw command's limits
                break
            choices = [self._choice(agent) for agent in call.agent.choices]
            first = min(choices, key=lambda choice: choice.free_at if choice.free_at > clock.now() else 0.0)
            if first.free_at <= clock.now():
                self._say_switch(choices[0], first)
                return call._replace(agent=first.agent)
            if call.agent.on_limit == "stop":
                cause = Cause("account", account=first.who, until=clock.rfc3339_local(first.free_at))
                raise _stopped(cause, "No further agent is started. Resume then, or with another --agent.")
            self._rest(first.free_at, first.who)
        return call

    def _say_switch(self, own: "Choice", taken: "Choice") -> None:
        """Once each time, and once when the first agent may be asked again."""
        before = self._acting.get(own.agent.name, own.agent.name)
        self._acting[own.agent.name] = taken.agent.name
        if before == taken.agent.name:
            return
        limit = f"Usage limit of {own.who} until {clock.rfc3339_local(own.free_at)}: "
        self._warn(f"{limit if own != taken else ''}{taken.agent.name} is asked from now on")

    def _choice(self, agent: Agent) -> "Choice":
        if agent.name not in self._accounts:
            self._accounts[agent.name] = limits.account(agent)
        who = self._accounts[agent.name]
        known = self._known.get(who)
        return Choice(agent, who, max(limits.until(who), known.free_at() if known else 0.0))

    def counted(self, call: Call, reply: Reply) -> bool:
        """Into the books. True if the call met a usage limit, and has to be made again when that is over."""
        self._spent = add(self._spent, reply.cost, reply.usage, reply.seconds)
        if not self._warned and (doubt := uncounted(self._budget, reply)):
            self._warned = True
            self._warn(doubt)
        if reply.outcome != USAGE_LIMIT:
            return False
        now, who = clock.now(), self._choice(call.agent).who
        self._known[who] = limits.limit(now + until_reset(reply.reset_at, now))
        limits.note(who, self._known[who], reply.message)
        return True


class Choice(NamedTuple):
    """An agent that could be asked, and from when on."""

    agent: Agent
    who: str
    free_at: float


def _stopped(cause: Cause, hint: str) -> LimitReached:
    return LimitReached(in_words(cause), hint, cause)
