"""Implements the effects of a goal's loop for one session: agent calls, commands, files, git, questions to the user."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from rooda.agents import prices
from rooda.agents.outcome import FATAL, USAGE_LIMIT, in_words
from rooda.agents.records import Agent, Call, Reply
from rooda.base import clock, files, signing
from rooda.base.dirs import shipped
from rooda.base.text import escape_line
from rooda.loops.goal import answers, checkpoints, criteria, rules, scoring, watched_files
from rooda.loops.goal.criteria import Criterion, evidence_name
from rooda.loops.goal.events import CriterionVerified
from rooda.loops.goal.files import REQUESTS, requested, what_is_requested
from rooda.loops.goal.plan import MustNot
from rooda.loops.goal.prompts import with_notes
from rooda.loops.goal.watched_files import Watch, is_counted, relative_counts
from rooda.loops.goal.world import LOST, CallResult, Finding, Fingerprint, Question, Violations, World
from rooda.processes.regex import matches
from rooda.processes.signals import Signals
from rooda.run import gate_programs, questions
from rooda.run.event_records import Event, Problem, QuestionAnswered, QuestionAsked
from rooda.run.prompts import Measure
from rooda.run.records import Command, CommandResult
from rooda.run.session import Session
from rooda.run.setup import Setup
from rooda.views.say import say

CAN_NOT_TELL = 126  # exit codes from here up are inconclusive: errors of the shell or git, signals
STAT = ("--stat=72", "--stat-count=20")  # at most 72 columns and 20 files
OUTPUT = 1_048_576  # bytes of a command's output that are kept as evidence
CONFIRMATIONS = ("G1", "G2", "G3", "tests")  # questions that --yes answers


class Context(NamedTuple):
    """Paths of a goal's files, and the settings of its effects."""

    workspace: str
    folder: str  # .loop
    shape: str  # SHAPE.md
    request: str  # file for requests from other terminals
    agent: Agent
    setup: Setup
    verify_timeout: float
    cost_per_call: float
    may_ask: bool = False  # the agent may ask the user a question
    yes: str = ""  # --yes: "all" answers every question of this process, "one" only the pending question


ANSWERS = {"y": "y", "yes": "y", "n": "n", "no": "n"}
ASK_AGAIN = "Please answer y or n. "


class Asker:
    """Reads the user's answers to questions, from a terminal or a pipe."""

    def __init__(self, signals: Signals, headless: bool = False) -> None:
        self._signals, self._headless = signals, headless

    def attended(self) -> bool:
        """True if stdin is a terminal and the goal isn't headless."""
        return questions.at_terminal() and not self._headless

    def answer(self, question: str, hint: str, accepts: Callable[[str], bool]) -> str | None:
        """Return y, n or another answer that `accepts` allows; any line if `hint` is empty; None for no answer."""
        if self._headless:
            return None
        terminal = questions.at_terminal()
        prompt = f"{question} {hint} " if hint else f"{question} "
        while True:
            asked = (
                questions.typed_answer(prompt, self._signals) if terminal else questions.waiting_answer(self._signals)
            )
            if asked is None:
                return None
            word = asked.strip()
            if not hint or accepts(word):
                return word
            if not word or word.lower() in ANSWERS:
                return ANSWERS[word.lower()] if word else ("y" if hint == "[Y/n]" else "n")
            if not terminal:
                return None
            prompt = f"{ASK_AGAIN}{hint} "


class Effects(World):
    def __init__(self, session: Session, context: Context, asker: Asker, watch: Watch) -> None:
        self._session, self._context, self._asker, self._watch = session, context, asker, watch
        self._workspace = context.workspace
        self._yes = context.yes
        self._call_began, self._call_began_monotonic = 0.0, 0.0
        self._judges = 0
        self._templates: dict[str, str] = {}

    def now(self) -> str:
        return clock.rfc3339(clock.now())

    def seconds(self) -> float:
        return clock.now()

    def signalled(self) -> int:
        return self._session.signalled()

    def requested(self) -> str:
        path = self._context.request
        try:
            data = files.read_ours(path)
            files.remove(path)
        except OSError:
            return ""
        if signing.has_key() and not signing.is_signed(what_is_requested(self._context.workspace), data):
            self.emit(Problem(text=f"{path} is not signed by you; ignoring it"))
            return ""
        return next((word for word in REQUESTS if requested(word) == signing.parted(data)[0]), "")

    def emit(self, event: Event) -> None:
        self._session.emit(event)

    def redact(self, text: str) -> str:
        return self._session.clean(text)

    def wait(self, seconds: float) -> None:
        self._session.wait(seconds)

    def ask(self, kind: str, number: int, text: str) -> CallResult:
        agent, setup = self._context.agent, self._context.setup
        self._judges += kind == "judge"
        label = f"judge-{self._judges}" if kind == "judge" else kind
        measure = Measure(setup.token_encoding, setup.token_budget)
        inbox = self._session.inbox
        text = with_notes(text, inbox.notes(number)) if kind == "step" else text
        prompt = self._session.prompt(lambda: text, f"{number:04d}-{label}", measure)
        if kind == "step" and self._yes == "one":  # the pending question has been answered
            self._yes = ""
        self._watch.begin()
        if kind == "step":  # a judge's call must not reset this: the step's files are compared with it later
            self._call_began, self._call_began_monotonic = clock.now(), clock.monotonic()
        descriptor = hold_folder(self._workspace)
        try:
            reply = self._session.calls.ask(
                Call(
                    kind,
                    number,
                    agent,
                    prompt,
                    setup.bounds,
                    label=label,
                    wants_answer=True,
                    may_ask=kind == "step" and self._context.may_ask,
                )
            )
        finally:
            lost = folder_replaced(descriptor, self._workspace)
        if kind == "step" and reply.ended == "interrupted":
            inbox.give_back()
        edits = self._edits(reply.answer.edits) if kind == "step" else {}
        result = result_of(agent, reply, prompt.size, self._context.cost_per_call, edits)
        if lost:
            result = result._replace(ok=False, ended=LOST, fatal=f"the workspace is gone: {self._workspace}")
        asked = self.redact(reply.question) if result.ok and result.ended != "interrupted" else ""
        return result._replace(error=self.redact(result.error), fatal=self.redact(result.fatal), question=asked)

    def _edits(self, reported: Mapping[str, int] | None) -> dict[str, int]:
        """Return the number of writes per file, reported by the agent or counted by rooda; omit git-ignored files."""
        counts = self._watch.counts() if reported is None else relative_counts(self._workspace, reported)
        counts = {path: count for path, count in counts.items() if is_counted(path)}
        often = [path for path, count in counts.items() if count > 1 and not os.path.isabs(path)]
        hidden = checkpoints.ignored(self._workspace, often)
        return {path: count for path, count in counts.items() if path not in hidden}

    def written_since_call(self, paths: Sequence[str]) -> tuple[str, ...]:
        found = []
        elapsed = clock.monotonic() - self._call_began_monotonic
        set_by = clock.now() - self._call_began - elapsed  # the system clock may have been changed during the call
        began = self._call_began + min(set_by, 0.0)
        for path in paths:
            place = os.path.join(self._workspace, path)
            if os.path.isfile(place) and os.stat(place).st_mtime >= began:
                found.append(path)
        return tuple(found)

    def may_ask(self) -> bool:
        return self._context.may_ask

    def attended(self) -> bool:
        return self._asker.attended()

    def ask_user(self, question: Question) -> str | None:
        """Return y if --yes answers the question; otherwise ask the user at the terminal or over a pipe."""
        answered = bool(self._yes) and question.gate in CONFIRMATIONS
        self.emit(
            QuestionAsked(
                gate=question.gate,
                text=question.text,
                lines=list(question.lines),
                hint=question.hint,
                attended=self._asker.attended(),
                answer="--yes" if answered else "",
            )
        )
        if answered:
            self._yes = "" if self._yes == "one" else self._yes
            return "y"
        accepts = scoring.skips_gates if question.gate in ("G1", "G2", "G3") else _accepts_nothing
        answer = self._asker.answer(question.text, question.hint, lambda word: is_d(word) or accepts(word))
        while answer is not None and question.base and is_d(answer):
            say("\n".join(map(escape_line, self.redact(self.diff(question.base)).splitlines())))
            answer = self._asker.answer(question.text, question.hint, lambda word: is_d(word) or accepts(word))
        self.emit(QuestionAnswered(gate=question.gate, answer=answer))
        return answer

    def verify(self, criteria: Sequence[Criterion], iteration: int) -> list[Finding]:
        found = []
        for place, criterion in enumerate(criteria, 1):
            ran = self._run(criterion.command, f"verify-{place}", iteration)
            if ran.ended == "interrupted":
                break
            found.append(self._finding(criterion, ran, iteration))
        return found

    def _run(self, command: str, label: str, iteration: int) -> CommandResult:
        timeout = self._context.verify_timeout
        return self._session.run((Command(command, label, timeout, max(iteration, 1)),))[0]

    def _finding(self, criterion: Criterion, ran: CommandResult, iteration: int) -> Finding:
        output = _read_end(ran.output)
        met = ran.ended == "exit" and ran.code == 0 and criteria.holds(criterion.expect, output, matches)
        code, output = "timeout" if ran.ended == "timeout" else f"exit {ran.code}", self.redact(output)
        head = [f"criterion: {criterion.name}", f"command: {criterion.command}", f"result: {code}"]
        head += [f"expected: {criterion.expect}"] if criterion.expect else []
        text = "\n".join([*head, f"met: {'yes' if met else 'no'} ({criterion.kind})", "", output])
        path = self.write_note(f"{iteration}-{criterion.name}", text)
        line = "" if met else "timeout" if code == "timeout" else rules.first_error(output)
        error = f"{criterion.command} {code} {line}" if line else ""
        verdict = "met" if met else "not met"
        self.emit(CriterionVerified(criterion=criterion.name, verdict=verdict, evidence=path, elapsed=ran.seconds))
        return Finding(criterion.name, met, path, error, line)

    def violations(self, entries: Sequence[MustNot], iteration: int) -> Violations:
        ran = [
            (each, self._run(each.violated_if, f"mustnot-{place}", iteration)) for place, each in enumerate(entries, 1)
        ]
        unknown = []
        for each, done in ran:
            if done.ended != "interrupted" and (done.ended != "exit" or not 0 <= done.code < CAN_NOT_TELL):
                how = f"exit {done.code}" if done.ended == "exit" else done.ended
                text = f"mustNot: {each.text}: its command was inconclusive ({how}): {each.violated_if}"
                self.emit(Problem(text=text))
                unknown.append(each.text)
        true = tuple(each.text for each, done in ran if done.ended == "exit" and done.code == 0)
        return Violations(true, tuple(unknown))

    def missing_programs(self, commands: Mapping[str, str]) -> Mapping[str, str]:
        """Return the missing programs, each under the name of its command; omit programs in the workspace."""
        found = {name: gate_programs.missing(command, self._workspace) for name, command in commands.items()}
        return {name: word for name, word in found.items() if word and not gate_programs.is_relative(word)}

    def write_note(self, name: str, text: str) -> str:
        number, _, rest = name.partition("-")
        is_evidence = number.isdecimal() and bool(rest)
        folder = os.path.join(self._context.folder, "evidence") if is_evidence else self._context.folder
        path = os.path.join(folder, evidence_name(number, rest, sys.getfilesystemencoding()) if is_evidence else name)
        try:
            files.make_folder(folder)
            files.write(path, files.to_bytes(self.redact(text)))
        except OSError as problem:
            self.emit(Problem(text=f"{path} can't be written: {problem.strerror or problem}"))
        return os.path.relpath(path, self._workspace)

    def read_tail(self, path: str) -> str:
        return _read_end(os.path.join(self._workspace, path))

    def template(self, name: str) -> str:
        if name not in self._templates:
            self._templates[name] = files.text(shipped("prompts", os.path.join("goal", f"{name}.md")))
        return self._templates[name]

    def shape_file(self) -> tuple[str, str]:
        try:
            data = files.read_ours(self._context.shape)
        except OSError:
            return "", ""
        return files.to_text(data), files.sha256(data)

    def has_repository(self) -> bool:
        return checkpoints.within(self._workspace)

    def checkpoint(self, run: str, number: int) -> str:
        problem = checkpoints.checkpoint(self._workspace, run, number, self._context.setup.snapshot_private)
        if problem and problem != checkpoints.NO_REPOSITORY:  # a missing repository has been reported at the start
            self.emit(Problem(text=f"Can't make the checkpoint of iteration {number}: {problem}"))
        return problem

    def tree(self, everywhere: bool) -> str:
        private = self._context.setup.snapshot_private
        return checkpoints.tree(self._workspace, private) if everywhere or self.has_repository() else ""

    def diff(self, base: str) -> str:
        return checkpoints.diff(self._workspace, base, self._context.setup.snapshot_private)

    def diffstat(self, base: str) -> tuple[str, ...]:
        shown = checkpoints.diff(self._workspace, base, self._context.setup.snapshot_private, *STAT)
        return tuple(shown.splitlines())

    def fingerprints(self, commands: Sequence[str]) -> tuple[Fingerprint, ...]:
        return watched_files.fingerprint_files(self._workspace, commands)

    def changed_files(self, before: Sequence[Fingerprint]) -> tuple[str, ...]:
        return watched_files.changed(self._workspace, before)


def is_d(word: str) -> bool:
    """True if the answer is `d` or `diff`, which asks to see the diff."""
    return word.strip().lower() in ("d", "diff")


def hold_folder(path: str) -> int:
    """Open a folder, so that the kernel doesn't reuse its inode for a folder that replaces it."""
    return files.open_folder(path)


def folder_replaced(descriptor: int, path: str) -> bool:
    """Close the open folder; return True if the path now names another folder or nothing."""
    try:
        return not os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError:
        return True
    finally:
        os.close(descriptor)


# The result of an agent call: final message, cost, error, and edited files.
TAIL = 65_536
WORDS = {
    "timeout": "timeout {limit}s",
    "idle": "timeout {limit}s",
    "resources": "ended because it used {note}",
    "not-started": "not started",
    "": "{named}exit {code}",
}


def result_of(agent: Agent, reply: Reply, prompt_size: int, per_call: float, edits: Mapping[str, int]) -> CallResult:
    said = reply.answer.text
    answer = answers.unwrap(said) if reply.output == "text" else answers.Answer(said)
    cost = _cost(agent, reply, answer, prompt_size, per_call)
    ok = reply.ok and not answer.failed
    return CallResult(
        text=answer.text,
        ok=ok,
        ended=reply.ended,
        how="" if ok else in_words(reply, WORDS) or f"exit {reply.exit_code}",
        error="" if ok else _error(reply, answer.text),
        cost=cost.dollars,
        estimated=cost.source == "estimated",
        lost=reply.lost and reply.cost_source != "assumed",
        seconds=reply.seconds,
        limited=reply.outcome == USAGE_LIMIT,
        reset_at=reply.reset_at,
        fatal=_fatal(reply),
        edits=edits,
        edits_seen=reply.answer.edits is None,
    )


def _accepts_nothing(_word: str) -> bool:
    return False


def _read_end(path: str) -> str:
    try:
        return files.to_text(files.tail(path, OUTPUT))
    except OSError:
        return ""


def _cost(agent: Agent, reply: Reply, answer: answers.Answer, size: int, per_call: float) -> prices.Cost:
    if reply.ended == "not-started":
        return prices.Cost(0.0, "reported")
    known = reply.cost
    if known is None or (reply.cost_source == "assumed" and (answer.cost is not None or per_call)):
        known = answer.cost  # the cost in the answer is more exact
    return prices.assumed_cost(known, per_call, (size, len(answer.text)), reply.model or agent.model, agent.prices)


def _error(reply: Reply, text: str) -> str:
    """Return the CLI's error message, else the last error line of stderr, else that of the agent's message."""
    if reply.note or reply.message:
        return rules.last_error(reply.note or reply.message)
    errors = _stderr_end(reply)
    return rules.last_error(errors) or rules.last_error(answers.without_blocks(text))


def _stderr_end(reply: Reply) -> str:
    try:
        return files.tail(reply.transcript.removesuffix(".out") + ".err", TAIL).decode("utf-8", "replace")
    except OSError:
        return ""


def _fatal(reply: Reply) -> str:
    if reply.ended == "not-started" and not reply.retryable:
        return f"the AI command can't be run: {reply.note}"
    return f"{reply.outcome}: {' '.join(reply.message.split())}" if reply.outcome in FATAL else ""
