"""Defines the events that only procedures emit, as typed records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypedDict

from rooda.run.event_records import ABSENT, AgentOutcome, EndCause, Ended, Event, Limits, Outcome, Promise
from rooda.run.records import LoopKind

KIND = LoopKind(
    "ooda",
    name_field="procedure",
    name_variable="ROODA_PROCEDURE",
    is_family=False,
    moments={
        **{"failures": "stuck", "stuck": "stuck"},
        **{"agent": "needs_person", "prompt": "needs_person", "blocked": "needs_person"},
        "question": "needs_person",
    },
)


class Timing(TypedDict, total=False):
    count: int
    min: float
    max: float
    mean: float
    stddev: float


class GateFacts(TypedDict):
    name: str
    command: str
    origin: str


class Remembered(TypedDict):
    gates: Mapping[str, str]
    stuck: int
    blocked: int
    tree: str
    reason: str
    base: str


class LastIteration(TypedDict, total=False):
    ended: str
    exit_code: int
    limit: float
    agent_outcome: str
    message: str
    note: str
    promise: str
    gates_failed: str
    commit_refused: str


class RunStarted(Event, name="run.started", durable=True):
    iterations: int  # iterations that earlier sessions completed; 0 for a new run
    max_iterations: int  # the limit, 0 = none
    elapsed: float  # seconds that the agents of earlier sessions ran
    gates: list[GateFacts]  # the quality gates in force, each with the file and line that define it
    limits: Limits  # `cost` in dollars, `tokens`, `seconds`; 0 = no limit


class RunResumed(RunStarted, name="run.resumed", durable=True):
    pass


class BaselineStarted(Event, name="baseline.started"):
    """rooda runs the quality gates before the first iteration. The events of these gates follow, with iteration -1."""

    iteration: int  # -1


class BaselineEnded(Event, name="baseline.ended", durable=True):
    # each gate with its result: empty if it passed, else its verdict and a hash of its normalised output
    gates: Mapping[str, str]
    failed: list[str]  # names of the gates that are red
    passed: list[str]  # names of the gates that are green


class RecheckStarted(Event, name="recheck.started"):
    """A resumed run whose last iteration was cut off runs its gates once more, and then ends."""

    iteration: int  # the last iteration


class IterationStarted(Event, name="iteration.started"):
    iteration: int
    max_iterations: int  # the limit, 0 = none
    base: str = ABSENT  # only with `commit = "green"`: the work tree at the last commit by rooda, or at the start


class IterationEnded(Event, name="iteration.ended", durable=True):
    iteration: int
    max_iterations: int  # the limit, 0 = none
    phase: Literal["persist"]  # the part of the iteration
    elapsed: float  # seconds that the agent ran; gates are not included
    outcome: Outcome  # how the iteration ended
    exit_code: int  # the agent's exit code
    ended: Ended  # as in `agent.ended`
    limit: float  # as in `agent.ended`
    note: str  # as in `agent.ended`
    promise: Promise  # as in `agent.ended`
    # as in `agent.ended`, empty for a raw command
    agent_outcome: Annotated[AgentOutcome, ""]
    message: str  # as in `agent.ended`, empty for a raw command
    said: str  # the agent's last words, or the reason that it gave with FAILURE; empty if the iteration succeeded
    gates_failed: str  # as `summary` in `gates.ended`
    consecutive_failures: int  # number of failures in a row after this iteration
    failure_threshold: int  # number of consecutive failures at which the run aborts
    commit: str = ABSENT  # only if rooda committed the changes: the commit
    commit_refused: str = ABSENT  # only if git refused to commit the changes: why
    undone: str = ABSENT  # only if rooda undid the changes: the snapshot that keeps these changes
    # only if a setting needs it for a resume: `gates`, their results as in `baseline.ended`; `stuck`, the iterations in
    # a row without progress; `blocked`, the promises of FAILURE in a row; `tree`, the work tree before the first of
    # these promises; `reason`, the agent's reason in the last one; `base`, the work tree at the last commit by rooda
    remembered: Remembered = ABSENT


EndReason = Annotated[
    str,
    "max-iterations",
    "success-signal",
    "failures",
    "blocked",
    "stuck",
    "prompt",
    "agent",
    "limit",
    "question",
    "signal",
]


class RunEnded(Event, name="run.ended", durable=True):
    # the rule that ended the loop
    reason: EndReason
    status: Annotated[str, "completed", "aborted", "interrupted"]  # as in the state file
    exit_code: int  # rooda's exit code
    signal: int  # the number of the first signal that was received, else 0
    note: str  # what was wrong with the prompt, what the agent's CLI said or asked, or which limit was reached
    iterations: int  # iterations completed, earlier sessions included
    max_iterations: int  # the limit, 0 = none
    consecutive_failures: int  # number of failures in a row at the end
    elapsed: float  # seconds that the agents of earlier sessions ran, plus this session's wall time
    timing: Timing  # seconds that each agent ran: `count`, `min`, `max`, `mean`, `stddev` if two or more; empty if none
    cause: EndCause = ABSENT
    # only if the run ended at its iteration limit with exit code 1: the last iteration, with fields of
    # `iteration.ended`; if the log has no record of it, only `gates_failed`, the gates that were red before the first
    # iteration
    last: LastIteration = ABSENT
    blocked: int = ABSENT  # only if the reason is `blocked`: number of promises of FAILURE in a row
    stuck: int = ABSENT  # only if the reason is `stuck`: number of iterations in a row without progress
    question: str = ABSENT  # only if the reason is `question`: what the agent asks
    red: list[str] = ABSENT  # only if the reason is `stuck`: names of the gates that are red
