"""One call of a flow's agent, and what must come of it: its files, judged, nothing else touched; one more try."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from rooda.agents.backoff import backoff
from rooda.agents.outcome import FATAL, USAGE_LIMIT, in_words
from rooda.agents.records import Agent, Call, Reply
from rooda.base import files
from rooda.errors import Interrupted
from rooda.loops.flow.artifacts import Files, put, text
from rooda.loops.flow.contract import Broken, unfenced
from rooda.loops.flow.events import NodeAnswered
from rooda.loops.flow.guard import Guard
from rooda.loops.flow.model import NodeFailed
from rooda.run.event_records import Problem
from rooda.run.prompts import Measure
from rooda.run.session import Session
from rooda.run.setup import Setup

ESTIMATED = ""  # no vocabulary: a quarter of the characters
TRIES = 2
OFFENCES = 2  # of one agent file in a run, and it is trusted no longer
WORDS = {
    "timeout": "ended after {limit} s",
    "idle": "ended after {limit} s without output",
    "": "{said}",
}

Value = TypeVar("Value")


class Request(NamedTuple, Generic[Value]):
    """What is asked of whom."""

    kind: str  # sensor | controller | actuator
    who: str  # its agent file, for people and for counting offences
    path: str  # the node's
    label: str
    number: int  # the node's iteration
    agent: Agent
    prompt: Callable[[], str]
    outputs: Sequence[str]  # absolute paths
    judge: Callable[[], Value]  # reads them; Broken if they are not what was asked for
    may_edit: bool = False
    answer: Callable[[str], Any] | None = None  # could what it printed be its one file? Broken if not

    @property
    def name(self) -> str:
        """For people: `controller FILE`; who measures is named by its node alone."""
        return self.who if self.kind == "sensor" else f"{self.kind} {self.who}"


class Calls:
    """Makes the calls of one run."""

    def __init__(self, session: Session, setup: Setup, place: Files, guard: Guard) -> None:
        self._session, self._setup, self._place, self._guard = session, setup, place, guard
        self._offences: dict[str, int] = {}

    def make(self, request: Request[Value]) -> Value:
        """The value of a call that kept to its contract; NodeFailed after the last try."""
        failed = 0
        while True:
            reply = self._once(request, failed + 1)
            problem = in_words(reply, WORDS)
            if not problem:
                try:
                    return self._judged(request, reply, _stem(request, failed + 1))
                except Broken as broken:
                    problem = str(broken)
            failed += 1
            if failed == TRIES or reply.outcome in FATAL or (reply.ended == "not-started" and not reply.retryable):
                raise NodeFailed(f"{request.name} failed", problem)
            again = f"{request.path}, iteration {request.label}: {request.name}: {problem}; once more"
            self._session.emit(Problem(text=again))
            if reply.retryable:
                self._session.rest(backoff(self._setup.retry_wait, failed))
            self._listen()

    def guarded(
        self, who: str, outputs: Sequence[str], may_edit: bool, work: Callable[[], Value], may_commit: bool = False
    ) -> Value:
        """Do the work, and put right what it was not allowed to do."""
        for path in outputs:
            files.remove_tree(path)
        before = self._guard.before()
        value = work()
        breaches = self._guard.after(before, outputs, may_edit, may_commit)
        for breach in breaches:
            self._session.emit(Problem(text=f"{who} {breach.text}"))
        self._offences[who] = self._offences.get(who, 0) + any(breach.offence for breach in breaches)
        if self._offences[who] >= OFFENCES:
            raise NodeFailed(f"{who} did what it may not, for the second time")
        return value

    def _once(self, request: Request[Value], attempt: int) -> Reply:
        stem, setup, said = _stem(request, attempt), self._setup, request.prompt()
        prompt = self._session.prompt(lambda: said, stem, _measure(said, setup))
        call = Call(
            kind=request.kind,
            number=request.number,
            agent=request.agent,
            prompt=prompt,
            bounds=setup.bounds,
            label=stem.partition("-")[2],
            env={"ROODA_NODE": request.path, "ROODA_LABEL": request.label},
            apart=True,
        )
        work = partial(self._session.ask, call)
        reply = self.guarded(request.who, request.outputs, request.may_edit, work)
        if reply.ended == "interrupted" or reply.outcome == USAGE_LIMIT:  # then a signal ended the waiting
            raise Interrupted(self._session.signalled())
        return reply

    def _judged(self, request: Request[Value], reply: Reply, stem: str) -> Value:
        """By its files; by what it printed, if that is what the one missing file should have been."""
        if request.answer and len(request.outputs) == 1 and text(request.outputs[0]) is None:
            said = unfenced(reply.said.whole or "")
            try:
                request.answer(said)
            except Broken:
                pass  # the judge says what is missing
            else:
                put(request.outputs[0], said)
        self.keep(request.kind, request.path, request.label, stem, request.outputs)
        return request.judge()

    def keep(self, kind: str, path: str, label: str, stem: str, outputs: Sequence[str]) -> None:
        """Copies of what was written, for whoever asks later: the next cycle puts its own in the same place."""
        said = [(os.path.basename(each), text(each)) for each in outputs]
        write = self._session.folder.write
        kept = [write(f"{stem}-{name}", files.to_bytes(each)) for name, each in said if each is not None]
        self._session.emit(NodeAnswered(node=path, label=label, call=kind, files=kept))

    def _listen(self) -> None:
        if number := self._session.signalled():
            raise Interrupted(number)


def _stem(request: Request[Any], attempt: int) -> str:
    """How the names of a call's files begin."""
    return f"{request.number:04d}-{request.kind}-{request.label}" + ("-again" if attempt > 1 else "")


def _measure(text: str, setup: Setup) -> Measure:
    """A token has a byte at least: what has no more bytes than the budget has tokens can't be over it.

    Each prompt of a flow is another one, and counting one exactly costs more than all else that rooda does for a call.
    """
    within = len(text.encode("utf-8", "replace")) <= setup.token_budget or not setup.token_budget
    return Measure(ESTIMATED if within else setup.token_encoding, setup.token_budget)
