"""Runs the agent calls of a session within its budget, in parallel with shell commands, and reports them as events."""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from rooda.agents import call as agents_call
from rooda.agents import command
from rooda.agents.context import CallContext
from rooda.agents.last_words import last_words
from rooda.agents.outcome import CONFIG, USAGE_LIMIT, refusal
from rooda.agents.records import Agent, Call, Reply
from rooda.base import clock, files, secrets
from rooda.base.json import Json
from rooda.errors import TERMINATED, Interrupted, LimitReached
from rooda.processes import supervise
from rooda.processes.ledger import Ledger
from rooda.run.budget import BudgetGate
from rooda.run.commands import CommandRunner, results_of
from rooda.run.event_records import (
    AgentEnded,
    AgentSilent,
    AgentStarted,
    OutputTruncated,
    StateUnsaved,
    TranscriptReplaced,
)
from rooda.run.events import Events
from rooda.run.folder import RunFolder
from rooda.run.records import Command, CommandResult

if TYPE_CHECKING:
    from rooda.run.walls import SessionWalls

NOT_ASKED = Reply(1, 0.0, ended="not-started", outcome=USAGE_LIMIT)
EXCERPT = 500  # characters of a failed call's output in the log, from its beginning and from its end
_FROM_TRANSCRIPT = (  # fields that a raw command does not have
    *("message", "retryable", "reset_at", "usage", "cost", "cost_source"),
    *("model", "turns", "tools", "edited", "denied", "unknown_records"),
)


class AgentCalls:
    """Calls agents: one, or several at once."""

    def __init__(
        self,
        context: CallContext,
        folder: RunFolder,
        events: Events,
        ledger: Ledger,
        commands: CommandRunner,
        gate: BudgetGate,
        signalled: Callable[[], int],
        walls: "SessionWalls | None" = None,
    ) -> None:
        self._walls = walls
        self._context, self._folder, self._events, self._ledger = context, folder, events, ledger
        self._commands, self._gate, self._signalled = commands, gate, signalled
        self._refused_once: set[str] = set()  # agents whose last request was refused without a known reason
        self._limited: list[str] = []  # transcripts of calls that hit a usage limit
        self.refused = ""  # why the last call was refused permanently; "" if it was not

    def ask(self, call: Call) -> Reply:
        """Make one call; repeat it after each usage limit. Return NOT_ASKED if a signal prevents the call."""
        reply = NOT_ASKED
        while reply is NOT_ASKED and not self._signalled():
            reply = self.ask_together((call,))[0][0]
        return reply

    def ask_together(
        self, calls: Sequence[Call], commands: Sequence[Command] = ()
    ) -> tuple[list[Reply], list[CommandResult]]:
        """Make several calls at once, as soon as their accounts allow it, in parallel with shell commands.

        The reply is NOT_ASKED for a call that hit a usage limit. After a signal nothing is started.
        """
        admitted = self._admitted(calls)
        if self._signalled():  # the signal arrived before the wait or during it
            self._gate.release(admitted)
            return [NOT_ASKED] * len(calls), []
        replies, ran = self._run(admitted, commands)
        for place, (call, reply) in enumerate(zip(admitted, replies, strict=True)):
            if self._gate.record(call, reply):
                self._limited.append(agents_call.transcript_name(calls[place]))
                replies[place] = NOT_ASKED
        return replies, ran

    def _admitted(self, calls: Sequence[Call]) -> list[Call]:
        """Return the calls, each with an available agent. Raises LimitReached if one of them is not allowed."""
        admitted: list[Call] = []
        try:
            for call in calls:
                admitted.append(self._gate.admit(self._with_own_transcript(call)))
        except LimitReached:
            self._gate.release(admitted)
            raise
        return admitted

    def sync_state(self) -> None:
        """Sync the saved state to disk; report a failure as an event."""
        try:
            files.sync_replaced()
        except OSError as problem:
            self._events.emit(StateUnsaved(path=problem.filename, why=problem.strerror or str(problem)))

    def _with_own_transcript(self, call: Call) -> Call:
        """Return the call. If it is repeated after a usage limit, it gets a new label and a new transcript."""
        tries = self._limited.count(agents_call.transcript_name(call)) + 1
        return call if tries == 1 else call._replace(label=f"{call.label or call.kind}-{tries}")

    def _run(self, calls: Sequence[Call], commands: Sequence[Command]) -> tuple[list[Reply], list[CommandResult]]:
        for call in calls:
            self._report_start(call)
        self.require_lock()
        self._ledger.forget_ended()
        agents = agents_call.prepare(calls, self._context, self._on_start, self._on_silence)
        checks = self._commands.specs(commands)
        try:
            with self._watched([*(call.agent for call in calls), *([None] if checks else [])]):
                ended = supervise.run_all([*agents.specs, *checks], self._context.signals, agents.tick, self._sync)
            replies = self._with_costs(agents.replies(ended[: len(agents.specs)]))
            replies = [self._judged_again(call, reply) for call, reply in zip(calls, replies, strict=True)]
            self._signalled()
            self.require_lock()
            self.refused = next(filter(None, map(refusal, replies)), "")
            for call, reply, source in zip(calls, replies, agents.sources(replies), strict=True):
                self._report_end(call, reply, source)
        finally:
            agents.close()
        self._events.report_problem_of(self._folder)
        return replies, results_of(ended[len(agents.specs) :], checks)

    def _watched(self, who: Sequence[Agent | None]) -> AbstractContextManager[None]:
        return self._walls.watched(self._folder.ready(), self._events.emit, who) if self._walls else nullcontext()

    def _report_end(self, call: Call, reply: Reply, source: str | int) -> None:
        time, hidden = self._gate.session_seconds(), self._events.journal.hidden
        self._events.emit(ended_event(call, reply, time, source, hidden))
        if reply.truncated:
            self._events.emit(OutputTruncated(size=reply.size, limit=call.bounds.max_output_buffer))
        if reply.replaced:
            self._events.emit(TranscriptReplaced(transcript=reply.transcript, now=reply.replaced))

    def _judged_again(self, call: Call, reply: Reply) -> Reply:
        """Return the reply, marked as not retryable if it is the agent's second unexplained refusal in a row."""
        name = call.agent.name
        if reply.once and name in self._refused_once:
            return reply._replace(outcome=CONFIG, retryable=False)
        self._refused_once = self._refused_once | {name} if reply.once else self._refused_once - {name}
        return reply

    def _with_costs(self, replies: Sequence[Reply]) -> list[Reply]:
        """Return the replies; mark those whose transcript or event log disappeared, and price those of unknown cost."""
        gone = self._events.journal.has_vanished()
        telling = [reply.output != "text" and reply.ended != "not-started" for reply in replies]
        lost = [tells and (gone or bool(reply.replaced)) for tells, reply in zip(telling, replies, strict=True)]
        return [self._gate.priced(reply._replace(lost=each)) for each, reply in zip(lost, replies, strict=True)]

    def _report_start(self, call: Call) -> None:
        transcript = os.path.join(self._folder.ready(), agents_call.transcript_name(call))
        self._events.journal.hide({**call.agent.env, **call.env}, self._context.workspace)
        self._events.emit(
            AgentStarted(
                phase="execute",
                call=call.kind,
                transcript=transcript,
                agent=call.agent.name,
                output=call.agent.output,
                model=call.agent.model,
            )
        )

    def require_lock(self) -> None:
        """Raise Interrupted if another run has taken the lock: the state on disk then belongs to that run."""
        if not self._ledger.renew():
            raise Interrupted(TERMINATED - 128)

    def _on_start(self, pid: int, command: str) -> None:
        """Record a new agent in the ledger of processes.

        If the agent's process has no mark by which to find it, record it before any other work.
        """
        if self._context.marked:
            self._work_ahead()
        self._ledger.record(pid, command)
        if not self._context.marked:
            self._work_ahead()

    def _on_silence(self, since: float, log: str) -> None:
        self._events.emit(AgentSilent(since=clock.rfc3339(since), log=log if os.path.isfile(log) else ""))

    def _work_ahead(self) -> None:
        """Sync the state and prepare files while the agent starts, so that the next call need not wait for this."""
        self.sync_state()
        self._folder.make_spares("agent")
        files.release_replaced()

    def _sync(self) -> None:
        """Sync the ledgers and the journal to disk; called while agents work, when the loop waits anyway."""
        self._ledger.sync()
        self._events.journal.sync()
        self._gate.sync()


def ended_event(
    call: Call, reply: Reply, run_time: float, source: str | int, hidden: tuple[str, ...] = ()
) -> AgentEnded:
    """Return the event for the end of a call; for a raw command, omit the fields that are read from a transcript."""
    facts = reply._asdict()
    kind, _, _ = facts.pop("outcome"), facts.pop("answer"), facts.pop("replaced")
    del facts["once"], facts["retry_after"]
    if kind:
        facts.update(agent_outcome=kind, usage=reply.usage and reply.usage._asdict())
    else:
        for key in _FROM_TRANSCRIPT:
            if key not in ("cost", "cost_source") or reply.cost is None:
                del facts[key]
    for key in ("lost", "question"):
        if not facts[key]:
            del facts[key]
    outcome = "success" if reply.ok else "interrupted" if reply.ended == "interrupted" else "failure"
    facts |= {"elapsed": round(reply.seconds, 3), "seconds": round(reply.seconds, 6), "outcome": outcome}
    facts |= _failure_facts(call, reply, source, hidden)
    if outcome == "failure" or reply.promise == "FAILURE":
        facts |= {"said": last_words(reply)}
    return AgentEnded(phase="execute", ran=run_time, **facts)


def _failure_facts(call: Call, reply: Reply, source: str | int, hidden: tuple[str, ...]) -> Json:
    """Return a failed call's command and the beginning and end of its output, without secrets; {} if it succeeded."""
    if reply.ok:
        return {}
    try:
        text = files.tail(source, 8 * EXCERPT).decode("utf-8", "replace")
        is_long = reply.size > 8 * EXCERPT
        head = files.head(source, 4 * EXCERPT).decode("utf-8", "replace") if is_long else text
    except OSError:
        text = head = ""
    whole = head is text
    head, text = secrets.hide(head, hidden), secrets.hide(text, hidden)
    rest = text[EXCERPT:] if whole else text
    return {"command": command.describe(call.agent), "head": head[:EXCERPT], "tail": rest[-EXCERPT:]}
