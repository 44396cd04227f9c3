"""What settings give a run: its text, its agent, its limits. Frozen records, as in model.py. Imports nothing."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

EXIT_GRACE = 30.0  # seconds
T = TypeVar("T")
PHASES = ("observe", "orient", "decide", "act")


class Fragment(NamedTuple):
    """One piece of a phase: inline `text`, or the file at `path`, read again for every prompt."""

    text: str | None = None
    path: str | None = None  # absolute
    shown: str = ""  # as the person wrote it: "builtin:act/commit.md", "prompts/act.md", "text"
    parameters: Mapping[str, str] | None = None  # None: the text is used verbatim, no {{placeholders}}


class Phase(NamedTuple):
    """One of observe, orient, decide, act, and what it is made of."""

    name: str
    fragments: tuple[Fragment, ...]


class Context(NamedTuple):
    """What a person adds with --context: a file (read again for every prompt) or a text."""

    text: str | None = None
    path: str | None = None
    shown: str = ""


class Gate(NamedTuple):
    """A quality gate: a shell command that must exit 0."""

    name: str
    command: str
    timeout: float = 0.0  # seconds, 0 = none


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


class Budget(NamedTuple):
    """What a run may use over all its sessions; 0 = any."""

    cost: float = 0.0  # dollars
    tokens: int = 0
    seconds: float = 0.0


class Hook(NamedTuple):
    """Who is told of an event: a shell command or an address."""

    command: str
    url: str = ""
    timeout: float = 10.0


class Bounds(NamedTuple):
    """What one call or command may take."""

    iteration_timeout: float = 0.0  # seconds, 0 = any
    idle_timeout: float = 0.0
    kill_grace: float = 5.0
    max_output_buffer: int = 10_485_760  # bytes


class Setup(NamedTuple):
    """What a loop of any kind calls agents with, resolved from all settings."""

    agent: Agent | None = None  # None: nothing configured; only a run needs one
    budget: Budget = Budget()
    bounds: Bounds = Bounds()
    hooks: Mapping[str, Hook] = {}  # by moment
    token_budget: int = 0  # of a prompt, 0 = any
    token_encoding: str = "o200k_base"
    retry_wait: float = 5.0
    safety: str = "off"  # off | snapshot
    show_ai_output: bool = False
    log_level: str = "info"
    log_timestamp_format: str = "time"
    further: Mapping[str, Any] = {}  # settings without a field of their own

    def value(self, key: str, kind: Callable[[Any], T]) -> T:
        """The setting of this name as a number, a text …: `setup.value("key", float)`."""
        return kind(self.further[key])


class Procedure(NamedTuple):
    """Everything one run of a procedure needs, resolved from all settings."""

    name: str
    phases: tuple[Phase, ...]
    setup: Setup = Setup()
    context: tuple[Context, ...] = ()
    display: str = ""
    summary: str = ""
    description: str = ""
    builtin: bool = False  # all four phases are the shipped ones
    max_iterations: int = 0
    failure_threshold: int = 3
    on_interrupted: str = "ask"
    gates: tuple[Gate, ...] | None = None  # None: not set, look into AGENTS.md
    gates_from_commands: bool = False  # then also what AGENTS.md calls commands
    promise_signals: bool = False
    preamble: bool = False
