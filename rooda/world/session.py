"""One session of a procedure: its run folder, journal and signals, bound into the World that the loop is given."""

import os
from collections.abc import Callable
from functools import partial
from typing import Any

from rooda.errors import TERMINATED, Interrupted
from rooda.model import Call, Gate, Gates, Json, Procedure, Prompt, Reply, World
from rooda.world import clock, compose, kinship, memory, process
from rooda.world.agents import ask, command, environment, evidence
from rooda.world.checks import Checker, Limits
from rooda.world.ground import Ground
from rooda.world.journal import Journal
from rooda.world.kept import KeptPrompt
from rooda.world.ledger import Ledger
from rooda.world.lock import Lock
from rooda.world.process import Tick
from rooda.world.runfolder import RunFolder, new_id
from rooda.world.signals import Signals

DURABLE = ("iteration.ended", "run.started", "run.resumed", "run.ended")


class Session:
    """Everything that one start or resume opens, and closes again."""

    def __init__(
        self,
        workspace: str,
        procedure: Procedure,
        signals: Signals,
        show: Callable[[Json], None],
        tick: Tick | None,
        held: Lock | None,
    ) -> None:
        memory.settle()
        self._began = clock.monotonic()
        folder = RunFolder(workspace, new_id(procedure.name))
        kinship.adopt_orphans()
        kinship.mark(folder.run)
        self._show, self._signals, self._grace = show, signals, procedure.kill_grace
        self._iteration = 0
        marks = {"ROODA_RUN": folder.run, "ROODA_LOOP": "ooda", "ROODA_PROCEDURE": procedure.name}
        self._ground = Ground(workspace, {**environment.inherited(), **marks}, folder, signals, tick)
        self._journal = Journal(folder, loop="ooda", procedure=procedure.name)
        self._ledger = Ledger(held, folder.run, lambda text: self.tell("problem", text=text))
        keep = procedure.agent is not None and procedure.agent.keep_background
        limits = Limits(procedure.kill_grace, procedure.max_output_buffer, keep)
        self._checker = Checker(self._ground, limits, lambda event, facts: self.tell(event, **facts))
        self._prompt = KeptPrompt(folder)
        signals.when_abandoned = self._ledger.abandon

    def world(self) -> World:
        return World(
            now=lambda: clock.rfc3339(clock.now()),
            seconds=clock.now,
            elapsed=lambda: clock.monotonic() - self._began,
            signalled=self.signalled,
            tell=self.tell,
            compose=self.compose,
            ask=self.ask,
            check=self.check,
            rest=self.rest,
        )

    def signalled(self) -> int:
        """The signal that came first. Interrupted when the guardian was killed: then this counts as a crash."""
        first = self._signals.first
        if self._signals.abandoned:
            raise Interrupted(first)
        return first

    def tell(self, event: str, **facts: Any) -> None:
        """Into the journal first, then before the eyes."""
        self._iteration = facts.get("iteration", self._iteration)
        turn = {} if event.startswith("run.") else {"iteration": self._iteration, "display": self._iteration + 1}
        record = self._journal.record(event, {**turn, **facts})
        self._journal.append(record, durable=event in DURABLE)
        self._show(record)

    def compose(self, procedure: Procedure, iteration: int) -> Prompt:
        began = clock.monotonic()
        self._keep_the_lock()
        text = compose.text(procedure, iteration + 1)
        prompt = self._prompt.keep(text, iteration, procedure)
        self._say_problem()
        facts = {"phase": "assemble", "elapsed": round(clock.monotonic() - began, 6), **prompt._asdict()}
        self.tell("prompt.assembled", **facts)
        if prompt.over_budget:
            self.tell("budget.exceeded", phase="budget", tokens=prompt.tokens, exact=prompt.exact, budget=prompt.budget)
        return prompt

    def ask(self, call: Call) -> Reply:
        transcript = os.path.join(self._ground.folder.ready(), ask.transcript_name(call.number, call.kind))
        about = {"agent": call.agent.name, "output": call.agent.output}
        self.tell("agent.started", phase="execute", call=call.kind, transcript=transcript, **about)
        note = partial(self._ledger.enter, command=command.describe(call.agent))
        reply = ask.ask(call, self._ground, note, self._journal.sync)
        self.signalled()
        self._keep_the_lock()
        self.tell("agent.ended", phase="execute", **evidence.of(call, reply))
        if reply.truncated:
            self.tell("output.truncated", size=reply.size, limit=call.max_output_buffer)
        self._say_problem()
        return reply

    def check(self, gates: tuple[Gate, ...], iteration: int) -> Gates:
        """No gates: no step, no word."""
        if not gates:
            return Gates()
        began = clock.monotonic()
        found = self._checker.check(gates, iteration)
        self.signalled()
        outcome = "interrupted" if found.interrupted else "failure" if found.failed else "success"
        facts = {"elapsed": round(clock.monotonic() - began, 3), "outcome": outcome, "summary": found.summary}
        self.tell("gates.ended", phase="gates", **facts)
        self._say_problem()
        return found

    def _keep_the_lock(self) -> None:
        """Interrupted when another run has taken our place; whatever state is on disk is its own."""
        if not self._ledger.renew():
            raise Interrupted(TERMINATED - 128)

    def rest(self, seconds: float) -> None:
        """Wait, and say so; a signal ends it."""
        self.tell("resting", seconds=round(seconds, 1), until=clock.rfc3339(clock.now() + seconds))
        deadline = clock.monotonic() + seconds
        while (left := deadline - clock.monotonic()) > 0 and not self.signalled():
            self._signals.wait(left)

    def close(self) -> None:
        """Nobody lives on, and the ledger says so."""
        process.end_leftovers(self._signals, self._grace)
        self._journal.sync()
        self._journal.close()
        self._ledger.close()

    def _say_problem(self) -> None:
        problem = self._ground.folder.take_problem()
        if problem:
            self.tell("problem", text=problem)
