"""Implements the effects of a reflex loop: calls agents, runs checks, guards the artifact, asks for permission."""

import os
import re
from collections.abc import Callable, Mapping, Sequence

from rooda.agents.backoff import backoff
from rooda.agents.last_words import last_words
from rooda.agents.outcome import in_words, refusal
from rooda.agents.records import Call, Reply
from rooda.base import files
from rooda.base.dirs import shipped
from rooda.base.json import Json
from rooda.base.text import escape_line
from rooda.errors import Interrupted
from rooda.loops.reflex import files as reflex_files
from rooda.loops.reflex import history, prompts
from rooda.loops.reflex.events import ReflexChecks, ReflexPhase, ReflexRestored
from rooda.loops.reflex.files import Place
from rooda.loops.reflex.rules import changed, hashes
from rooda.loops.reflex.setup import Prepared
from rooda.loops.reflex.state import WRITERS, State
from rooda.loops.reflex.store import ReflexStore
from rooda.loops.reflex.world import Answer, CheckResult, Concurrent, Query, World
from rooda.processes import regex
from rooda.processes.signals import Signals
from rooda.run import questions
from rooda.run.calls import NOT_ASKED
from rooda.run.event_records import Event, QuestionAnswered, QuestionAsked
from rooda.run.prompts import Measure
from rooda.run.records import Command, CommandResult
from rooda.run.session import Session
from rooda.settings.lookup import Lookup
from rooda.views.lines import Line
from rooda.views.say import say

RUN, ASK, SKIP = "run", "ask", "skip"  # what to do with commands that an agent wrote as checks
CAP = 1_048_576  # bytes kept of a check's output
EXCERPT = 300  # characters of a check's output in its result
PART = 12  # output that shares this many consecutive bytes with the artifact counts as a quote
_BEFORE = re.compile(rb"(?:[^\s:]*:)?(?:\d+[:-])*[ \t<>+|-]*")  # what grep and diff print before a line

WORDS = {
    "timeout": "the agent took longer than {limit} s",
    "idle": "the agent took longer than {limit} s without output",
    "resources": "the agent used {note}",
    "not-started": "the agent could not be started: {note}",
    "": "the agent ended with exit code {code}{detail}",
}

Runner = Callable[[Sequence[Command], bool], list[CommandResult]]  # runs commands, in parallel or one after the other


class Effects(World):
    def __init__(
        self,
        session: Session,
        place: Place,
        store: ReflexStore,
        prepared: Prepared,
        permission: "Permission",
        shows: bool,
    ) -> None:
        self._session, self._place, self._store, self._prepared = session, place, store, prepared
        self._shows, self._permission = shows, permission
        self._sequential = bool(prepared.look.value("sequential"))
        self._check_timeout = float(prepared.look.value("check_timeout"))
        self._asked = 0.0  # seconds that the service asked rooda to wait after the last call

    def emit(self, event: Event) -> None:
        self._session.emit(event)

    def signalled(self) -> int:
        return self._session.signalled()

    def compose(self, phase: str, values: Mapping[str, str]) -> str:
        template = files.text(shipped("prompts", os.path.join("reflex", f"{phase.lower()}.md")))
        return prompts.text(phase, template, values)

    def ask(self, queries: Sequence[Query], concurrent: Concurrent | None) -> list[Answer]:
        first = queries[0]
        steps = [query.phase for query in queries]
        self.emit(ReflexPhase(iteration=first.iteration - 1, level=first.level, attempt=first.attempt, steps=steps))
        if failures := max(query.failures for query in queries):
            self._session.wait(backoff(self._prepared.setup.retry_wait, failures, self._asked))
            self._raise_if_signalled()
        replies = self._replies(queries, concurrent)
        self._asked = max(reply.retry_after for reply in replies)
        return [self._answer(query, reply) for query, reply in zip(queries, replies, strict=True)]

    def _answer(self, query: Query, reply: Reply) -> Answer:
        """Return the answer in a reply; keep it byte for byte if the phase writes the artifact."""
        if reply is NOT_ASKED:
            return Answer(unasked=True)
        if not reply.ok:
            final = bool(refusal(reply)) or (reply.once and query.failures > 0)
            return Answer(failed=self._session.clean(_failure(reply)), final=final)
        if reply.answer.cut:
            return Answer(problem="the answer is too long to be read as a whole")
        return Answer(reply.answer.exact if query.phase in WRITERS else reply.answer.text)

    def breaches(self, state: State, phase: str) -> list[str]:
        return history.breaches(self._store.history(), state, phase)

    def record_breach(self, state: State, phase: str, attempt: int, error: str, excerpt: str) -> None:
        self._store.record_breach(state, phase, attempt, error, excerpt)

    def save(self, state: State) -> State:
        return self._store.save(state)

    def recent_history(self, state: State) -> list[str]:
        """Return the history's last three lines; omit PLAN's own breaches, which would change the prompt of a retry."""
        found = [event for event in self._store.history() if not history.is_breach_of(event, state, "PLAN")]
        # The first event has the rules of both phases, but a plan must see only the active ones.
        cut = [{**event, "payload": {}} if event["event"] == "run_started" else event for event in found[-3:]]
        return [reflex_files.line_of(event) for event in cut]

    def fixes(self, state: State) -> list[Json]:
        return history.fixes(self._store.history(), state)

    def read_artifact(self) -> str | None:
        data = reflex_files.read_artifact(self._place)
        return None if data is None else files.to_text(data)

    def stage_artifact(self, text: str) -> None:
        self._store.stage(text)

    def hash_artifact(self, text: str) -> str:
        """Return the hash of an artifact to judge; keep a copy in the run's folder for `show` and `diff`."""
        data = files.to_bytes(text)
        digest = files.sha256(data)
        self._session.folder.write(f"artifact-{digest[:16]}.md", data)
        return digest

    def may_run(self, commands: Sequence[str]) -> bool:
        asks = self._permission.asks(commands)
        if asks:
            self.emit(
                QuestionAsked(
                    gate="checks", text="Run them?", lines=list(commands), hint="[y/N]", attended=True, answer=""
                )
            )
        way = self._permission.decide(commands)
        self._raise_if_signalled()
        if asks:
            self.emit(QuestionAnswered(gate="checks", answer="y" if way == RUN else "n"))
        self.emit(ReflexChecks(commands=list(commands), way=way))
        return way == RUN

    def run_checks(self, state: State, commands: Sequence[str]) -> list[CheckResult]:
        return self._check_results(state.phase, state.iteration, commands, self._session.run)

    def search(self, pattern: str, text: str) -> str:
        return regex.search(pattern, text, self._check_timeout)

    def changed_sections(self, state: State) -> list[str] | None:
        before = [
            event["payload"].get("sections", {})
            for event in self._store.history()
            if event["event"] == "evaluation_done" and event["iteration"] < state.iteration
        ]
        return changed(before[-1], hashes(self.read_artifact() or "", files.sha256)) if before else None

    def show_artifact(self) -> None:
        show_artifact(self._prepared, self._place, self._shows)

    def redacted(self, text: str) -> str:
        return self._session.clean(text)

    def _replies(self, queries: Sequence[Query], concurrent: Concurrent | None) -> list[Reply]:
        guard = ArtifactGuard(self._place.artifact)
        calls = [self._call(query) for query in queries]
        if concurrent is None:
            replies = self._session.calls.ask_together(calls)[0]
        else:
            replies = self._replies_and_checks(calls, concurrent, queries[0], guard)
        if guard.restore():
            self.emit(ReflexRestored(artifact=self._place.shown_artifact))
        if not all(reply.ok for reply in replies):  # a call that a signal cut off doesn't count as a breach
            self._raise_if_signalled()
        return replies

    def _replies_and_checks(
        self, calls: list[Call], concurrent: Concurrent, query: Query, guard: "ArtifactGuard"
    ) -> list[Reply]:
        replies: list[Reply] = []

        def run(commands: Sequence[Command], parallel: bool) -> list[CommandResult]:
            if replies:
                return self._session.run(commands, parallel)
            found, ran = self._session.calls.ask_together(calls, commands)
            replies.extend(found)
            self._raise_if_signalled()
            if guard.restore():  # repeat the commands without the agent to find the one that changed the artifact
                ran = self._session.run(commands, parallel)
                if guard.is_intact():
                    self.emit(ReflexRestored(artifact=self._place.shown_artifact))
            return ran

        concurrent.receive(self._check_results(query.level, query.iteration, concurrent.commands, run))
        return replies

    def _raise_if_signalled(self) -> None:
        if number := self._session.signalled():
            raise Interrupted(number)

    def _call(self, query: Query) -> Call:
        setup, kind = self._prepared.setup, query.phase.lower()
        again = query.attempt + query.failures
        label = f"{kind}-{query.level.lower()}" + (f"-{again}" if again > 1 else "")
        # Counting tokens exactly is slow, and only needed when the prompt may be close to the budget.
        exactly = 0 < setup.token_budget < len(query.prompt.encode("utf-8", "replace"))
        measure = Measure(setup.token_encoding if exactly else "", setup.token_budget)
        return Call(
            kind=kind,
            number=query.iteration,
            agent=self._prepared.agent_of(kind),
            prompt=self._session.prompt(lambda: query.prompt, f"{query.iteration:04d}-{label}", measure),
            bounds=setup.bounds,
            label=label,
            wants_answer=True,
        )

    def _check_results(self, level: str, iteration: int, commands: Sequence[str], run: Runner) -> list[CheckResult]:
        labelled = [
            Command(text, f"check-{level.lower()}-{place}", self._check_timeout, iteration)
            for place, text in enumerate(commands, 1)
        ]
        found = run_guarded(labelled, self._place.artifact, run, not self._sequential)
        self._raise_if_signalled()
        return [CheckResult(each.holds, self._session.clean(each.details)) for each in found]


def show_artifact(prepared: Prepared, place: Place, shows: bool) -> None:
    """Print the whole artifact; print nothing with --json, because the events have its path."""
    data = reflex_files.artifact_if_readable(place)
    if shows and data is not None:
        prepared.screen.line(Line("info", "Artifact in full:"))
        prepared.screen.line(Line("info", files.to_text(data).rstrip("\n")))


def _failure(reply: Reply) -> str:
    """Return why a call failed, with the agent's last line."""
    why, said = in_words(reply, WORDS), reply.message or _last_error(reply.transcript).strip() or last_words(reply)
    last = " ".join(said.strip().rpartition("\n")[2].split())[:EXCERPT]
    return f"{why}; its last line: {last}" if last and last not in why else why


def _last_error(transcript: str) -> str:
    """Return the end of what a call printed to stderr."""
    try:
        return files.to_text(files.tail(transcript.removesuffix(".out") + ".err", 4096))
    except OSError:
        return ""


# Permission to run the commands that an agent wrote as checks.


def exec_checks(look: Lookup) -> str:
    """Return the setting exec_checks: run, ask or skip. Without a terminal, ask becomes skip."""
    way = str(look.value("exec_checks"))
    return SKIP if way == ASK and not questions.at_terminal() else way


class Permission:
    """Asks the user whether commands may run, and remembers in this session which ones were allowed."""

    def __init__(self, way: str, signals: Signals) -> None:
        self._way, self._signals = way, signals
        self._allowed: set[str] = set()

    def decide(self, commands: Sequence[str]) -> str:
        """Return run or skip for these commands; ask the user if needed."""
        if not self.asks(commands):
            return RUN if self._way == ASK else self._way
        if not self._confirmed(commands):
            return SKIP
        self._allowed.update(commands)
        return RUN

    def asks(self, commands: Sequence[str]) -> bool:
        """True if the user must be asked about these commands."""
        return self._way == ASK and not set(commands) <= self._allowed

    def _confirmed(self, commands: Sequence[str]) -> bool:
        rows = "\n".join(f"  $ {escape_line(line)}" for command in commands for line in command.split("\n"))
        say(f"The agent wrote these commands as checks; they run with your permissions:\n{rows}", to_stderr=True)
        answer = questions.typed_answer("Run them? [y/N] ", self._signals)
        return answer is not None and answer.strip().lower() in ("y", "yes")


# Running checks: commands that change the artifact fail, and the artifact is restored.


class ArtifactGuard:
    """Keeps a copy of the artifact, and restores it if it was changed."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.bytes = files.read_ours_if_exists(path)

    def is_intact(self) -> bool:
        try:
            return files.read_ours_if_exists(self.path) == self.bytes and not os.path.isdir(self.path)
        except OSError:
            return False

    def restore(self) -> bool:
        """Restore the artifact; return True if it had been changed."""
        if self.is_intact():
            return False
        files.move_folder_aside(self.path)
        if self.bytes is None:
            files.remove(self.path)
        else:
            files.make_folder(os.path.dirname(self.path))
            files.replace(self.path, self.bytes)
        return True


def run_guarded(commands: Sequence[Command], path: str, run: Runner, parallel: bool) -> list[CheckResult]:
    """Run the commands of checks; a rule holds if its command exits with 0.

    If the artifact changed, repeat each command alone to find the one that changed it.
    """
    guard = ArtifactGuard(path)
    ran = run(commands, parallel)
    changes = [False] * len(ran)
    if guard.restore():
        ran, changes = [], []
        for command in commands:
            ran += run((command,), False)
            changes.append(guard.restore())
    text = guard.bytes or b""
    return [
        _check_result(command, each, changed, text)
        for command, each, changed in zip(commands, ran, changes, strict=True)
    ]


def _check_result(command: Command, ran: CommandResult, changed: bool, artifact: bytes) -> CheckResult:
    if changed:
        return CheckResult(False, "the command changed the artifact; rooda restored the artifact")
    if ran.ended == "timeout":
        return CheckResult(False, f"timed out after {command.timeout:g} s")
    if ran.code == 0:
        return CheckResult(True, "exit 0")
    excerpt = _excerpt(ran.output, artifact)
    return CheckResult(False, f"exit {ran.code}: {excerpt}" if excerpt else f"exit {ran.code}")


def _excerpt(path: str, artifact: bytes) -> str:
    """Return the end of a check's output as one line, without quotes from the artifact."""
    try:
        lines = files.tail(path, 4096).splitlines()
    except OSError:
        return ""
    known = {line.strip() for line in artifact.splitlines()}
    long = sorted((line for line in known if len(line) >= PART), key=len, reverse=True)
    own = [_without_quotes(line.strip(), artifact, known, long) for line in lines]
    text = " ".join(b" ".join(own).decode("utf-8", "replace").split())
    return text if len(text) <= EXCERPT else "…" + text[-EXCERPT:]


def _without_quotes(line: bytes, artifact: bytes, known: set[bytes], long: Sequence[bytes]) -> bytes:
    """Return an output line with quoted artifact lines replaced by …; empty if the line is nothing but a quote."""
    shown = line[_BEFORE.match(line).end() :]  # type: ignore[union-attr]  # the pattern also matches nothing
    if any(each in known or (len(each) >= PART and each in artifact) for each in (line, shown)):
        return b""
    for each in long:
        line = line.replace(each, "…".encode())
    return line
