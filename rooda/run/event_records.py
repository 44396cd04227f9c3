"""The events that every kind of loop may emit, as typed records.

The schema and docs/events.md are made from these records: a class is an event, its docstring and the comments of its
fields are what readers are told. A field with the default ABSENT may be left out of the line.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, TypedDict, dataclass_transform

from rooda.run.setup import Budget

ABSENT: Any = None  # the default of a field that may be left out


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Event(SimpleNamespace):
    """Base of all events. A plain class that mypy checks as a dataclass; a NamedTuple costs ten times its import.

    The fields stand in the line in the order in which they are given.
    """

    NAME: ClassVar[str]
    DURABLE: ClassVar[bool]  # True: synced to disk while the loop waits for its agent

    def __init_subclass__(cls, name: str, durable: bool = False) -> None:
        cls.NAME, cls.DURABLE = name, durable

    @property
    def facts(self) -> dict[str, Any]:
        """The fields that were given; not a copy."""
        return self.__dict__


Emit: TypeAlias = Callable[[Event], None]

Outcome = Annotated[str, "success", "failure", "interrupted"]
Ended = Annotated[str, "exit", "timeout", "idle", "interrupted", "not-started"]
Promise = Annotated[str, "SUCCESS", "FAILURE", ""]
QuestionGate = Annotated[str, "G1", "G2", "G3", "tests", "observed", "missing", "keep", "intent", "more", "checks"]


class Limits(TypedDict):
    cost: float
    tokens: int
    seconds: float


def limits_of(budget: Budget) -> Limits:
    return {"cost": budget.cost, "tokens": budget.tokens, "seconds": budget.seconds}


class Tokens(TypedDict):
    input: int
    output: int
    cached: int
    written: int


class _Kind(TypedDict):
    kind: str


class EndCause(_Kind, total=False):
    used: float
    limit: float
    unknown: int
    account: str
    until: str


class SessionEnd(Event, name=""):
    """What `run.ended` of every kind of loop has besides."""

    # how long this session ran, without the time in which it stood still; `--max-duration` adds up all of a run
    ran: float
    stopped_by: Literal["person"] = ABSENT  # only of a run that `rooda stop` has ended: who
    stopped_because: str = ABSENT  # only of a run that `rooda stop` has ended: what `--reason` said, or empty
    refused: str = ABSENT  # only where the last agent call was refused for good: its `outcome`, or `not-started`
    # only of a run that a limit or a request from another terminal ended: `kind` is `cost`, `tokens` or `time`, with
    # `used` and `limit` in dollars, tokens or seconds, and `unknown`, calls of unknown cost, if there are any;
    # `account`, with the `account` and `until` when it may be asked again; or, of a goal, `pause` or `cancel`
    cause: EndCause = ABSENT


class PromptAssembled(Event, name="prompt.assembled"):
    phase: Literal["assemble"]  # the part of the iteration
    elapsed: float  # reading, putting together and counting
    path: str  # the file that holds the prompt
    sha256: str  # of its bytes
    size: int  # its bytes
    tokens: int  # its tokens in the encoding of `token_encoding`
    exact: bool  # false: `tokens` is an estimate, a quarter of the characters
    budget: int  # `token_budget`, 0 = no check


class BudgetExceeded(Event, name="budget.exceeded"):
    """The prompt has more tokens than the budget; the call is made all the same."""

    phase: Literal["budget"]  # the part of the iteration
    tokens: int  # as in `prompt.assembled`
    exact: bool  # as in `prompt.assembled`
    budget: int  # what it is more than


class AgentStarted(Event, name="agent.started"):
    phase: Literal["execute"]  # the part of the iteration
    call: str  # what `ROODA_CALL` says: `iteration`, `plan`, `step`, …
    # the file that stdout and stderr go to; of a raw command of a reflex loop, flow or goal only stdout
    transcript: str
    agent: str  # its name in the settings, empty for a raw command
    output: str  # how its transcript is read: `text`, `claude`, …
    model: str  # the one it is asked for, empty if it has its own choice


class AgentEnded(Event, name="agent.ended"):
    phase: Literal["execute"]  # the part of the iteration
    outcome: Outcome  # `success`: it exited with 0
    exit_code: int  # as a shell would say it: 128+n for signal n, 127 not found, 126 not executable
    ended: Ended  # how
    limit: float  # the timeout that ended it, else 0
    seconds: float  # how long it ran, exactly
    elapsed: float  # the same, rounded to milliseconds
    ran: float  # how long the session has run so far, without the time in which it stood still
    transcript: str  # the file that holds its output
    output: str  # the form of the transcript, as in `agent.started`
    size: int  # bytes of output
    # true: a procedure's raw command printed more than `max_output_buffer`; only the end was searched for signals
    truncated: bool
    promise: Promise  # its signal, if promise signals are on
    note: str  # why it could not be started, or could not be ended
    swept: int  # how many processes it left behind that rooda ended
    # only of an agent whose transcript is read: what its CLI said of the call
    agent_outcome: Annotated[
        str,
        "ok",
        "agent_error",
        "auth",
        "rate_limit",
        "usage_limit",
        "context_overflow",
        "permission_denied",
        "config",
        "timeout",
        "killed",
    ] = ABSENT
    message: str = ABSENT  # only of an agent whose transcript is read: its CLI's own sentence about the failure
    retryable: bool = ABSENT  # only of an agent whose transcript is read: the same call may go well a little later
    # only of an agent whose transcript is read: when a usage limit ends, seconds since 1970, or null
    reset_at: float | None = ABSENT
    # only of an agent whose transcript is read: tokens `input`, `output`, `cached`, `written`, or null
    usage: Tokens | None = ABSENT
    cost: float | None = ABSENT  # only of an agent whose transcript is read: dollars, or null for unknown
    # only of an agent whose transcript is read: `reported` by its CLI, or `computed` from tokens and prices
    cost_source: Annotated[str, "reported", "computed", "unknown"] = ABSENT
    model: str = ABSENT  # only of an agent whose transcript is read: as its CLI names it
    turns: int = ABSENT  # only of an agent whose transcript is read: answers of the model
    tools: int = ABSENT  # only of an agent whose transcript is read: tool calls
    edited: int = ABSENT  # only of an agent whose transcript is read: files it edited
    denied: int = ABSENT  # only of an agent whose transcript is read: tool calls that were denied
    command: str = ABSENT  # only of a call that failed: the command line
    head: str = ABSENT  # only of a call that failed: the first 500 characters of its output
    tail: str = ABSENT  # only of a call that failed: the last 500


class OutputTruncated(Event, name="output.truncated"):
    size: int  # bytes of output
    limit: int  # `max_output_buffer`


class Resting(Event, name="resting"):
    """The loop waits: for a usage limit to end, or after a fault of the service that may pass."""

    seconds: float  # how long
    until: str  # the time at which it goes on, UTC
    account: str  # whose usage limit it is, empty after a fault of the service


class Rested(Event, name="rested"):
    """The wait is over, or a signal ended it."""


class GateStarted(Event, name="gate.started"):
    gate: str  # its name


class GateEnded(Event, name="gate.ended"):
    gate: str  # its name
    elapsed: float  # how long it ran
    verdict: str  # `pass`, `exit 1`, `timeout 300s`
    output: str  # the file that it printed to


class GatesEnded(Event, name="gates.ended"):
    phase: Literal["gates"]  # the part of the iteration
    elapsed: float  # all gates together
    outcome: Outcome  # of all of them
    summary: str  # the failed ones: `tests (exit 1), lint (timeout 300s)`


class StateSaved(Event, name="state.saved"):
    phase: Literal["persist"]  # the part of the iteration
    elapsed: float = ABSENT  # only of a procedure: how long the write took


class StateUnsaved(Event, name="state.unsaved"):
    """It stands in the place of `state.saved` where the file can't be written."""

    path: str  # the state file
    why: str  # what the system said


class SnapshotTaken(Event, name="snapshot.taken"):
    """Only with `safety = "snapshot"`: the work tree was saved; see [the safety net](safety.md)."""

    iteration: int
    moment: Annotated[str, "before", "after"]  # the iteration
    number: int  # 1, 2, 3, … within the run
    ref: str  # its name in git
    commit: str  # its commit


class QuestionAsked(Event, name="question.asked"):
    """A person is asked."""

    gate: QuestionGate  # what it is about; `checks` in a reflex loop, all others in a goal
    text: str  # the question
    lines: list[str]  # what stands above it
    hint: str  # `[Y/n]`, `[y/N]`, or empty for a free answer
    attended: bool  # is there a terminal?
    answer: str  # the option that answered it, else empty


class QuestionAnswered(Event, name="question.answered"):
    gate: QuestionGate  # what it is about; `checks` in a reflex loop, all others in a goal
    answer: str | None  # `y`, `n`, the words, or null: nobody answered


class Problem(Event, name="problem"):
    """It may come anywhere."""

    text: str  # a sentence about something that did not stop the run
