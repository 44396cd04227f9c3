"""Runs one leg: the work of this worker on a task, from the claim in git to the delivered branch.

The loop is an ordinary rooda loop, a child of the worker. At the end of each turn (an iteration), the loop waits
until the worker has pushed the turn to git.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING

from rooda import __version__
from rooda.base import clock, dirs, json
from rooda.base.json import Json
from rooda.base.text import counted
from rooda.errors import FAILED, OK, RoodaError
from rooda.fleet import chain, policy, preparation, publish, restore
from rooda.fleet import ticket as tickets
from rooda.fleet.chain import TURN, Entry, Record
from rooda.fleet.held_loop import HeldLoop, Note
from rooda.fleet.mirror import Mirror, Unreachable
from rooda.fleet.options import FleetSettings, fleet_settings
from rooda.fleet.port import Desk, Land, Lost, Order, Place, Work
from rooda.fleet.receipt import Receipt, Receipts
from rooda.fleet.remote import DONE, REFUSED, REJECTED, Remote, Result, Update
from rooda.fleet.ticket import Ticket
from rooda.processes import detach
from rooda.run import ended as run_ended
from rooda.settings.layers import Settings
from rooda.tasks import model, results, work
from rooda.tasks.model import Task

if TYPE_CHECKING:
    from rooda.fleet.worker import Fleet

ROUND = "round"  # key of a record: the number of the task's loop, which each retry raises


class Host:
    """Facts about this worker that its legs share."""

    def __init__(self, name: str, own: FleetSettings, environ: Mapping[str, str], say: Callable[[str], None]) -> None:
        """`environ`: the worker's own environment, with git's credentials."""
        self.name, self.settings, self.policy, self.environ, self.say = name, own, own.policy, environ, say
        self.home = dirs.data("fleet")
        self._remotes: dict[tuple[str, str, str], tuple[Mirror, Remote]] = {}
        self._slots: set[int] = set()
        self._changing = threading.Lock()

    def remote_of(self, ticket: Ticket) -> tuple[Mirror, Remote]:
        """Return the mirror of a task's repository, and the mirror's Remote. All legs of a repository share both."""
        place = ticket.repository, ticket.state, ticket.ref_prefix
        with self._changing:
            if place not in self._remotes:
                mirror = Mirror(
                    self.home,
                    tickets.key_of(ticket.repository),
                    ticket.repository,
                    ticket.state,
                    prefix=ticket.ref_prefix,
                    insecure=self.policy.insecure,
                    environ=self.environ,
                )
                self._remotes[place] = mirror, Remote(mirror)
            return self._remotes[place]

    @contextmanager
    def slot(self) -> Iterator[int]:
        """Yield a number that no other running leg of this worker has, so that ports and databases can depend on it."""
        with self._changing:
            number = next(each for each in count() if each not in self._slots)
            self._slots.add(number)
        try:
            yield number
        finally:
            with self._changing:
                self._slots.discard(number)


def make(found: Settings, place: Place, say: Callable[[str], None], environ: Mapping[str, str]) -> Work:
    """Return a function that runs a leg on this worker. `environ`: the worker's environment, with git's credentials."""
    host = Host(place.name, fleet_settings(found), environ, say)
    return lambda order, desk: run(order, desk, host)


def make_land(
    found: Settings, place: Place, say: Callable[[str], None], fleet: "Fleet", environ: Mapping[str, str]
) -> Land:
    """Return a function that lands tasks on this worker."""
    own = fleet_settings(found)

    def work(wish: Json, desk: Desk) -> Json:
        from rooda.fleet import landing
        from rooda.fleet.engine import Engine

        engine = Engine(fleet.address, fleet.heartbeat, fleet.insecure)
        try:
            on = landing.Landing(place.name, own, environ, lambda: engine.board(wish["key"]), engine.order)
            said = landing.land(wish, on)
        finally:
            engine.close()
        say(f"Landing on {wish.get('target')}: {said['kind']}, {said.get('why') or said.get('code')}")
        return said

    return work


class Over(Exception):
    """Raised to end a leg with an outcome other than the end of its loop: refused, parked or handed back."""

    def __init__(self, kind: str, **facts: str | bool) -> None:
        super().__init__(kind)
        self.outcome: Json = {"kind": kind, **facts}


def parked(by: str, reason: str) -> Over:
    return Over("parked", by=by, reason=reason)


def run(order: Order, desk: Desk, host: Host) -> Json:
    """Run a leg, and return its outcome."""
    outcome = {**_outcome(order, desk, host), "worker": host.name}
    why = outcome.get("why") or outcome.get("reason") or f"exit {outcome.get('code')}"
    host.say(f"Task {order.ticket.get('number')}: {outcome['kind']}, {why}")
    return outcome


def _outcome(order: Order, desk: Desk, host: Host) -> Json:
    try:
        ticket = tickets.decode(order.ticket)
        task = model.decode(order.task) if order.task else ticket.task
        if why := policy.refusal(host.policy, ticket._replace(task=task)):
            raise Over("refused", why=why)
        task = task._replace(id=ticket.number, limits=policy.capped(host.policy, task.limits))
        with host.slot() as slot:
            return Leg(order, ticket, task, desk, host, slot).run()
    except json.Mismatch as problem:
        return {"kind": "refused", "why": f"its rooda {__version__} can't read the ticket: {problem}"}
    except Lost as lost:
        return {"kind": "lost", "why": str(lost) or "another worker has claimed it"}
    except Over as over:
        return over.outcome
    except Unreachable as problem:
        return {"kind": "handed-back", "why": str(problem), "away": True}
    except RoodaError as problem:
        return {"kind": "parked", "by": "setup", "reason": problem.what}


class Leg:
    """A running leg: one stay of a task on this worker."""

    def __init__(self, order: Order, ticket: Ticket, task: Task, desk: Desk, host: Host, slot: int) -> None:
        self._order, self._ticket, self._task, self._desk, self._host = order, ticket, task, desk, host
        self._slot = slot
        self._home = os.path.join(host.home, "tasks", host.name, f"{ticket.key}-{ticket.number}")
        self._mirror, self._remote = host.remote_of(ticket)
        self._loop = HeldLoop(desk, self._publish_turn, work.kind_of(task))
        self._tip = self._head = ""
        self._fence = self._seq = 0
        self._has_trouble = False

    def run(self) -> Json:
        self._desk.record({})
        entries = self._entries()
        last = chain.last_turn(entries)
        if last and last.record.over and (last.record.more or {}).get(ROUND, 1) == self._task.turnings.loop:
            return self._already_over(last)
        if chain.is_poisoned(entries) and not self._order.anew:
            raise parked(
                "poison", f"{counted(chain.lost_claims(entries), 'worker')} lost it at turn {chain.next_seq(entries)}"
            )
        base, config = self._settings()
        self._claim(entries)
        workspace = self._restore(base, config)
        return self._work(workspace, config)

    def _entries(self) -> tuple[Entry, ...]:
        self._tip = self._mirror.fetch(self._ticket.number)
        if not self._tip:
            state = tickets.without_password(self._ticket.state)
            raise parked("setup", f"its ref {self._ticket.ref} is not in {state}")
        return self._remote.entries(self._tip)

    def _settings(self) -> tuple[str, str]:
        """Check out the settings at the target's tip; return the tip and the settings file."""
        target = self._task.target.removeprefix("origin/")
        if not (base := self._mirror.branch(target)):
            raise parked("setup", f"the repository has no branch {target}")
        config = preparation.settings_of(self._mirror, base, self._ticket.prefix)
        if why := preparation.refused_agent(self._host.policy, self._task, config):
            raise Over("refused", why=why)
        return base, config

    # Git

    def _claim(self, entries: tuple[Entry, ...]) -> None:
        self._fence, self._seq = chain.next_fence(entries), chain.next_seq(entries)
        stamp = clock.rfc3339(clock.now())
        record = chain.claim_after(entries, self._host.name, __version__, stamp, self._order.anew)
        made = publish.claim(self._mirror, self._tip, record)
        self._settle(self._remote.push(Update(self._ticket.number, self._tip, made), self._is_ordered), made)
        self._desk.record({"fence": self._fence})
        self._host.say(f"Claimed task {self._ticket.number}: {self._task.title}")

    def _settle(self, result: Result, made: str) -> None:
        """Continue with the new tip after a push that succeeded; otherwise end the leg."""
        if result.kind == DONE:
            self._tip = made
            return
        if result.kind == REFUSED:
            raise Lost
        if result.kind == REJECTED:
            raise parked("forge", f"the state repository refused the push: {result.words}")
        raise Over("handed-back", why=f"the state repository can't be reached: {result.words}", away=True)

    def _is_ordered(self, seconds: float) -> bool:
        """Wait up to `seconds` while no loop runs; return True if an order arrived. The engine carries it out."""
        return bool(self._desk.orders(seconds))

    def _record(self) -> Record:
        return Record(
            kind=TURN,
            task=self._ticket.number,
            seq=self._seq,
            fence=self._fence,
            worker=self._host.name,
            rooda=__version__,
            at=clock.rfc3339(clock.now()),
            more={ROUND: self._task.turnings.loop},
        )

    def _restore(self, base: str, config: str) -> str:
        """Recreate the clone as the last turn left it, moving any existing clone aside. Return the workspace in it."""
        folder = preparation.room_for(self._home)
        branch = preparation.branch_of(self._ticket, self._task)
        words = preparation.start_words(self._home, self._task, config)
        made = restore.restore(
            self._mirror,
            self._remote.entries(self._tip),
            folder,
            base=base,
            branch=branch,
            prefix=self._ticket.prefix,
            start=lambda *_: {"words": words, "kept": self._kept()},
        )
        self._task = self._task._replace(branch=branch, clone=folder)
        preparation.prepare(self._host.policy, made.workspace, config, self._loop_environment())
        self._publisher = publish.Publisher(
            self._mirror,
            folder,
            self._ticket.prefix,
            environ=self._host.environ,
            logs=self._ticket.logs == "git",
            entries=self._remote.entries(self._tip),
        )
        self._receipts = Receipts(made.workspace)
        return str(made.workspace)

    def _kept(self) -> list[str]:
        return [f"--context={self._task.text}"] if self._task.kind == model.PROCEDURE else []

    # The loop

    def _loop_environment(self) -> dict[str, str]:
        project = os.path.normpath(os.path.join(self._mirror.folder, self._ticket.prefix))
        return preparation.environment(self._host.environ, self._slot, project)

    def _work(self, workspace: str, config: str) -> Json:
        self._workspace, self._config = workspace, config
        argv = [*detach.rooda_command(), *work.words_of(self._home, self._task, workspace, config)]
        self._loop.workspace = workspace
        if "resume" in argv:
            self._loop.give([Note(text=self._task.prompt), *(json.decode(Note, each) for each in self._order.notes)])
        code = self._loop.run(argv, self._loop_environment(), os.path.join(self._home, "out"))
        if self._loop.failure:
            raise self._loop.failure
        facts = results.facts_or_none(workspace, config)
        over = {"code": code, "facts": json.encode(facts)} if code in (OK, FAILED) else {}
        if self._loop.has_closed_turn or over:
            self._publish_turn(over)
        is_paused = facts.state == run_ended.PAUSED and not (facts.cause and facts.cause.limit)
        if self._loop.handed_back and (is_paused or (self._loop.is_ended and not over)):
            return {"kind": "handed-back", "why": self._loop.handed_back}
        said = results.said(os.path.join(self._home, "out"), self._loop.printed)
        return {
            "kind": "ended",
            "code": code,
            "facts": json.encode(facts),
            "head": self._head,
            "branch": self._task.branch,
            "said": said.line,
            "text": said.text,
        }

    def _publish_turn(self, over: Json) -> None:
        """Publish a turn; after a loop's last turn, deliver its branch if the loop succeeded.

        `over`: exit code and facts of a loop that has ended for good; {} for any other turn.
        """
        receipt = self._receipts.next()
        record = _with_receipt(self._record(), receipt)
        record = record._replace(over=bool(over), more={**record.more, **over})
        turn = self._publisher.turn(self._tip, record)
        if turn.leaks:
            held = ", ".join(f"{leak.path} holds the worker's {leak.name}" for leak in turn.leaks)
            raise parked("secrets", f"turn {self._seq} is held: {held}")
        if turn.trouble and not self._has_trouble:
            self._has_trouble = True
            self._host.say(f"Task {self._ticket.number}: {turn.trouble}")
        self._head = turn.record.head
        update = Update(self._ticket.number, self._tip, turn.commit, self._publisher.objects)
        if over.get("code") == OK and turn.record.head:
            update = update._replace(branch=self._task.branch, branch_commit=turn.record.head)
        push = self._remote.push if over else self._remote.turn
        self._settle(push(update, self._loop.give_up.wait), turn.commit)
        self._publisher.done(turn)
        self._seq += 1
        self._desk.record(self._facts(turn.record))

    def _facts(self, record: Record) -> Json:
        """Return the facts about a turn that are reported to the engine."""
        facts = results.facts_or_none(self._workspace, self._config)
        return {
            "turn": record.seq,
            "fence": record.fence,
            "worker": self._host.name,
            "head": record.head,
            "branch": self._task.branch,
            "heard": self._loop.heard(),
            "iteration": facts.iteration,
            "cost": facts.cost,
            "tokens": facts.tokens,
            "seconds": facts.seconds,
            "session": facts.session,
            "loop_state": facts.state,
        }

    def _already_over(self, last: Entry) -> Json:
        """Complete an earlier leg that was lost after its loop had ended: deliver the branch; return the outcome."""
        branch = preparation.branch_of(self._ticket, self._task)
        told = last.record.more or {}
        if last.record.head and told.get("code") == OK:
            update = Update(self._ticket.number, self._tip, self._tip, (), branch, last.record.head)
            self._settle(self._remote.push(update, self._is_ordered), self._tip)
        ended = {"code": told.get("code", FAILED), "facts": told.get("facts", {}), "said": "", "text": ""}
        return {"kind": "ended", "head": last.record.head, "branch": branch, **ended}


def _with_receipt(record: Record, receipt: Receipt) -> Record:
    return record._replace(
        loop=receipt.loop,
        name=receipt.name,
        iteration=receipt.iteration,
        outcome=receipt.outcome,
        failures=receipt.failures,
        ending=receipt.ending,
        cost=None if receipt.unknown and not receipt.cost else receipt.cost,
        tokens=receipt.tokens,
        unknown=receipt.unknown,
        gates=receipt.gates,
        seconds=receipt.seconds,
        message=receipt.message,
    )
