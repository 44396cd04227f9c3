"""Implements the effects of a procedure's loop: builds prompts, calls agents, runs quality gates, waits."""

from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeAlias

from rooda.agents.records import Call, Prompt, Reply
from rooda.base import clock, files, workspace_files
from rooda.errors import Cause, PromptProblem
from rooda.loops.procedure.model import Context, Fragment, Phase, Procedure
from rooda.loops.procedure.prompts import assemble, from_file, preamble, with_new_status
from rooda.loops.procedure.world import Committed, World
from rooda.run.placeholders import substitute
from rooda.run.records import Command, Gate, GateResult, Gates

if TYPE_CHECKING:
    from rooda.loops.procedure.status import Status
    from rooda.run.changes import Changes
    from rooda.run.event_records import Event
    from rooda.run.session import Session

COMPARED = 1_048_576  # bytes; only this much of the end of a gate's output is compared
RunCommand: TypeAlias = Callable[[Fragment, str], str]  # arguments: fragment, label of its output file
TICK = 0.1  # seconds; timestamps of files are finer than this


class Effects(World):
    """The effects of one session. Before each iteration, prompt files are read again if they have changed."""

    def __init__(self, session: "Session", status: "Status", name: str, resumed: bool = False) -> None:
        self._session, self._status, self._name, self._resumed = session, status, name, resumed
        self._marks: tuple[tuple[int, ...], ...] = ()
        self._reported = ""

    def now(self) -> str:
        return clock.rfc3339(clock.now())

    def elapsed(self) -> float:
        return self._session.elapsed()

    def signalled(self) -> int:
        return self._session.signalled()

    def reached_limit(self) -> Cause | None:
        return self._session.reached_limit()

    def emit(self, event: "Event") -> None:
        self._session.emit(event)

    @cached_property
    def _changes(self) -> "Changes":
        from rooda.run.changes import Changes

        session = self._session
        return Changes(session.context.workspace, self._name, session.recorder, session.emit, self._resumed)

    def compose(self, procedure: Procedure, iteration: int) -> Prompt:
        marks = () if procedure.preamble else prompt_marks(procedure)  # a preamble contains the iteration number
        same, self._marks = bool(marks) and marks == self._marks, marks
        status, before = self._status.text(procedure), self._reported
        self._reported = status
        from rooda.run.prompts import Measure

        def text() -> str:
            """Return the last prompt with the new status if only the status has changed; else read all files again."""
            last = self._session.last_prompt() if same and before and status else ""
            if last:
                return with_new_status(last, before, status)
            place, run = self._session.context.workspace, partial(self._output_of, iteration + 1)
            return prompt_text(place, procedure, iteration + 1, status, run)

        measure = Measure(procedure.setup.token_encoding, procedure.setup.token_budget)
        try:
            return self._session.prompt(text, f"{iteration + 1:04d}", measure, same and status == before)
        except OSError as problem:
            where = problem.filename or self._session.folder.ready()
            what = f"The prompt can't be written: {where}: {problem.strerror}"
            raise PromptProblem(what, "Free some disk space, or make the folder writable.") from None

    def _output_of(self, number: int, fragment: Fragment, label: str) -> str:
        """Run a fragment's command and return its output; if the command failed, begin with a line that says why."""
        from rooda.loops.procedure import feedback
        from rooda.loops.procedure.status import ends_of

        command = Command(fragment.command, label, fragment.timeout, number)
        done = self._session.run((command,))[0]
        return feedback.command_text(fragment.command, done, ends_of(done.output), self._session.clean)

    def ask(self, call: Call) -> Reply:
        reply = self._session.calls.ask(call)
        if reply.ended == "interrupted":
            self._session.inbox.give_back()
        return reply

    def check(self, gates: tuple[Gate, ...], iteration: int) -> Gates:
        return self._session.check(gates, iteration)

    def results(self, gates: Gates, compared: bool) -> dict[str, str]:
        return {each.name: each.verdict and self._result(each, compared) for each in gates.results}

    def _result(self, result: GateResult, compared: bool) -> str:
        return f"{result.verdict} {self._digest(result.output)}" if compared else result.verdict

    def _digest(self, path: str) -> str:
        """Return a hash of the end of a gate's output, ignoring noise that differs in each run, such as PIDs."""
        try:
            text = files.tail(path, COMPARED).decode("utf-8", "replace")
        except OSError:
            return ""
        from rooda.loops.procedure.progress import normalised

        context = self._session.context
        temporary = [context.env[name] for name in ("TMPDIR", "TEMP", "TMP") if context.env.get(name)]
        return files.sha256(normalised(text, context.workspace, temporary).encode())[:16]

    def tree(self, fresh: bool = True) -> str:
        return self._changes.tree(fresh)

    def commit(self, base: str, said: str, iteration: int) -> Committed:
        run, text = self._session.folder.run, self._session.clean(said)
        from rooda.git.commits import message

        made = self._changes.commit(base, message(text, f"Iteration {iteration + 1}", run, iteration + 1))
        return Committed(made.commit, self._session.clean(made.refused), made.tree)

    def undo(self, iteration: int) -> str:
        return self._changes.undo(iteration + 1)

    def finish_undo(self, began: str, kept: str) -> None:
        self._changes.finish_undo(began, kept)

    def begin_repeated(self, began: str) -> None:
        self._changes.begin_repeated(began)

    def wait(self, seconds: float) -> None:
        self._session.wait(seconds)


def not_run(fragment: Fragment, label: str) -> str:
    return f"[command not run: {fragment.command}]"


def prompt_text(
    workspace: str, procedure: Procedure, iteration: int, status: str = "", run: RunCommand = not_run
) -> str:
    """Build the prompt from the current content of its files. `iteration` counts from 1.

    `run` returns the text of a fragment that is a command.
    """
    sections = {
        phase.name: [
            run(each, f"fragment-{phase.name}-{place}")
            if each.command
            else _fragment(workspace, each, phase, procedure)
            for place, each in enumerate(phase.fragments, 1)
        ]
        for phase in procedure.phases
    }
    context = [_context(workspace, item) for item in procedure.context]
    return assemble(sections, context, preamble(procedure, iteration) if procedure.preamble else "", status)


def prompt_marks(procedure: Procedure) -> tuple[tuple[int, ...], ...]:
    """Return fingerprints of the prompt's files; equal fingerprints mean that no file has changed.

    Empty if a fragment is a command, or if a file is missing or so new that its next change might go unnoticed.
    """
    if any(fragment.command for phase in procedure.phases for fragment in phase.fragments):
        return ()
    paths = [fragment.path for phase in procedure.phases for fragment in phase.fragments if fragment.path]
    paths += [item.path for item in procedure.context if item.path]
    found = [files.fingerprint(path) for path in paths]
    latest = max((mark[-1] for mark in found if mark), default=0)
    return tuple(found) if all(found) and latest < (clock.now() - TICK) * 1e9 else ()


def _fragment(workspace: str, fragment: Fragment, phase: Phase, procedure: Procedure) -> str:
    found = fragment.text
    if found is None:
        use = f"Phase {phase.name} of procedure {procedure.name} needs it"
        hint = f"{use}: restore it, or name another file."
        found = _read(workspace, fragment.path or "", fragment.shown, "Prompt file", hint)
    if fragment.parameters is None:
        return found
    return substitute(found, fragment.parameters, f"{fragment.shown or 'text'} (phase {phase.name})")


def _context(workspace: str, item: Context) -> str:
    if item.path is None:
        return item.text or ""
    shown = item.shown or item.path
    hint = "rooda reads it again for every prompt: restore it."
    return from_file(shown, _read(workspace, item.path, shown, "Context file", hint))


def _read(workspace: str, path: str, shown: str, what: str, hint: str) -> str:
    """Return the text of a regular file; raise PromptProblem if it can't be read."""
    try:
        return workspace_files.text(workspace, path, workspace_files.PROMPT)
    except OSError as problem:
        reason = problem.strerror or str(problem)
    except ValueError:
        reason = "the name contains a NUL character"
    place = f" ({path})" if shown and shown != path else ""
    raise PromptProblem(f"{what} {shown or path} can't be read: {reason}{place}", hint)
