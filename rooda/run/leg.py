"""Connects a loop to the fleet's worker that started it.

A turn is an iteration. The loop starts no agent call until the worker has published the previous turn. A loop loads
this module only if ROODA_LEG names the worker's socket.
"""

from collections.abc import Iterable

from rooda.agents import limits
from rooda.agents.backoff import until_reset
from rooda.agents.outcome import USAGE_LIMIT
from rooda.agents.records import Agent, Reply
from rooda.base import clock
from rooda.base import json as base_json
from rooda.base.json import Json
from rooda.errors import TERMINATED, Cause, Interrupted
from rooda.processes.link import Closed, Link
from rooda.processes.signals import Signals
from rooda.run.budgets import Purse
from rooda.run.cost_ledger import CostLedger
from rooda.run.spending import Used

HANDOVER = "handover"  # kind of the Cause that ends a loop because another machine goes on with it


class Leg:
    """The loop's connection to its worker."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._ending = ""
        self._closed: Json = {}  # the event that closed a turn which is not published yet
        self._has_call = False  # an agent's call has ended since the last turn was published

    def close_turn(self, record: Json) -> None:
        """Report the end of a turn; called after the turn's last event is written.

        A loop that ends with this turn does not wait: the worker publishes the turn and the end after the loop exits.
        """
        self._closed = record
        try:
            self._link.tell({"closed": _said(record)})
        except OSError:
            raise Interrupted(TERMINATED - 128) from None

    def end_call(self, record: Json) -> None:
        self._has_call = True

    def close_part(self, record: Json) -> None:
        """Report the end of a part of an iteration if an agent worked in it.

        The worker then publishes the part, so that no other worker must repeat the agent's calls.
        """
        if self._has_call:
            self.close_turn(record)

    def publish(self, event: object = None) -> None:
        """Wait until the worker has published the ended turn, if there is one.

        A signal ends the wait: the worker publishes once more when the loop has ended.
        """
        if self._closed:
            self._ending = str(self.ask({"turn": _said(self._closed)}).get("end", "")) or self._ending
            self._closed, self._has_call = {}, False

    @property
    def ended(self) -> Cause | None:
        """The reason why the worker wants this loop to end; None if it may continue."""
        return Cause(HANDOVER, problem=self._ending) if self._ending else None

    def ask(self, question: Json) -> Json:
        """Send a question; return the worker's answer, {} after a signal. Raises Interrupted if the worker is gone."""
        try:
            return self._link.ask(question) or {}
        except Closed:
            raise Interrupted(TERMINATED - 128) from None

    def close(self) -> None:
        self._link.close()


def _said(record: Json) -> Json:
    return {"event": record["event"], "run": record["run"]}


class LegPurse(Purse):
    """Counts calls against the budgets of this machine, and against those that the whole fleet shares."""

    def __init__(self, own: CostLedger, leg: Leg, run: str) -> None:
        self._own, self._leg, self._run = own, leg, run

    def limited(self, agent: Agent) -> Cause | None:
        self._leg.publish()
        return self._leg.ended or self._own.limited(agent)

    def reserve(self, call: str, agent: Agent) -> Cause | None:
        self._leg.publish()
        cause = self._leg.ended or self._own.reserve(call, agent) or self._reserved(call, agent)
        if cause:
            self._own.release([call])
        return cause

    def _reserved(self, call: str, agent: Agent) -> Cause | None:
        """Reserve the call's cost in the fleet; return the budget or usage limit that forbids it, else None."""
        facts = self._facts(call, agent) | {"amount": agent.cap, "day": agent.budget_day}
        cause = self._ask("reserve", facts).get("cause")
        return base_json.decode(Cause, cause) if cause else None

    def release(self, calls: Iterable[str]) -> None:
        found = [*calls]
        self._own.release(found)
        self._ask("release", {"calls": [self._name(call) for call in found]})

    def paid(self, call: str, kind: str, number: int, agent: Agent, reply: Reply) -> None:
        self._own.paid(call, kind, number, agent, reply)
        facts = self._facts(call, agent)
        self._ask("paid", facts | {"cost": reply.cost})
        if reply.outcome == USAGE_LIMIT:
            until = clock.now() + until_reset(reply.reset_at, clock.now())
            self._ask("limited", facts | {"until": clock.rfc3339(until), "until_at": until})

    def _facts(self, call: str, agent: Agent) -> Json:
        account = limits.account(agent) if agent.name else ""
        return {"call": self._name(call), "agent": agent.name, "account": account}

    def _name(self, call: str) -> str:
        """Return a name for the call that is unique in the fleet, because other runs have calls with the same name."""
        return f"{self._run}/{call}"

    def _ask(self, word: str, facts: Json) -> Json:
        return self._leg.ask({"money": {"ask": word, **facts}})

    def of_sessions(self, first: str, known: Iterable[str]) -> list[Used]:
        return self._own.of_sessions(first, known)

    def sync(self) -> None:
        self._own.sync()

    def close(self) -> None:
        self._own.close()


def connected(path: str, signals: Signals) -> Leg:
    """Return the connection to the worker that listens at `path`. Raises Interrupted if the worker is gone."""
    try:
        return Leg(Link(path, signals))
    except Closed:
        raise Interrupted(TERMINATED - 128) from None
