"""One session of a procedure: its run folder, journal and signals, bound into the World that the loop is given."""

import gc
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from rooda.model import Call, Gate, Gates, Json, Procedure, Prompt, Reply, World
from rooda.world import clock, compose, files, identity, kinship, process, tokens
from rooda.world.agents import ask, command, environment, evidence
from rooda.world.checks import Checker, Limits
from rooda.world.journal import Journal
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
        self._workspace, self._signals, self._show, self._tick = workspace, signals, show, tick
        self._held, self._grace = held, procedure.kill_grace
        gc.freeze()  # what is loaded now stays; what the loop makes is looked through again
        gc.enable()
        self._began = clock.monotonic()
        self.folder = RunFolder(workspace, new_id(procedure.name))
        kinship.adopt_orphans()
        self._journal = Journal(self.folder, loop="ooda", procedure=procedure.name)
        marks = {"ROODA_RUN": self.folder.run, "ROODA_LOOP": "ooda", "ROODA_PROCEDURE": procedure.name}
        self._env: Mapping[str, str] = {**environment.inherited(), **marks}
        self._note: Callable[[str, Mapping[str, Any]], None] = lambda event, facts: self.tell(event, **facts)
        keep = procedure.agent is not None and procedure.agent.keep_background
        limits = Limits(procedure.kill_grace, procedure.max_output_buffer, keep)
        self._checker = Checker(workspace, self._env, self.folder, signals, limits, self._note)
        self._prompt = KeptPrompt(self.folder)
        self._iteration = 0
        self._ledger([])

    def world(self) -> World:
        return World(
            now=lambda: clock.rfc3339(clock.now()),
            elapsed=lambda: clock.monotonic() - self._began,
            signalled=lambda: self._signals.first,
            tell=self.tell,
            compose=self.compose,
            ask=self.ask,
            check=self.check,
        )

    def tell(self, event: str, **facts: Any) -> None:
        """Into the journal first, then before the eyes."""
        self._iteration = facts.get("iteration", self._iteration)
        turn = {} if event.startswith("run.") else {"iteration": self._iteration, "display": self._iteration + 1}
        record = self._journal.record(event, {**turn, **facts})
        self._journal.append(record, durable=event in DURABLE)
        self._show(record)

    def compose(self, procedure: Procedure, iteration: int) -> Prompt:
        began = clock.monotonic()
        self._renew()
        text = compose.text(procedure, iteration + 1)
        prompt = self._prompt.keep(text, iteration, procedure)
        self._say_problem()
        facts = {"phase": "assemble", "elapsed": round(clock.monotonic() - began, 6), **prompt._asdict()}
        self.tell("prompt.assembled", **facts)
        if prompt.over_budget:
            self.tell("budget.exceeded", phase="budget", tokens=prompt.tokens, exact=prompt.exact, budget=prompt.budget)
        return prompt

    def ask(self, call: Call) -> Reply:
        transcript = os.path.join(self.folder.ready(), ask.transcript_name(call.number, call.kind))
        self.tell("agent.started", phase="execute", call=call.kind, transcript=transcript, agent=call.agent.name)
        note = partial(self._enter, call) if self._held else None
        sync = self._journal.sync
        reply = ask.ask(call, self._workspace, self._env, self.folder, self._signals, self._tick, note, sync)
        facts = {**reply._asdict(), "elapsed": round(reply.seconds, 3), "seconds": round(reply.seconds, 6)}
        outcome = "success" if reply.ok else "interrupted" if reply.ended == "interrupted" else "failure"
        self.tell("agent.ended", phase="execute", outcome=outcome, **facts, **evidence.of(call, reply))
        if reply.truncated:
            self.tell("output.truncated", size=reply.size, limit=call.max_output_buffer)
        self._say_problem()
        return reply

    def check(self, gates: tuple[Gate, ...], iteration: int) -> Gates:
        """No gates: no step, no word."""
        if not gates:
            return Gates()
        began = clock.monotonic()
        found = self._checker.check(gates, iteration, self._tick)
        outcome = "interrupted" if found.interrupted else "failure" if found.failed else "success"
        facts = {"elapsed": round(clock.monotonic() - began, 3), "outcome": outcome, "summary": found.summary}
        self.tell("gates.ended", phase="gates", **facts)
        self._say_problem()
        return found

    def close(self) -> None:
        """Nobody lives on, and the ledger says so."""
        process.end_leftovers(self._signals, self._grace)
        self._journal.sync()
        self._journal.close()
        if self._held:
            self._held.release()

    def _enter(self, call: Call, pid: int) -> None:
        """Into the ledger, on disk before the agent begins."""
        self._ledger([{"pid": pid, "start": identity.start_of(pid), "command": command.describe(call.agent)}])

    def _ledger(self, calls: list[Json]) -> None:
        try:
            if self._held:
                self._held.note(self.folder.run, calls)
        except OSError as problem:
            text = f"the ledger of running agents can't be written ({problem.strerror}); a crash may leave one alive"
            self.tell("problem", text=text)

    def _renew(self) -> None:
        """An agent may have cleaned our folder away; then the lock must be held anew."""
        try:
            if self._held:
                self._held.renew()
        except OSError as problem:
            self.tell("problem", text=f"the lock is gone and can't be made again ({problem.strerror})")

    def _say_problem(self) -> None:
        problem = self.folder.take_problem()
        if problem:
            self.tell("problem", text=problem)


class KeptPrompt:
    """The prompt's file: written again only when the text is another one, or somebody touched the file."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._text: str | None = None
        self._kept: tuple[Prompt, tuple[int, ...]] | None = None

    def keep(self, text: str, iteration: int, procedure: Procedure) -> Prompt:
        if self._kept and text == self._text and _mark(self._kept[0].path) == self._kept[1]:
            return self._kept[0]
        data = files.to_bytes(text)
        path = self._folder.write(f"{iteration + 1:04d}-prompt.md", data)
        count, exact = tokens.count(text, procedure.token_encoding)
        prompt = Prompt(path, files.sha256(data), len(data), count, exact, procedure.token_budget)
        self._text, self._kept = text, (prompt, _mark(path))
        return prompt


def _mark(path: str) -> tuple[int, ...]:
    """Changes whenever the file's content could have."""
    try:
        facts = os.stat(path)
    except OSError:
        return ()
    return (facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
