"""Defines the protocol for the effects of a goal's loop, and the records that its methods take and return."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from rooda.loops.goal.criteria import Criterion
from rooda.loops.goal.plan import MustNot
from rooda.run.event_records import Event

LOST = "lost"  # how a call ended if the workspace was gone afterwards


class Fingerprint(NamedTuple):
    """A file that the agent should not change, with its hash at the start."""

    path: str
    sha256: str


class CallResult(NamedTuple):
    """The result of one agent call."""

    text: str  # the final message
    ok: bool = True
    ended: str = "exit"
    how: str = ""  # how a failed call ended: "exit 1", "timeout", …
    error: str = ""  # the last error line of a failed call
    cost: float | None = None
    estimated: bool = False
    lost: bool = False  # the call's transcript or events were deleted, so its cost is unknown
    seconds: float = 0.0
    limited: bool = False  # a usage limit of the service ended the call
    reset_at: float | None = None
    fatal: str = ""  # why the next call would fail as well
    edits: Mapping[str, int] = {}  # number of writes per file
    question: str = ""  # what the agent asks the user
    edits_seen: bool = False  # True: counted by scanning the files, so a lower bound


class Violations(NamedTuple):
    """The `mustNot` entries that are violated, and those whose command was inconclusive."""

    true: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


class Finding(NamedTuple):
    """The result of rooda's own check of one criterion."""

    name: str
    met: bool
    evidence: str  # path, relative to the workspace
    error: str = ""  # command, exit code and first error line; "" if there is no such line
    line: str = ""  # the error line alone


class Question(NamedTuple):
    """A question for the user."""

    gate: str  # G1 | G2 | G3 | observed | missing | keep | tests | …
    text: str
    lines: tuple[str, ...] = ()  # printed above the question
    hint: str = "[Y/n]"
    base: str = ""  # a git tree: the answer "d" shows the diff since then


class World(Protocol):
    def now(self) -> str:
        """Return the current time in UTC, in the format of the state file."""

    def seconds(self) -> float:
        """Return the current time in seconds since the epoch."""

    def signalled(self) -> int:
        """Return the number of the first signal received; 0 if none."""

    def requested(self) -> str:
        """Return a request from another terminal, "pause" or "cancel"; "" if none."""

    def emit(self, event: Event) -> None: ...

    def redact(self, text: str) -> str:
        """Replace secrets with stars. For text to save or show; callers must not redact what is run or judged."""

    def ask(self, kind: str, number: int, text: str) -> CallResult:
        """Call the agent with the prompt `text`."""

    def wait(self, seconds: float) -> None:
        """Sleep until the time has passed or a signal arrives."""

    def ask_user(self, question: Question) -> str | None:
        """Ask the user and return the answer; None if there is none."""

    def may_ask(self) -> bool:
        """True if the agent may ask the user a question in its final message."""

    def attended(self) -> bool:
        """True if the user can answer at a terminal."""

    def verify(self, criteria: Sequence[Criterion], iteration: int) -> list[Finding]:
        """Run the command of each criterion and save its output as evidence."""

    def violations(self, entries: Sequence[MustNot], iteration: int) -> Violations:
        """Run each entry's command; return the violated entries (exit code 0) and the inconclusive ones."""

    def missing_programs(self, commands: Mapping[str, str]) -> Mapping[str, str]:
        """Return the programs that are missing, each under the name of the command that needs it."""

    def template(self, name: str) -> str: ...

    def read_tail(self, path: str) -> str:
        """Read the end of an evidence file."""

    def write_note(self, name: str, text: str) -> str:
        """Write a file below `.loop`, as evidence if its name begins with a number; return its path."""

    def checkpoint(self, run: str, number: int) -> str:
        """Save the work tree in git; return the error, or "" on success."""

    def has_repository(self) -> bool:
        """True if the workspace is in a git repository, which checkpoints need."""

    def tree(self, everywhere: bool) -> str:
        """Save the work tree as a git tree and return its hash; "" without a repository, unless `everywhere` is set."""

    def diff(self, base: str) -> str:
        """Return the diff from the tree `base` to the work tree."""

    def diffstat(self, base: str) -> tuple[str, ...]:
        """Return the changed files since the tree `base`, as `git diff --stat` shows them."""

    def fingerprints(self, commands: Sequence[str]) -> tuple[Fingerprint, ...]:
        """Hash the test files and the files that define these commands."""

    def changed_files(self, before: Sequence[Fingerprint]) -> tuple[str, ...]:
        """Return the paths of the files that differ from their fingerprints."""

    def shape_file(self) -> tuple[str, str]:
        """Return the text and hash of SHAPE.md; both are empty if it is missing."""

    def written_since_call(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Return the paths whose files were written after the current step's call began."""
