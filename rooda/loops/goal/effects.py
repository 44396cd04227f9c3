"""The world of a goal: what its loop may cause, bound to one session."""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rooda.agents import prices
from rooda.agents.outcome import FATAL, USAGE_LIMIT, in_words
from rooda.agents.records import Agent, Call, Reply
from rooda.base import clock, files
from rooda.base.dirs import shipped
from rooda.loops.goal import answers, breakers, checkpoints, criteria, fingerprints, wording
from rooda.loops.goal.criteria import Criterion, evidence_name
from rooda.loops.goal.edit_counts import Watch, below, counted
from rooda.loops.goal.events import CriterionVerified
from rooda.loops.goal.plan import MustNot
from rooda.loops.goal.questions import Asker
from rooda.loops.goal.world import LOST, Finding, GoalWorld, Hurt, Question, Told
from rooda.processes.regex import matches
from rooda.run.event_records import Problem, QuestionAnswered, QuestionAsked
from rooda.run.prompts import Measure
from rooda.run.records import Command, Ran
from rooda.run.session import Session
from rooda.run.setup import Setup

CAN_NOT_TELL = 126  # from here on an exit code is the shell's or a signal's; git says so that it failed, too
OUTPUT = 1_048_576  # bytes of a command's output that are kept as evidence


class Ways(NamedTuple):
    """Where a goal's files are and how it was asked to behave."""

    workspace: str
    folder: str  # .loop
    shape: str
    request: str
    agent: Agent
    setup: Setup
    verify_timeout: float
    cost_per_call: float
    yes: str = ""  # "all": every question of this process; "one": the one that waits


class Effects:
    """The effects as methods of one object; the loop gets them as functions."""

    def __init__(self, session: Session, ways: Ways, asker: Asker, watch: Watch) -> None:
        self._session, self._ways, self._asker, self._watch = session, ways, asker, watch
        self._yes = ways.yes
        self._began, self._since = 0.0, 0.0  # of a step's call: by the clock of files, and by one that nobody sets
        self._judges = 0
        self._templates: dict[str, str] = {}
        self.emit = session.emit

    def ask(self, kind: str, number: int, text: str) -> Told:
        agent, setup = self._ways.agent, self._ways.setup
        self._judges += kind == "judge"
        label = f"judge-{self._judges}" if kind == "judge" else kind
        measure = Measure(setup.token_encoding, setup.token_budget)
        prompt = self._session.prompt(lambda: text, f"{number:04d}-{label}", measure)
        if kind == "step" and self._yes == "one":  # it was for the gate that waited, and that is passed
            self._yes = ""
        self._watch.begin()
        if kind == "step":  # a judge's call comes after it, and before its files are looked at
            self._began, self._since = clock.now(), clock.monotonic()
        hold = taken(self._ways.workspace)
        try:
            reply = self._session.ask(Call(kind, number, agent, prompt, setup.bounds, label=label, apart=True))
        finally:
            lost = not kept(hold, self._ways.workspace)
        edits = self._edits(reply.said.edits) if kind == "step" else {}
        told = call_facts(agent, reply, prompt.size, self._ways.cost_per_call, edits)
        if lost:
            told = told._replace(ok=False, ended=LOST, fatal=f"the workspace is gone: {self._ways.workspace}")
        clean = self._session.clean
        return told._replace(error=clean(told.error), fatal=clean(told.fatal))

    def _edits(self, told: Mapping[str, int] | None) -> dict[str, int]:
        """Writes per file; what git ignores counts for nothing, whoever counted."""
        counts = self._watch.counts() if told is None else below(self._ways.workspace, told)
        counts = {path: count for path, count in counts.items() if counted(path)}
        often = [path for path, count in counts.items() if count > 1 and not os.path.isabs(path)]
        hidden = checkpoints.ignored(self._ways.workspace, often)
        return {path: count for path, count in counts.items() if path not in hidden}

    def verify(self, criteria: Sequence[Criterion], iteration: int) -> list[Finding]:
        """Rooda's own run of each command, its output kept as evidence."""
        found = []
        for place, criterion in enumerate(criteria, 1):
            ran = self._run(criterion.command, f"verify-{place}", iteration)
            if ran.ended == "interrupted":
                break
            found.append(self._finding(criterion, ran, iteration))
        return found

    def _run(self, command: str, label: str, iteration: int) -> Ran:
        timeout = self._ways.verify_timeout
        return self._session.run((Command(command, label, timeout, max(iteration, 1)),))[0]

    def _finding(self, criterion: Criterion, ran: Ran, iteration: int) -> Finding:
        output = _tail(ran.output, OUTPUT)
        met = ran.ended == "exit" and ran.code == 0 and criteria.holds(criterion.expect, output, matches)
        code, output = "timeout" if ran.ended == "timeout" else f"exit {ran.code}", self._session.clean(output)
        head = [f"criterion: {criterion.name}", f"command: {criterion.command}", f"result: {code}"]
        head += [f"expected: {criterion.expect}"] if criterion.expect else []
        text = "\n".join([*head, f"met: {'yes' if met else 'no'} ({criterion.kind})", "", output])
        path = self.keep(f"{iteration}-{criterion.name}", text)
        line = "" if met else "timeout" if code == "timeout" else breakers.first(output)
        error = f"{criterion.command} {code} {line}" if line else ""
        verdict = "met" if met else "not met"
        self.emit(CriterionVerified(criterion=criterion.name, verdict=verdict, evidence=path, elapsed=ran.seconds))
        return Finding(criterion.name, met, path, error, line)

    def violated(self, entries: Sequence[MustNot], iteration: int) -> Hurt:
        """By exit code 0. A command that was not found, failed by a signal or took too long can't tell."""
        ran = [
            (each, self._run(each.violated_if, f"mustnot-{place}", iteration)) for place, each in enumerate(entries, 1)
        ]
        unknown = []
        for each, done in ran:
            if done.ended != "interrupted" and (done.ended != "exit" or not 0 <= done.code < CAN_NOT_TELL):
                how = f"exit {done.code}" if done.ended == "exit" else done.ended
                text = f"mustNot: {each.text}: its command can't tell ({how}): {each.violated_if}"
                self.emit(Problem(text=text))
                unknown.append(each.text)
        true = tuple(each.text for each, done in ran if done.ended == "exit" and done.code == 0)
        return Hurt(true, tuple(unknown))

    def keep(self, name: str, text: str) -> str:
        """A file below `.loop/evidence`; a name without a number goes to `.loop` itself."""
        number, _, rest = name.partition("-")
        inside = number.isdecimal() and bool(rest)
        folder = os.path.join(self._ways.folder, "evidence") if inside else self._ways.folder
        path = os.path.join(folder, evidence_name(number, rest, sys.getfilesystemencoding()) if inside else name)
        try:
            files.make_folder(folder)
            files.write(path, files.to_bytes(self._session.clean(text)))
        except OSError as problem:
            self.emit(Problem(text=f"{path} can't be written: {problem.strerror or problem}"))
        return os.path.relpath(path, self._ways.workspace)

    def question(self, question: Question) -> str | None:
        """The flag, the terminal, the pipe, nobody."""
        answered = bool(self._yes) and question.gate in ("G1", "G2", "G3", "tests")
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
        accepts = wording.skips_gates if question.gate in ("G1", "G2", "G3") else _nothing
        answer = self._asker.answer(question.text, question.hint, accepts)
        self.emit(QuestionAnswered(gate=question.gate, answer=answer))
        return answer

    def template(self, name: str) -> str:
        if name not in self._templates:
            self._templates[name] = files.text(shipped("prompts", os.path.join("goal", f"{name}.md")))
        return self._templates[name]

    def tail(self, path: str) -> str:
        return _tail(os.path.join(self._ways.workspace, path), OUTPUT)

    def shape(self) -> tuple[str, str]:
        try:
            data = files.read_ours(self._ways.shape)
        except OSError:
            return "", ""
        return files.to_text(data), files.sha256(data)

    def checkpoint(self, run: str, number: int) -> str:
        problem = checkpoints.checkpoint(self._ways.workspace, run, number)
        if problem and problem != checkpoints.NO_REPOSITORY:  # that was said at the start
            self.emit(Problem(text=f"No checkpoint of iteration {number}: {problem}"))
        return problem

    def newer(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Files written since the step's call began."""
        found = []
        set_by = clock.now() - self._began - (clock.monotonic() - self._since)  # by so much the clock was set meanwhile
        began = self._began + min(set_by, 0.0)
        for path in paths:
            place = os.path.join(self._ways.workspace, path)
            if os.path.isfile(place) and os.stat(place).st_mtime >= began:
                found.append(path)
        return tuple(found)

    def requested(self) -> str:
        """A word from another terminal, taken once."""
        try:
            word = files.read_ours(self._ways.request).decode("utf-8", "replace").strip()
            files.remove(self._ways.request)
        except OSError:
            return ""
        return word if word.isalpha() else ""

    def world(self) -> GoalWorld:
        workspace, session = self._ways.workspace, self._session
        return GoalWorld(
            now=lambda: clock.rfc3339(clock.now()),
            seconds=clock.now,
            signalled=session.signalled,
            requested=self.requested,
            emit=self.emit,
            told=session.clean,
            ask=self.ask,
            rest=session.rest,
            question=self.question,
            attended=self._asker.attended,
            verify=self.verify,
            violated=self.violated,
            template=self.template,
            tail=self.tail,
            keep=self.keep,
            checkpoint=self.checkpoint,
            git=lambda: checkpoints.within(workspace),
            tree=lambda everywhere: checkpoints.tree(workspace) if everywhere or checkpoints.within(workspace) else "",
            diff=lambda base: checkpoints.diff(workspace, base),
            prints=lambda commands: fingerprints.prints(workspace, commands),
            changed=lambda before: fingerprints.changed(workspace, before),
            shape=self.shape,
            newer=self.newer,
        )


def _nothing(_word: str) -> bool:
    return False


def _tail(path: str, limit: int) -> str:
    try:
        return files.to_text(files.tail(path, limit))
    except OSError:
        return ""


# Is a folder still the one that it was? One made in its place may get its number, unless somebody holds it open.


def taken(path: str) -> int:
    """Hold it open."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def kept(folder: int, path: str) -> bool:
    """Let it go. Has it still this name?"""
    try:
        return os.path.samestat(os.fstat(folder), os.stat(path))
    except OSError:
        return False
    finally:
        os.close(folder)


# What a call of a goal came to: its words, its price, its error, and the files it wrote.
TAIL = 65_536
WORDS = {
    "timeout": "timeout {limit}s",
    "idle": "timeout {limit}s",
    "not-started": "not started",
    "": "{named}exit {code}",
}


def call_facts(agent: Agent, reply: Reply, prompt_size: int, per_call: float, edits: Mapping[str, int]) -> Told:
    """All of it from the reply and its transcript."""
    said = reply.said.text
    answer = answers.unwrapped(said) if reply.output == "text" else answers.Answer(said)
    cost = _cost(agent, reply, answer, prompt_size, per_call)
    ok = reply.ok and not answer.failed
    return Told(
        text=answer.text,
        ok=ok,
        ended=reply.ended,
        how="" if ok else in_words(reply, WORDS) or f"exit {reply.exit_code}",
        error="" if ok else _error(reply, answer.text),
        cost=cost.dollars,
        estimated=cost.source == "estimated",
        seconds=reply.seconds,
        limited=reply.outcome == USAGE_LIMIT,
        reset_at=reply.reset_at,
        fatal=_fatal(reply),
        edits=edits,
        edits_seen=reply.said.edits is None,
    )


def _cost(agent: Agent, reply: Reply, answer: answers.Answer, size: int, per_call: float) -> prices.Cost:
    if reply.ended == "not-started":
        return prices.Cost(0.0, "reported")
    known = answer.cost if reply.cost is None else reply.cost
    return prices.assumed(known, per_call, (size, len(answer.text)), reply.model or agent.model, agent.prices)


def _error(reply: Reply, text: str) -> str:
    """The CLI's own sentence, else the last error line of stderr, else of what it printed."""
    if reply.note or reply.message:
        return breakers.last(reply.note or reply.message)
    errors = _reply_tail(reply.transcript.removesuffix(".out") + ".err")
    return breakers.last(errors) or breakers.last(answers.without(text))


def _reply_tail(path: str) -> str:
    try:
        return files.tail(path, TAIL).decode("utf-8", "replace")
    except OSError:
        return ""


def _fatal(reply: Reply) -> str:
    if reply.ended == "not-started" and not reply.retryable:
        return f"the AI command can't be run: {reply.note}"
    return f"{reply.outcome}: {' '.join(reply.message.split())}" if reply.outcome in FATAL else ""
