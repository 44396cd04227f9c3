"""The effects a goal may cause, and the facts they give back."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from rooda.loops.goal.criteria import Criterion
from rooda.loops.goal.plan import MustNot
from rooda.run.event_records import Emit

LOST = "lost"  # how a call ended after which there was no workspace any more


class Print(NamedTuple):
    """A file that the agent should leave alone, as it was."""

    path: str
    sha256: str


class Told(NamedTuple):
    """One agent call that has ended."""

    text: str  # its final message
    ok: bool = True
    ended: str = "exit"
    how: str = ""  # of a failed call: "exit 1", "timeout", …
    error: str = ""  # its last error line
    cost: float | None = None
    estimated: bool = False
    seconds: float = 0.0
    limited: bool = False
    reset_at: float | None = None
    fatal: str = ""  # why the next call would fail as well
    edits: Mapping[str, int] = {}  # how often each file was written
    edits_seen: bool = False  # by looking at the files, which may miss some: at least so often


class Hurt(NamedTuple):
    """The mustNot entries that have come true, and those of which nobody can tell."""

    true: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


class Finding(NamedTuple):
    """What rooda saw of one criterion."""

    name: str
    met: bool
    evidence: str  # path below the workspace
    error: str = ""  # command, exit code and first error line, "" without such a line
    line: str = ""


class Question(NamedTuple):
    """Something a person must decide."""

    gate: str  # G1 | G2 | G3 | observed | missing | keep | tests | …
    text: str
    lines: tuple[str, ...] = ()  # above the question
    hint: str = "[Y/n]"


class GoalWorld(NamedTuple):
    """Effects come in as arguments; a loop never imports a door."""

    now: Callable[[], str]
    seconds: Callable[[], float]
    signalled: Callable[[], int]
    requested: Callable[[], str]  # what another terminal asks for: "" or "pause"
    emit: Emit
    told: Callable[[str], str]  # with stars for keys; what is run or judged never goes through it
    ask: Callable[[str, int, str], Told]  # kind, number, prompt
    rest: Callable[[float], None]
    question: Callable[[Question], str | None]  # None: nobody answers
    attended: Callable[[], bool]  # is there a terminal?
    verify: Callable[[Sequence[Criterion], int], list[Finding]]
    violated: Callable[[Sequence[MustNot], int], Hurt]
    template: Callable[[str], str]
    tail: Callable[[str], str]  # the end of an evidence file
    keep: Callable[[str, str], str]  # a text as evidence or note: name, text; gives its path
    checkpoint: Callable[[str, int], str]  # why it could not be made, or ""
    git: Callable[[], bool]  # is there a repository that can hold checkpoints?
    tree: Callable[[bool], str]  # the work tree as it is; whether also where there is no repository
    diff: Callable[[str], str]  # since that tree
    prints: Callable[[Sequence[str]], tuple[Print, ...]]  # of what verifies the work, these commands included
    changed: Callable[[Sequence[Print]], tuple[str, ...]]
    shape: Callable[[], tuple[str, str]]  # SHAPE.md: its text and its hash; "" without one
    newer: Callable[[Sequence[str]], tuple[str, ...]]  # files written since the step's call began
