"""Defines the events that every kind of loop may emit, as typed records.

The schema and docs/events.md are generated from these records: a class is an event; its docstring and the comments of
its fields are the descriptions. A field with the default ABSENT may be missing in the line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType, SimpleNamespace
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, TypedDict, dataclass_transform

from rooda.run.setup import Budget

ABSENT: Any = None  # the default of a field that may be missing


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Event(SimpleNamespace):
    """Base class of all events. mypy checks it as a dataclass; NamedTuples would take ten times as long to import.

    An event's line has the fields in the order in which they are given.
    """

    NAME: ClassVar[str]
    DURABLE: ClassVar[bool]  # True: synced to disk while the loop waits for its agent

    def __init_subclass__(cls, name: str, durable: bool = False) -> None:
        cls.NAME, cls.DURABLE = name, durable

    @property
    def facts(self) -> dict[str, Any]:
        """The event's fields with their values: the dictionary itself, not a copy."""
        return self.__dict__


TURN = frozenset(("iteration", "display"))  # fields that every event of an iteration has


def required_fields(module: ModuleType) -> dict[str, frozenset[str]]:
    """Return the fields that an event always has, for each event that a module defines, by the event's name."""
    found = {}
    for kind in vars(module).values():
        if isinstance(kind, type) and issubclass(kind, Event) and kind is not Event:
            above = kind.__mro__[: kind.__mro__.index(Event)]
            names = (name for each in above for name in vars(each).get("__annotations__", ()))
            always = frozenset(name for name in names if not hasattr(kind, name))
            found[kind.NAME] = always if kind.NAME.startswith("run.") else TURN | always
    return found


Emit: TypeAlias = Callable[[Event], None]

Outcome = Annotated[str, "success", "failure", "interrupted"]
Ended = Annotated[str, "exit", "timeout", "idle", "resources", "interrupted", "not-started"]
Promise = Annotated[str, "SUCCESS", "FAILURE", ""]
AgentOutcome = Annotated[  # the outcomes of agents/outcome.py
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
    "resources",
    "killed",
]
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
    budget: str
    reserved: float
    problem: str


class Summary(TypedDict, total=False):
    iterations: int
    failed: int
    cut_off: int
    calls: int
    unknown: int
    cost: float
    tokens: int
    gates: Mapping[str, str]
    red_before: list[str]
    sandbox_off: str
    restored: list[str]
    refused: list[str]
    files: int
    added: int
    removed: int
    commits: int


class SessionEnd(Event, name=""):
    """The fields of `run.ended` that every kind of loop has."""

    # run time of this session, excluding time for which it was suspended; `--max-duration` counts all sessions of a run
    ran: float
    stopped_by: Literal["person"] = ABSENT  # only if `rooda stop` ended the run: who stopped the run
    stopped_because: str = ABSENT  # only if `rooda stop` ended the run: the text of `--reason`, or empty
    refused: str = ABSENT  # only if the last agent call was refused permanently: its `outcome`, or `not-started`
    # only if a limit or a request from another terminal ended the run: `kind` is `cost`, `tokens` or `time`, with
    # `used` and `limit` in dollars, tokens or seconds, and `unknown`, the number of calls of unknown cost, if any;
    # or `account`, with the `account` and the time `until` which it can't be used; or, for a goal, `pause` or `cancel`.
    # `budget` is `day`, `project` or `agent` if a budget of all runs ended the run; with `reserved`, the dollars
    # reserved for calls that were running then, the `account` if `budget` is `agent`, and the `problem` if rooda could
    # not check the budget
    cause: EndCause = ABSENT
    # the state of the run, in the same words for all kinds of loops; see [states](ooda.md#states)
    state: Annotated[str, "paused", "parked", "interrupted", "completed", "failed", "stopped"]
    # over all sessions of the run: the number of `iterations`, and how many of them `failed` or were `cut_off`; the
    # number of `calls`, with `cost` in dollars and `tokens`, and how many calls had `unknown` cost; the last verdict of
    # each of the `gates`, and the gates that were `red_before` the first iteration, if there was a baseline; in a git
    # repository `files` and lines `added` and `removed` since the start of the run, and `commits`; `sandbox_off`, why
    # `auto` found no sandbox; the guarded files `restored` and the hosts `refused`
    summary: Summary
    mac: str = ABSENT  # only if the user has a key: signature of all lines up to this one, without its `mac`


class PromptAssembled(Event, name="prompt.assembled"):
    phase: Literal["assemble"]  # part of the iteration
    elapsed: float  # time to read and assemble the prompt and to count its tokens
    path: str  # the file that holds the prompt
    sha256: str  # SHA-256 of the file
    size: int  # size in bytes
    tokens: int  # number of tokens in the encoding `token_encoding`
    exact: bool  # false: `tokens` is an estimate, a quarter of the characters
    budget: int  # `token_budget`, 0 = no check


class BudgetExceeded(Event, name="budget.exceeded"):
    """The prompt has more tokens than the budget. The agent is called anyway."""

    phase: Literal["budget"]  # part of the iteration
    tokens: int  # as in `prompt.assembled`
    exact: bool  # as in `prompt.assembled`
    budget: int  # `token_budget`, which the prompt exceeds


class AgentStarted(Event, name="agent.started"):
    phase: Literal["execute"]  # part of the iteration
    call: str  # as in `ROODA_CALL`: `iteration`, `plan`, `step`, …
    # the file with stdout and stderr; for a raw command (`ai_cmd`) of a reflex loop, flow or goal with stdout only
    transcript: str
    agent: str  # name of the agent in the settings, empty for a raw command (`ai_cmd`)
    output: str  # format of the transcript: `text`, `claude`, …
    model: str  # the model requested, empty if the CLI chooses


class AgentEnded(Event, name="agent.ended"):
    phase: Literal["execute"]  # part of the iteration
    outcome: Outcome  # `success` if the agent exited with 0
    exit_code: int  # as a shell reports it: 128+n for signal n, 127 not found, 126 not executable
    ended: Ended  # how the process ended
    limit: float  # the timeout that ended the process, else 0
    seconds: float  # run time, to the microsecond
    elapsed: float  # run time, rounded to milliseconds
    ran: float  # run time of the session so far, excluding time for which it was suspended
    transcript: str  # the file with the agent's output
    output: str  # format of the transcript, as in `agent.started`
    size: int  # bytes of output
    # true: a procedure's raw command printed more than `max_output_buffer`; only the end was searched for signals
    truncated: bool
    promise: Promise  # the agent's promise signal, if promise signals are on
    question: str = ABSENT  # only if the agent asks something in a line `<question>…</question>` of its final message
    note: str  # why rooda could not start or end the agent
    swept: int  # number of processes that the agent left running and rooda ended
    # only if the transcript is read: what the CLI reported about the call
    agent_outcome: AgentOutcome = ABSENT
    message: str = ABSENT  # only if the transcript is read: the CLI's own error message
    retryable: bool = ABSENT  # only if the transcript is read: true if the same call may succeed later
    # only if the transcript is read: when the usage limit ends, in seconds since 1970, or null
    reset_at: float | None = ABSENT
    # only if the transcript is read: tokens `input`, `output`, `cached`, `written`, or null
    usage: Tokens | None = ABSENT
    # dollars, or null for unknown; for a raw command only with `[budget] unknown_call`
    cost: float | None = ABSENT
    # `reported` by the CLI, `computed` from tokens and prices, or `assumed` because of `[budget] unknown_call`
    cost_source: Annotated[str, "reported", "computed", "assumed", "unknown"] = ABSENT
    lost: bool = ABSENT  # true: the transcript or this log disappeared during the call, so the call's usage is unknown
    model: str = ABSENT  # only if the transcript is read: the model as the CLI names it
    turns: int = ABSENT  # only if the transcript is read: number of answers of the model
    tools: int = ABSENT  # only if the transcript is read: number of tool calls
    edited: int = ABSENT  # only if the transcript is read: number of edited files
    denied: int = ABSENT  # only if the transcript is read: number of denied tool calls
    unknown_records: int = ABSENT  # only if the transcript is read: records of types that rooda does not know
    command: str = ABSENT  # only if the call failed: the command line
    head: str = ABSENT  # only if the call failed: the first 500 characters of the agent's output
    tail: str = ABSENT  # only if the call failed: the last 500 characters of the agent's output
    # only if the call failed or the agent signaled FAILURE: the reason that the agent gave, or its last words
    said: str = ABSENT


class AgentSilent(Event, name="agent.silent"):
    """The agent has printed nothing for ten minutes. Some CLIs retry for hours without a word."""

    since: str  # when the agent printed for the last time or was started, UTC
    log: str  # the CLI's own log, which may give the reason; empty if there is none that rooda knows


class OutputTruncated(Event, name="output.truncated"):
    size: int  # bytes of output
    limit: int  # `max_output_buffer`


class TranscriptReplaced(Event, name="transcript.replaced"):
    """The transcript of a call was deleted or replaced while the call ran. rooda read the file that it had opened."""

    transcript: str  # path of the transcript
    now: str  # what is at this path now: missing, a pipe, a link, a folder, another file, a device or socket


class Resting(Event, name="resting"):
    """The loop waits until a usage limit ends, or before it retries after a transient error of the service."""

    seconds: float  # length of the wait
    until: str  # the time at which the loop continues, UTC
    account: str  # account with the usage limit, empty after an error of the service


class Rested(Event, name="rested"):
    """The wait is over, or a signal ended it."""


class GateStarted(Event, name="gate.started"):
    gate: str  # name of the gate


class GateEnded(Event, name="gate.ended"):
    gate: str  # name of the gate
    elapsed: float  # run time
    verdict: str  # `pass`, `exit 1`, `timeout 300s`, `command not found`, `not there yet`
    output: str  # the file with the gate's output; empty if the gate passed and printed nothing
    said: str = ABSENT  # only if the gate failed: the last meaningful line of its output, or empty


class GatesEnded(Event, name="gates.ended"):
    phase: Literal["gates"]  # part of the iteration
    elapsed: float  # run time of all gates together
    outcome: Outcome  # outcome of all gates together
    summary: str  # the failed gates: `tests (exit 1), lint (timeout 300s)`


class WorkBegan(Event, name="work.began"):
    """The work tree at the start of the run. Only in a git repository with a commit."""

    head: str  # commit of HEAD
    dirty: Mapping[str, list[int]]  # each uncommitted file with its size in bytes and its time of change in nanoseconds


class RunUsed(Event, name="run.used"):
    """What the agents of the run's earlier sessions used. Emitted at a resume."""

    calls: int  # number of calls
    cost: float  # dollars, without the calls of unknown cost
    unknown: int  # number of calls of unknown cost
    tokens: int  # number of tokens


class StateSaved(Event, name="state.saved"):
    phase: Literal["persist"]  # part of the iteration
    elapsed: float = ABSENT  # only for a procedure: duration of the write


class StateUnsaved(Event, name="state.unsaved"):
    """Emitted instead of `state.saved` if the state file can't be written."""

    path: str  # the state file
    why: str  # the system's error message


class SnapshotTaken(Event, name="snapshot.taken"):
    """A snapshot of the work tree was taken. Only with `safety = "snapshot"`; see [the safety net](safety.md)."""

    iteration: int
    # taken before or after the iteration; `undo`: the snapshot keeps the changes that rooda undoes next (`on_red`)
    moment: Annotated[str, "before", "after", "undo"]
    number: int  # number of the snapshot in the run: 1, 2, 3, …
    ref: str  # git ref of the snapshot
    commit: str  # commit of the snapshot


class SnapshotOmitted(Event, name="snapshot.omitted"):
    """rooda left private files, which no other user may read, out of the snapshots. See [the safety net](safety.md)."""

    paths: list[str]  # relative to the repository; each file is reported once in a session


class FilesRestored(Event, name="files.restored"):
    """An agent or a gate changed guarded files, which people or tools execute. rooda restored all that it could."""

    paths: list[str]  # relative to the top of the repository, else to the workspace
    kept: str  # the folder in which rooda keeps the changed files


class NetworkRefused(Event, name="network.refused"):
    """A process in the sandbox asked for a host that the sandbox forbids. Emitted once for each host in a session."""

    host: str  # host and port


class SandboxChosen(Event, name="sandbox.chosen"):
    """The settings ask for a sandbox for the session's agents or commands."""

    # the sandbox in which agents and commands run; `off`: the setting is `auto`, and no sandbox works here
    mode: Annotated[str, "off", "workspace", "read-only"]
    why: str  # the reason why the agent, or everything, runs without a sandbox; empty if nothing does


class QuestionAsked(Event, name="question.asked"):
    """rooda asks the user a question."""

    # the subject of the question; `checks` in a reflex loop, all others in a goal: see [goal.md](goal.md#pauses)
    gate: QuestionGate
    text: str  # the question
    lines: list[str]  # the lines shown above the question
    hint: str  # `[Y/n]`, `[y/N]`, or empty for a free answer
    attended: bool  # true: rooda runs at a terminal
    answer: str  # the answer that an option gives, else empty


class QuestionAnswered(Event, name="question.answered"):
    # the subject of the question; `checks` in a reflex loop, all others in a goal: see [goal.md](goal.md#pauses)
    gate: QuestionGate
    answer: str | None  # `y`, `n`, the text entered, or null if there was no answer


class Stopping(Event, name="stopping"):
    """A signal arrived while agents or commands were running. rooda ends these and all processes below them."""

    signal: int  # number of the first signal
    grace: float  # seconds until rooda kills these processes
    what: Annotated[str, "agent", "command"]  # what was running


class NotesGiven(Event, name="notes.given"):
    """The prompt contains notes from the user (`rooda say`)."""

    notes: list[str]  # the texts, oldest first


class LimitsChanged(Event, name="limits.changed"):
    """The user changed limits of the running loop (`rooda set`); 0 = no limit."""

    iterations: int = ABSENT  # the new maximum of iterations
    cost: float = ABSENT  # the new cost limit, in dollars
    tokens: int = ABSENT  # the new limit of tokens
    seconds: float = ABSENT  # the new limit of the run time


class Problem(Event, name="problem"):
    """A problem that did not stop the run. May be emitted at any time."""

    text: str  # the problem in one sentence
