"""Frozen records that all rooms share, as NamedTuples: an import costs a fifth of dataclasses'. Imports nothing."""

from collections.abc import Mapping
from typing import NamedTuple

from rooda.errors import Cause
from rooda.kernel.loads import Json as Json  # noqa: PLC0414 - others take it from here
from rooda.terms import Agent, Bounds


class Prompt(NamedTuple):
    """Facts about an assembled prompt; the text itself stays in its file."""

    path: str
    sha256: str
    size: int
    tokens: int
    exact: bool  # False: estimated, shown with ~
    budget: int

    @property
    def over_budget(self) -> bool:
        return 0 < self.budget < self.tokens


class Call(NamedTuple):
    """One agent call to make."""

    kind: str  # what ROODA_CALL says: iteration, plan, produce, …
    number: int  # 1-indexed iteration, as the screen shows it
    agent: Agent
    prompt: Prompt
    bounds: Bounds = Bounds()
    promise_signals: bool = False
    label: str = ""  # tells calls of one kind and number apart, in the names of their files
    env: Mapping[str, str] = {}  # what this call is told besides
    apart: bool = False  # a raw command's stdout is the answer: kept in `Reply.said`, its stderr in a file of its own


class Usage(NamedTuple):
    """Tokens with one meaning for all CLIs: `input` is what was read afresh, neither from a cache nor into one."""

    input: int = 0
    output: int = 0  # reasoning included
    cached: int = 0
    written: int = 0  # into a cache


class Facts(NamedTuple):
    """What a transcript tells of an agent call; empty or None where it doesn't."""

    session: str = ""
    model: str = ""
    final: str = ""  # the agent's own last message
    ended: bool = False  # the CLI's own last record was seen
    status: int | None = None  # HTTP status of the error
    error: str = ""
    message: str = ""
    limited: bool = False
    reset_at: float | None = None  # seconds since 1970
    usage: Usage | None = None
    cost: float | None = None  # dollars, as the CLI says
    turns: int = 0
    tools: int = 0
    tools_failed: int = 0
    retries: int = 0
    edited: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    noise: str = ""  # last lines that are no records


class Said(NamedTuple):
    """What a transcript says. Of a raw command: all that it printed, if the call asked for an answer."""

    text: str = ""  # the agent's last message
    cut: bool = False  # something of it is missing
    exact: str = ""  # the text, with bytes that are not UTF-8 kept as surrogates
    edits: Mapping[str, int] | None = None  # writes per file; None if this form of output reports none

    @property
    def whole(self) -> str | None:
        """The text; None if some of it is missing."""
        return None if self.cut else self.text


class Reply(NamedTuple):
    """Facts about an agent call that has ended."""

    exit_code: int  # as a shell would say it: 128+n for a signal, 127 not found
    seconds: float
    ended: str = "exit"  # exit | timeout | idle | interrupted | not-started
    transcript: str = ""  # path
    output: str = "text"  # the form of it: of the agent that was asked, at a usage limit another one
    size: int = 0  # bytes of output
    promise: str = ""  # SUCCESS | FAILURE | "" ; both: FAILURE
    truncated: bool = False
    note: str = ""  # why it could not start, in words
    limit: float = 0.0  # the timeout that ended it, seconds
    swept: int = 0  # processes it left behind, ended by rooda
    outcome: str = ""  # policy/outcome.py's word; "" where the exit code is all that is known
    message: str = ""  # the CLI's own sentence about its failure
    retryable: bool = False
    reset_at: float | None = None  # when a usage limit ends, seconds since 1970
    usage: Usage | None = None
    cost: float | None = None  # dollars, None = unknown
    cost_source: str = ""  # reported | computed | unknown
    model: str = ""
    turns: int = 0
    tools: int = 0
    edited: int = 0  # files
    denied: int = 0  # tool calls
    said: Said = Said()

    @property
    def ok(self) -> bool:
        return self.ended == "exit" and self.exit_code == 0 and self.outcome in ("", "ok")


class Command(NamedTuple):
    """One shell command to run in the workspace."""

    command: str
    label: str  # names its output file
    timeout: float = 0.0  # seconds, 0 = none
    number: int = 1  # 1-indexed iteration
    env: Mapping[str, str] = {}


class Ran(NamedTuple):
    """What became of it."""

    code: int  # as a shell would say it
    seconds: float
    ended: str  # exit | timeout | interrupted | not-started
    output: str  # path
    size: int = 0  # bytes it wrote, also those that were not kept


class GateResult(NamedTuple):
    """One gate that was run. `verdict` is "" when it passed, else e.g. "exit 1", "timeout 300s"."""

    name: str
    seconds: float
    verdict: str
    output: str = ""  # path


class Gates(NamedTuple):
    """All gates of one iteration."""

    results: tuple[GateResult, ...] = ()
    interrupted: bool = False

    @property
    def failed(self) -> tuple[GateResult, ...]:
        return tuple(result for result in self.results if result.verdict)

    @property
    def summary(self) -> str:
        return ", ".join(f"{' '.join(result.name.split())} ({result.verdict})" for result in self.failed)


class Ending(NamedTuple):
    """Why a loop ended. `kind` is max-iterations, success-signal, failures, prompt, agent, limit or signal."""

    kind: str
    code: int
    signal: int = 0
    note: str = ""  # for people; nothing reads it
    cause: Cause | None = None
