"""The World of a reflex loop: what it may cause, bound to one session and one loop's files."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import click

from rooda.agents.backoff import backoff
from rooda.agents.outcome import in_words
from rooda.agents.records import Call, Reply
from rooda.base import files
from rooda.base.dirs import shipped
from rooda.base.text import escape_line
from rooda.errors import Interrupted
from rooda.loops.reflex import files as reflex_files
from rooda.loops.reflex import history
from rooda.loops.reflex import prompts as prompting
from rooda.loops.reflex.events import ReflexChecks, ReflexPhase, ReflexRestored
from rooda.loops.reflex.files import Place
from rooda.loops.reflex.prepare import Ready
from rooda.loops.reflex.rules import changed, hashes
from rooda.loops.reflex.state import WRITERS, State
from rooda.loops.reflex.store import ReflexStore
from rooda.loops.reflex.world import Answer, Beside, Query, Ran, World
from rooda.processes import regex as patterns
from rooda.processes.signals import Signals
from rooda.run import questions, records
from rooda.run.calls import NOT_ASKED
from rooda.run.event_records import QuestionAnswered, QuestionAsked
from rooda.run.prompts import Measure
from rooda.run.records import Command
from rooda.run.records import Ran as records_Ran
from rooda.run.session import Session
from rooda.settings.lookup import Lookup
from rooda.views.lines import Line

# Shell commands that an agent wrote as checks: run, ask the person, or leave their rules to an agent's judgement.
RUN, ASK, SKIP = "run", "ask", "skip"


def way_of(look: Lookup) -> str:
    """What was said; else a terminal is asked, and where nobody is nothing is run."""
    said = look.find("exec_checks")
    if said is None:
        return ASK if questions.at_terminal() else SKIP
    return SKIP if said.value == ASK and not questions.at_terminal() else str(said.value)


class Commands:
    """Remembers what was allowed in this session."""

    def __init__(self, way: str, signals: Signals) -> None:
        self._way, self._signals = way, signals
        self._allowed: set[str] = set()

    def decide(self, commands: Sequence[str]) -> str:
        """run or skip."""
        if not self.asks(commands):
            return RUN if self._way == ASK else self._way
        if not self._asked(commands):
            return SKIP
        self._allowed.update(commands)
        return RUN

    def asks(self, commands: Sequence[str]) -> bool:
        """Will a person be asked?"""
        return self._way == ASK and not set(commands) <= self._allowed

    def _asked(self, commands: Sequence[str]) -> bool:
        rows = "\n".join(f"  $ {escape_line(line)}" for command in commands for line in command.split("\n"))
        click.echo(f"The agent wrote these commands as checks; they run as you:\n{rows}", err=True)
        answer = questions.typed_answer("Run them? [y/N] ", self._signals)
        return answer is not None and answer.strip().lower() in ("y", "yes")


# What evaluating an artifact does to the world: its bytes are guarded, checks are run, patterns are searched.
search = patterns.search
CAP = 1_048_576  # bytes kept of a check's output
SAID = 300  # characters of it that are told
PART = 12  # bytes of the artifact that nothing else says by chance
_BEFORE = re.compile(rb"(?:[^\s:]*:)?(?:\d+[:-])*[ \t<>+|-]*")  # what grep and diff put before a line


class Guarded:
    """The artifact while others work: whoever changes it, it is as it was."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.bytes = files.read_ours_if_exists(path)

    def intact(self) -> bool:
        try:
            return files.read_ours_if_exists(self.path) == self.bytes and not os.path.isdir(self.path)
        except OSError:
            return False

    def restored(self) -> bool:
        """Put it back; True if that was necessary."""
        if self.intact():
            return False
        files.move_folder_aside(self.path)
        if self.bytes is None:
            files.remove(self.path)
        else:
            files.make_folder(os.path.dirname(self.path))
            files.replace(self.path, self.bytes)
        return True


class Outcome(NamedTuple):
    """What one command came to."""

    holds: bool
    details: str


Runner = Callable[[Sequence[Command], bool], list[records_Ran]]  # commands, at once or one after the other


def execute(commands: Sequence[Command], path: str, run: Runner, at_once: bool) -> list[Outcome]:
    """Exit code 0 holds. If the artifact was changed, all are run again alone, to find out by whom."""
    guard = Guarded(path)
    ran = run(commands, at_once)
    touched = [False] * len(ran)
    if guard.restored():
        ran, touched = [], []
        for command in commands:
            ran += run((command,), False)
            touched.append(guard.restored())
    text = guard.bytes or b""
    return [
        _outcome(command, each, changed, text) for command, each, changed in zip(commands, ran, touched, strict=True)
    ]


def _outcome(command: Command, ran: records_Ran, changed: bool, artifact: bytes) -> Outcome:
    if changed:
        return Outcome(False, "the command changed the artifact; it was put back")
    if ran.ended == "timeout":
        return Outcome(False, f"timed out after {command.timeout:g} s")
    if ran.code == 0:
        return Outcome(True, "exit 0")
    said = _last_words(ran.output, artifact)
    return Outcome(False, f"exit {ran.code}: {said}" if said else f"exit {ran.code}")


def _last_words(path: str, artifact: bytes) -> str:
    """The end of a check's output on one line; the artifact's own words stay in the artifact."""
    try:
        lines = files.tail(path, 4096).splitlines()
    except OSError:
        return ""
    known = {line.strip() for line in artifact.splitlines()}
    long = sorted((line for line in known if len(line) >= PART), key=len, reverse=True)
    own = [_own(line.strip(), artifact, known, long) for line in lines]
    text = " ".join(b" ".join(own).decode("utf-8", "replace").split())
    return text if len(text) <= SAID else "…" + text[-SAID:]


def _own(line: bytes, artifact: bytes, known: set[bytes], long: Sequence[bytes]) -> bytes:
    """What a check says itself in this line: nothing if it only shows a line of the artifact, or a part of one."""
    shown = line[_BEFORE.match(line).end() :]  # type: ignore[union-attr]  # it matches nothing, too
    if any(each in known or (len(each) >= PART and each in artifact) for each in (line, shown)):
        return b""
    for each in long:
        line = line.replace(each, "…".encode())
    return line


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
            search=lambda pattern, text: search(pattern, text, self._check_timeout),
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
            replies = self._session.calls.ask_together(calls)[0]
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
            found, ran = self._session.calls.ask_together(calls, commands)
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
            wants_answer=True,
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

    def _executed(self, level: str, iteration: int, commands: Sequence[str], run: Runner) -> list[Ran]:
        made = [
            Command(text, f"check-{level.lower()}-{place}", self._check_timeout, iteration)
            for place, text in enumerate(commands, 1)
        ]
        found = execute(made, self._place.artifact, run, not self._sequential)
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
