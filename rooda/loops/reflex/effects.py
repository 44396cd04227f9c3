"""The World of a reflex loop: what it may cause, bound to one session and one loop's files."""

import os
from collections.abc import Mapping, Sequence

from rooda.agents.backoff import backoff
from rooda.agents.outcome import in_words
from rooda.agents.records import Call, Reply
from rooda.base import files
from rooda.base.dirs import shipped
from rooda.errors import Interrupted
from rooda.loops.reflex import files as reflex_files
from rooda.loops.reflex import history, reflex_effects
from rooda.loops.reflex import reflex as prompting
from rooda.loops.reflex.commands import Commands
from rooda.loops.reflex.events import ReflexChecks, ReflexPhase, ReflexRestored
from rooda.loops.reflex.files import Place
from rooda.loops.reflex.prepare import Ready
from rooda.loops.reflex.reflex_effects import Guarded
from rooda.loops.reflex.reflex_sections import changed, hashes
from rooda.loops.reflex.state import WRITERS, State
from rooda.loops.reflex.store import ReflexStore
from rooda.loops.reflex.world import Answer, Beside, Query, Ran, World
from rooda.run import records
from rooda.run.event_records import QuestionAnswered, QuestionAsked
from rooda.run.prompts import Measure
from rooda.run.records import Command
from rooda.run.session import NOT_ASKED, Session
from rooda.views.lines import Line

WORDS = {
    "timeout": "the agent took longer than {limit} s",
    "idle": "the agent took longer than {limit} s without output",
    "not-started": "the agent could not be started: {note}",
    "": "the agent ended with exit code {code}{detail}",
}


class Effects:
    """One loop's hands."""

    def __init__(
        self, session: Session, place: Place, store: ReflexStore, ready: Ready, commands: Commands, shows: bool
    ) -> None:
        self._session, self._place, self._store, self._ready = session, place, store, ready
        self._emit, self._shows, self._commands = session.emit, shows, commands
        self._sequential = bool(ready.look.value("sequential"))
        self._retryable = False  # may the same call go well a little later?
        self._check_timeout = float(ready.look.value("check_timeout"))

    def world(self) -> World:
        return World(
            emit=self._emit,
            signalled=self._session.signalled,
            compose=compose,
            ask=self.ask,
            tries=lambda state, phase: history.tries(self._store.history(), state, phase),
            breach=self._store.breach,
            keep=self._store.save,
            recent=self.recent,
            artifact=self.artifact,
            stage=self._store.stage,
            digest=self.digest,
            runnable=self.runnable,
            execute=self.execute,
            search=lambda pattern, text: reflex_effects.search(pattern, text, self._check_timeout),
            changed=self.changed,
            show=self.show,
            told=self._session.clean,
        )

    def artifact(self) -> str | None:
        data = reflex_files.the_artifact(self._place)
        return None if data is None else files.to_text(data)

    def digest(self, text: str) -> str:
        """The hash of an artifact that is judged; a copy goes to the private notes, for `show` and `diff`."""
        data = files.to_bytes(text)
        digest = files.sha256(data)
        self._session.folder.write(f"artifact-{digest[:16]}.md", data)
        return digest

    def ask(self, queries: Sequence[Query], beside: Beside | None = None) -> list[Answer]:
        """All at once."""
        first = queries[0]
        steps = [query.phase for query in queries]
        self._emit(ReflexPhase(iteration=first.iteration - 1, level=first.level, attempt=first.attempt, steps=steps))
        if first.attempt > 1 and self._retryable:
            self._session.rest(backoff(self._ready.setup.retry_wait, first.attempt - 1))
            self._end_if_signalled()
        replies = self._asked(queries, beside)
        self._retryable = any(reply.retryable for reply in replies)
        return [_answer(reply, query.phase in WRITERS) for query, reply in zip(queries, replies, strict=True)]

    def _asked(self, queries: Sequence[Query], beside: Beside | None) -> list[Reply]:
        guard = Guarded(self._place.artifact)
        calls = [self._call(query) for query in queries]
        if beside is None:
            replies = self._session.ask_all(calls)
        else:
            replies = self._asked_beside(calls, beside, queries[0], guard)
        if guard.restored():
            self._emit(ReflexRestored(artifact=self._place.shown_artifact))
        if not all(reply.ok for reply in replies):  # what a signal has cut off is no answer, and no breach either
            self._end_if_signalled()
        return replies

    def _asked_beside(self, calls: list[Call], beside: Beside, query: Query, guard: Guarded) -> list[Reply]:
        replies: list[Reply] = []

        def together(commands: Sequence[Command], at_once: bool) -> list[records.Ran]:
            if replies:
                return self._session.run(commands, at_once)
            found, ran = self._session.ask_beside(calls, commands)
            replies.extend(found)
            self._end_if_signalled()
            if guard.restored():  # by whom? That shows without the agent
                ran = self._session.run(commands, at_once)
                if guard.intact():
                    self._emit(ReflexRestored(artifact=self._place.shown_artifact))
            return ran

        beside.take(self._executed(query.level, query.iteration, beside.commands, together))
        return replies

    def _end_if_signalled(self) -> None:
        if number := self._session.signalled():
            raise Interrupted(number)

    def _call(self, query: Query) -> Call:
        made, kind = self._ready.setup, query.phase.lower()
        label = f"{kind}-{query.level.lower()}" + (f"-{query.attempt}" if query.attempt > 1 else "")
        # Counting exactly costs more than a whole iteration may; where the budget is far away, nobody needs it.
        exactly = 0 < made.token_budget < len(query.prompt.encode("utf-8", "replace"))
        measure = Measure(made.token_encoding if exactly else "", made.token_budget)
        return Call(
            kind=kind,
            number=query.iteration,
            agent=self._ready.agent_of(kind),
            prompt=self._session.prompt(lambda: query.prompt, f"{query.iteration:04d}-{label}", measure),
            bounds=made.bounds,
            label=label,
            apart=True,
        )

    def recent(self, state: State) -> list[str]:
        """The history's last three lines, without what a retry of the same phase has left there."""
        found = [event for event in self._store.history() if not history.is_breach_of(event, state, "PLAN")]
        # The first event holds the rules of both phases; a plan is to know of the active ones only.
        cut = [{**event, "payload": {}} if event["event"] == "run_started" else event for event in found[-3:]]
        return [reflex_files.line_of(event) for event in cut]

    def runnable(self, commands: Sequence[str]) -> bool:
        asks = self._commands.asks(commands)
        if asks:
            self._emit(
                QuestionAsked(
                    gate="checks", text="Run them?", lines=list(commands), hint="[y/N]", attended=True, answer=""
                )
            )
        way = self._commands.decide(commands)
        self._end_if_signalled()
        if asks:
            self._emit(QuestionAnswered(gate="checks", answer="y" if way == "run" else "n"))
        self._emit(ReflexChecks(commands=list(commands), way=way))
        return way == "run"

    def execute(self, state: State, commands: Sequence[str]) -> list[Ran]:
        return self._executed(state.phase, state.iteration, commands, self._session.run)

    def _executed(self, level: str, iteration: int, commands: Sequence[str], run: reflex_effects.Runner) -> list[Ran]:
        made = [
            Command(text, f"check-{level.lower()}-{place}", self._check_timeout, iteration)
            for place, text in enumerate(commands, 1)
        ]
        found = reflex_effects.execute(made, self._place.artifact, run, not self._sequential)
        self._end_if_signalled()
        return [Ran(each.holds, self._session.clean(each.details)) for each in found]

    def changed(self, state: State) -> list[str] | None:
        before = [
            event["payload"].get("sections", {})
            for event in self._store.history()
            if event["event"] == "evaluation_done" and event["iteration"] < state.iteration
        ]
        return changed(before[-1], hashes(self.artifact() or "", files.sha256)) if before else None

    def show(self) -> None:
        show_artifact(self._ready, self._place, self._shows)


def show_artifact(ready: Ready, place: Place, shows: bool) -> None:
    """The whole of it; a program that reads events finds it where they say."""
    data = reflex_files.read_artifact(place)
    if shows and data is not None:
        ready.screen.line(Line("info", "Artifact in full:"))
        ready.screen.line(Line("info", files.to_text(data).rstrip("\n")))


def compose(phase: str, values: Mapping[str, str]) -> str:
    template = files.text(shipped("prompts", os.path.join("reflex", f"{phase.lower()}.md")))
    return prompting.text(phase, template, values)


def _answer(reply: Reply, exact: bool) -> Answer:
    """`exact`: an artifact, which is kept byte by byte."""
    if reply is NOT_ASKED:
        return Answer(unasked=True)
    if reply.ok:
        if reply.said.cut:
            return Answer(problem="the answer is too long to be read as a whole")
        return Answer(reply.said.exact if exact else reply.said.text)
    return Answer(problem=in_words(reply, WORDS))
