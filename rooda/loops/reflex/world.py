"""Defines the effects of the reflex loop, and the records that these effects take and return."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from rooda.base.json import Json
from rooda.loops.reflex.contract import LENIENT
from rooda.loops.reflex.state import State
from rooda.run.event_records import Event


class Query(NamedTuple):
    """One agent call for a phase."""

    phase: str
    iteration: int
    level: str
    prompt: str
    attempt: int  # 2: the first answer broke the contract
    failures: int = 0  # calls for this phase that have failed


class Answer(NamedTuple):
    """The agent's final message, or why there is none."""

    text: str = ""
    problem: str = ""  # why the answer can't be used
    failed: str = ""  # why the call failed
    final: bool = False  # the call would fail again, so it isn't repeated
    unasked: bool = False  # a usage limit prevented the call; repeat it


class CallFailed(Exception):
    """Raised after an agent call's last allowed failure. The loop's files are unchanged; a resume repeats the call."""


class CheckResult(NamedTuple):
    """The result of a check's command."""

    holds: bool
    details: str


class Concurrent(NamedTuple):
    """Commands to run while agents work, and the function that receives their results."""

    commands: Sequence[str]
    receive: Callable[[list[CheckResult]], None]


class LoopOptions(NamedTuple):
    """The user's options for the loop."""

    artifact: str  # the artifact's path, as checks name it
    sequential: bool = False
    extraction: str = LENIENT
    roots: Sequence[str] = ()  # all paths of the folder that commands run in


class PhaseRequest(NamedTuple):
    """A phase to run: its prompt, the parser of its answer, and how the answer changes the state."""

    phase: str
    prompt: str
    parse: Callable[[str], Any]  # raises Breach for an invalid answer
    apply: Callable[[State, Any], State]


class World(Protocol):
    """All effects of the reflex loop."""

    def emit(self, event: Event) -> None: ...

    def signalled(self) -> int:
        """Return the number of the first signal received, 0 for none."""

    def compose(self, phase: str, values: Mapping[str, str]) -> str:
        """Build a phase's prompt by filling in its template."""

    def ask(self, queries: Sequence[Query], concurrent: Concurrent | None) -> list[Answer]:
        """Make these agent calls in parallel, and run the concurrent commands with them."""

    def breaches(self, state: State, phase: str) -> list[str]:
        """Return the errors of the phase's breaches in this iteration and level, since the phase last succeeded."""

    def record_breach(self, state: State, phase: str, attempt: int, error: str, excerpt: str) -> None:
        """Append a `phase_error` to the history."""

    def save(self, state: State) -> State:
        """Save the state before the step ends; return the state on disk."""

    def recent_history(self, state: State) -> list[str]:
        """Return the last lines of the history, for a prompt."""

    def fixes(self, state: State) -> list[Json]:
        """Return the issues that REFINE addressed at the end of the previous iteration."""

    def read_artifact(self) -> str | None: ...

    def stage_artifact(self, text: str) -> None:
        """Keep the text until the state is next saved; the text then replaces the artifact."""

    def hash_artifact(self, text: str) -> str: ...

    def may_run(self, commands: Sequence[str]) -> bool:
        """True if the user allows these commands."""

    def run_checks(self, state: State, commands: Sequence[str]) -> list[CheckResult]:
        """Run the commands of checks by themselves, without an agent call in parallel."""

    def search(self, pattern: str, text: str) -> str:
        """Search the text for a regular expression; return found, missing or timed out."""

    def changed_sections(self, state: State) -> list[str] | None:
        """Return the headings of the sections that changed since the last iteration; None in the first one."""

    def show_artifact(self) -> None:
        """Print the whole artifact for the user."""

    def redacted(self, text: str) -> str:
        """Return the text with secrets masked. Callers must not mask text that is run, judged or delivered."""
