"""Defines the data types of a procedure: its phases, their fragments, its context, and its other settings."""

from collections.abc import Mapping
from typing import NamedTuple

from rooda.run.records import Gate, Left
from rooda.run.setup import Setup

PHASES = ("observe", "orient", "decide", "act")
NO_PROGRESS = "no-progress"


class Fragment(NamedTuple):
    """A piece of a phase's prompt: inline `text`, a file, or a command that runs for each prompt."""

    text: str | None = None
    path: str | None = None  # absolute
    shown: str = ""  # as the user wrote it: "builtin:act/commit.md", "prompts/act.md", "text"
    parameters: Mapping[str, str] | None = None  # None: the text is used verbatim, no {{placeholders}}
    command: str = ""
    timeout: float = 0.0  # of the command in seconds, 0 = none


class Phase(NamedTuple):
    """One of the phases observe, orient, decide and act, with its fragments."""

    name: str
    fragments: tuple[Fragment, ...]


class Context(NamedTuple):
    """An item of the context: inline `text`, or the file at `path`, read again for every prompt."""

    text: str | None = None
    path: str | None = None
    shown: str = ""


class Procedure(NamedTuple):
    """A procedure with all its settings resolved."""

    name: str
    phases: tuple[Phase, ...]
    setup: Setup = Setup()
    context: tuple[Context, ...] = ()
    display: str = ""
    summary: str = ""
    description: str = ""
    builtin: bool = False  # at least one of its phases is a built-in one
    max_iterations: int = 0
    failure_threshold: int = 3
    count_failures: str = "red"  # red | no-progress
    stuck_after: int = 5  # iterations without progress at which the run ends; 0 = never
    blocked_threshold: int = 0  # promises of FAILURE at which the run ends; 0 = never
    baseline: bool = False  # run the gates once before the first iteration
    commit: str = "agent"  # agent | green
    on_red: str = "keep"  # keep | undo
    on_interrupted: str = "ask"
    gates: tuple[Gate, ...] | None = None  # None: not set, read AGENTS.md
    more_gates: tuple[Gate, ...] = ()  # to run besides `gates`
    gates_left: tuple[Left, ...] = ()  # lines of AGENTS.md that look like gates but are not used
    gates_from_commands: bool = False  # use commands in AGENTS.md as gates if it defines none
    promise_signals: bool = False
    in_task: bool = False  # its loop works for a task of `rooda tasks`

    @property
    def may_ask(self) -> bool:
        """True if the agent may end the run with a question to the user."""
        return self.in_task or self.promise_signals

    preamble: bool = False
    feedback: bool = True  # prompts have a STATUS section
