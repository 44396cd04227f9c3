"""Records of agents and of one call: frozen, and importing nothing heavy."""

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

EXIT_GRACE = 30.0  # seconds
T = TypeVar("T")


class Agent(NamedTuple):
    """How an AI CLI is called. `command` is split like a shell would, but no shell runs it."""

    name: str  # "" for a raw --ai-cmd
    command: str
    prompt: str = "stdin"  # stdin | argument | file
    output: str = "text"
    stop: str = "TERM"  # first signal of the stop ladder
    keep_background: bool = False  # what a call leaves running may live until the run ends
    prices: Mapping[str, tuple[float, ...]] = {}  # dollars per million tokens of a model, in the order of Usage
    exit_grace: float = EXIT_GRACE  # seconds between its final message and its exit, 0 = any
    env: Mapping[str, str] = {}
    model: str = ""
    env_deny: tuple[str, ...] = ()  # variables that are not passed on
    size_limit: int = 0  # bytes of a prompt, 0 = any
    character_limit: int = 0
    budget: str = ""  # option with {budget}: the CLI's own cap
    cap: float = 0.0  # dollars for it, 0 = none
    billing: Mapping[str, str] = {}  # variable to who pays, the first that is set counts
    account: str = ""  # who pays otherwise
    version: str = ""  # option that makes it tell its version
    on_limit: str = "wait"  # wait | stop | switch, at a usage limit
    fallback: tuple["Agent", ...] = ()  # whom to switch to

    @property
    def choices(self) -> tuple["Agent", ...]:
        """Who may be asked, the first one first."""
        return (self, *self.fallback) if self.on_limit == "switch" else (self,)


class Bounds(NamedTuple):
    """What one call or command may take."""

    iteration_timeout: float = 0.0  # seconds, 0 = any
    idle_timeout: float = 0.0
    kill_grace: float = 5.0
    max_output_buffer: int = 10_485_760  # bytes


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
    wants_answer: bool = (
        False  # a raw command's stdout is the answer: kept in `Reply.said`, its stderr in a file of its own
    )


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
    unparsed: str = ""  # last lines that are no records


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
