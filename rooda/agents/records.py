"""Defines the records of agents and calls; frozen, and fast to import."""

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

EXIT_GRACE = 30.0  # seconds
T = TypeVar("T")


class ToolRules(NamedTuple):
    """The tools that an agent may use, for agents whose permission requests rooda answers."""

    read_only: bool = False
    allowed: tuple[str, ...] = ()  # kinds or titles of tool calls; empty: all
    denied: tuple[str, ...] = ()
    asks: bool = False  # the agent is known to ask before it changes anything

    @property
    def restrict(self) -> bool:
        """True if there is a restriction."""
        return bool(self.read_only or self.allowed or self.denied)


class Agent(NamedTuple):
    """An AI CLI and how to run it; `command` is split as a shell would split it, but no shell runs it."""

    name: str  # "" for a raw --ai-cmd
    command: str
    prompt: str = "stdin"  # how the CLI gets the prompt: stdin | argument | file
    output: str = "text"
    stop: str = "TERM"  # first signal of the stop ladder
    keep_background: bool = False  # processes that a call leaves behind may live until the run ends
    prices: Mapping[str, tuple[float, ...]] = {}  # dollars per million tokens of a model, in the order of Usage
    exit_grace: float = EXIT_GRACE  # seconds between its final message and its exit, 0 = any
    env: Mapping[str, str] = {}
    model: str = ""
    env_deny: tuple[str, ...] = ()  # variables not passed on
    size_limit: int = 0  # bytes of a prompt, 0 = any
    character_limit: int = 0  # characters of a prompt, 0 = any
    budget: str = ""  # the CLI's own option for a cost limit, with {budget}
    cap: float = 0.0  # dollars for that option, 0 = none
    budget_day: float = 0.0  # dollars that its account may cost on one day, 0 = no limit
    billing: Mapping[str, str] = {}  # payers keyed by variable; the first variable that is set decides
    account: str = ""  # payer if none of these variables is set
    version: str = ""  # option that prints the version
    on_limit: str = "wait"  # at a usage limit: wait | stop | switch
    fallback: tuple["Agent", ...] = ()  # agents to switch to
    tools: ToolRules = ToolRules()  # rules by which rooda answers permission requests
    like: str = ""  # the agent that its settings are inherited from
    sandbox: str = "off"  # off | auto | workspace | read-only
    hosts: tuple[str, ...] | None = None  # hosts that the CLI needs; None: rooda does not know
    variables: tuple[str, ...] = ()  # further variables that it gets in a sandbox; `*` matches anything
    login: tuple[str, ...] = ()  # files of HOME with its login, which the CLI may renew
    own_files: tuple[str, ...] = ()  # other files of HOME that it needs; it gets copies
    idle_timeout: float = 0.0  # seconds of silence, used if the loop's own idle_timeout is not set; 0 = no limit
    log: str = ""  # path of the CLI's own log

    @property
    def cli(self) -> str:
        """Return the name of the CLI that the agent runs."""
        return self.like or self.name

    @property
    def choices(self) -> tuple["Agent", ...]:
        """Return the agents to try, in order."""
        return (self, *self.fallback) if self.on_limit == "switch" else (self,)


class Bounds(NamedTuple):
    """The limits of one agent call or command."""

    iteration_timeout: float = 0.0  # seconds, 0 = no limit
    idle_timeout: float = 0.0
    kill_grace: float = 5.0
    max_output_buffer: int = 10_485_760  # bytes


class Prompt(NamedTuple):
    """An assembled prompt: its file, size and tokens; the text stays in the file."""

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
    """An agent call to make."""

    kind: str  # value of ROODA_CALL: iteration, plan, produce, …
    number: int  # iteration, counted from 1 as on the screen
    agent: Agent
    prompt: Prompt
    bounds: Bounds = Bounds()
    promise_signals: bool = False
    may_ask: bool = False  # a question to a person in its final message ends the run
    label: str = ""  # distinguishes the files of calls with the same kind and number
    env: Mapping[str, str] = {}  # further variables of this call
    # A raw command's stdout is the answer: it is kept in `Reply.answer`, and stderr is written to a separate file.
    wants_answer: bool = False

    @property
    def idle_timeout(self) -> float:
        """Return the seconds that the agent may be silent; 0 = no limit."""
        return self.bounds.idle_timeout or self.agent.idle_timeout


class Usage(NamedTuple):
    """Token counts, with the same meaning for all CLIs: `input` excludes tokens read from or written to a cache."""

    input: int = 0
    output: int = 0  # including reasoning
    cached: int = 0
    written: int = 0  # written to a cache


class Facts(NamedTuple):
    """Facts about a call, read from its transcript; empty or None if the transcript lacks them."""

    session: str = ""
    model: str = ""
    final: str = ""  # the agent's final message
    ended: bool = False  # the CLI has printed its final record
    status: int | None = None  # HTTP status of the error
    error: str = ""
    message: str = ""
    limited: bool = False
    reset_at: float | None = None  # seconds since 1970
    usage: Usage | None = None
    cost: float | None = None  # dollars, as reported by the CLI
    turns: int = 0
    tools: int = 0
    tools_failed: int = 0
    retries: int = 0
    edited: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    unparsed: str = ""  # last lines that are not records
    unknown_records: int = 0  # records of types that the reader does not know


class Answer(NamedTuple):
    """The final message in a transcript, or all output of a raw command if the call asked for an answer."""

    text: str = ""
    cut: bool = False  # part of it is missing
    exact: str = ""  # the text, with invalid UTF-8 kept as surrogates
    edits: Mapping[str, int] | None = None  # writes per file; None if this form of output reports none

    @property
    def whole(self) -> str | None:
        """Return the text; None if part of it is missing."""
        return None if self.cut else self.text


class Reply(NamedTuple):
    """The result of an agent call that has ended."""

    exit_code: int  # as a shell reports it: 128+n for signal n, 127 if not found
    seconds: float
    ended: str = "exit"  # exit | timeout | idle | interrupted | not-started
    transcript: str = ""  # path
    output: str = "text"  # output format of the agent that ran; after a usage limit it can be another agent
    size: int = 0  # bytes of output
    promise: str = ""  # SUCCESS | FAILURE | ""; FAILURE if both appear
    question: str = ""  # what the agent asks a person, if it may
    truncated: bool = False
    note: str = ""  # why it could not start
    limit: float = 0.0  # timeout that ended it, in seconds
    swept: int = 0  # descendants that rooda ended
    outcome: str = ""  # a name from agents/outcome.py; "" if only the exit code is known
    message: str = ""  # the CLI's own error message
    retryable: bool = False
    once: bool = False  # retry only once
    retry_after: float = 0.0  # seconds that the service asks to wait before a retry
    reset_at: float | None = None  # Unix time when a usage limit resets
    usage: Usage | None = None
    cost: float | None = None  # dollars, None if unknown
    cost_source: str = ""  # reported | computed | assumed | unknown
    lost: bool = False  # its transcript or the run's events vanished, so its usage is unknown
    model: str = ""
    turns: int = 0
    tools: int = 0
    edited: int = 0  # files
    denied: int = 0  # tool calls
    unknown_records: int = 0  # records of types that the reader does not know
    replaced: str = ""  # what replaced the transcript: a pipe, a link, …, missing; "" if nothing did
    answer: Answer = Answer()

    @property
    def ok(self) -> bool:
        return self.ended == "exit" and self.exit_code == 0 and self.outcome in ("", "ok")
