"""Makes agent calls for a flow: undoes forbidden changes, checks the outputs, retries what failed."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, NamedTuple, TypeVar

from rooda.agents.backoff import backoff
from rooda.agents.last_words import last_words
from rooda.agents.outcome import USAGE_LIMIT, in_words, refusal
from rooda.agents.records import Agent, Call, Reply
from rooda.base import files
from rooda.base.text import telling_line
from rooda.errors import Interrupted
from rooda.loops.flow import prompts
from rooda.loops.flow.artifacts import Output, text, write
from rooda.loops.flow.contract import Broken
from rooda.loops.flow.events import NodeAnswered
from rooda.loops.flow.guard import Guard
from rooda.loops.flow.model import CallFailed, NodeFailed
from rooda.run.event_records import Problem
from rooda.run.prompts import Measure
from rooda.run.session import Session
from rooda.run.setup import Setup

ESTIMATED = ""  # no token encoding: estimate tokens as a quarter of the characters
TRIES = 3  # failed calls in a row (exit code, timeout, overloaded service) that end a request
ANSWERS = 2  # number of answers that break the contract, after which the node ends
OFFENCES = 2  # number of forbidden changes by one agent file in a session that ends the node
WORDS = {
    "timeout": "ended after {limit} s",
    "idle": "ended after {limit} s without output",
    "resources": "ended because it used {note}",
    "": "{summary}",
}

Value = TypeVar("Value")


class Request(NamedTuple, Generic[Value]):
    """An agent call to make, and the output that it must write."""

    kind: str  # sensor | controller | actuator
    who: str  # the call's agent file, for messages and for counting offences
    path: str  # the node's path
    label: str
    number: int  # iteration of the node
    agent: Agent
    prompt: str
    output: Output[Value]
    again: str  # text that a second request adds to the prompt
    may_edit: bool = False

    @property
    def name(self) -> str:
        """The call's name in messages: "controller FILE", or "sensors of NODE"."""
        return self.who if self.kind == "sensor" else f"{self.kind} {self.who}"


class Calls:
    """Makes the agent calls of one session."""

    def __init__(self, session: Session, setup: Setup, guard: Guard) -> None:
        self._session, self._setup, self._guard = session, setup, guard
        self._offences: dict[str, int] = {}

    def make(self, request: Request[Value]) -> Value:
        """Make the call and return its parsed output.

        Raises NodeFailed if even the last answer breaks its contract, and CallFailed if the call fails and no retry can
        help.
        """
        attempt, broken = 0, 0
        asked = request
        while True:
            reply, attempt = self._answered(asked, attempt)
            try:
                return self._read(request, reply, _stem(request, attempt))
            except Broken as problem:
                broken += 1
                if broken == ANSWERS:
                    raise NodeFailed(f"{request.name} failed", str(problem)) from None
                self._say_again(request, str(problem))
                asked = request._replace(prompt=prompts.after_breach(request.prompt, request.again, str(problem)))

    def _answered(self, request: Request[Value], attempt: int) -> tuple[Reply, int]:
        """Retry the call until it succeeds; return the reply and attempt number. Raise CallFailed on giving up."""
        for failed in range(1, TRIES + 1):
            reply = self._ask(request, attempt + failed)
            problem = _failure(reply)
            if not problem:
                return reply, attempt + failed
            if failed == TRIES or refusal(reply) or (reply.once and failed > 1):
                break
            self._say_again(request, problem)
            self._session.wait(backoff(self._setup.retry_wait, failed, reply.retry_after))
            self._stop_if_signalled()
        for path in request.output.paths:
            files.remove_tree(path)  # a resume would take an existing file for the step's result
        raise CallFailed(f"{request.path}, iteration {request.label}: {request.name} failed: {problem}")

    def _say_again(self, request: Request[Value], problem: str) -> None:
        again = f"{request.path}, iteration {request.label}: {request.name}: {problem}; retrying"
        self._session.emit(Problem(text=again))
        self._stop_if_signalled()

    @contextmanager
    def guarded(self, who: str, outputs: Sequence[str], may_edit: bool, may_commit: bool = False) -> Iterator[None]:
        """Delete the outputs before the `with` block; after the block, undo every change that was not allowed."""
        for path in outputs:
            files.remove_tree(path)
        before = self._guard.before()
        yield
        breaches = self._guard.after(before, outputs, may_edit, may_commit)
        for breach in breaches:
            self._session.emit(Problem(text=f"{who} {breach.text}"))
        self._offences[who] = self._offences.get(who, 0) + any(breach.offence for breach in breaches)
        if self._offences[who] >= OFFENCES:
            raise NodeFailed(f"{who} made forbidden changes for the second time")

    def keep(self, kind: str, path: str, label: str, stem: str, outputs: Sequence[str]) -> None:
        """Copy the outputs to the session's folder, because the next iteration overwrites them."""
        contents = [(os.path.basename(each), text(each)) for each in outputs]
        write = self._session.folder.write
        kept = [write(f"{stem}-{name}", files.to_bytes(each)) for name, each in contents if each is not None]
        self._session.emit(NodeAnswered(node=path, label=label, call=kind, files=kept))

    def _ask(self, request: Request[Value], attempt: int) -> Reply:
        stem, setup = _stem(request, attempt), self._setup
        call = Call(
            kind=request.kind,
            number=request.number,
            agent=request.agent,
            prompt=self._session.prompt(lambda: request.prompt, stem, _measure(request.prompt, setup)),
            bounds=setup.bounds,
            label=stem.partition("-")[2],
            env={"ROODA_NODE": request.path, "ROODA_LABEL": request.label},
            wants_answer=True,
        )
        with self.guarded(request.who, request.output.paths, request.may_edit):
            reply = self._session.calls.ask(call)
        if reply.ended == "interrupted" or reply.outcome == USAGE_LIMIT:  # or a signal ended the wait for a reset
            raise Interrupted(self._session.signalled())
        return reply

    def _read(self, request: Request[Value], reply: Reply, stem: str) -> Value:
        """Parse the output. If its only file is missing, use what the agent printed, provided that this is valid."""
        paths = request.output.paths
        if len(paths) == 1 and text(paths[0]) is None:
            printed = request.output.unwrapped(reply.answer.whole or "")
            try:
                request.output.check_printed(printed)
            except Broken:
                pass  # reading the output reports the missing file
            else:
                write(paths[0], printed)
        for path in paths:
            if (content := text(path)) and (unwrapped := request.output.unwrapped(content)) != content:
                write(path, unwrapped)
        self.keep(request.kind, request.path, request.label, stem, paths)
        return request.output.read()

    def _stop_if_signalled(self) -> None:
        if number := self._session.signalled():
            raise Interrupted(number)


def _stem(request: Request[Any], attempt: int) -> str:
    """Return the prefix of the names of a call's files."""
    again = "" if attempt == 1 else "-again" if attempt == 2 else f"-again-{attempt - 1}"
    return f"{request.number:04d}-{request.kind}-{request.label}{again}"


def _failure(reply: Reply) -> str:
    """Return why a call failed, with the agent's last line; "" if it succeeded."""
    problem = in_words(reply, WORDS)
    said = telling_line(last_words(reply)) if problem else ""
    return f"{problem} ({said})" if said and said not in problem else problem


def _measure(text: str, setup: Setup) -> Measure:
    """Return how to count a prompt's tokens: exactly only if it may exceed the budget.

    A token has at least one byte, so a prompt with fewer bytes than the budget has tokens fits. An exact count costs
    more than everything else that rooda does for a call, and as all prompts of a flow differ, it can't be cached.
    """
    within = len(text.encode("utf-8", "replace")) <= setup.token_budget or not setup.token_budget
    return Measure(ESTIMATED if within else setup.token_encoding, setup.token_budget)
