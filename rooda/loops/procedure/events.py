"""The event types of a procedure's loop."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from rooda.run.event_records import ABSENT, AgentOutcome, EndCause, Ended, Event, Limits, Outcome, Promise
from rooda.run.records import LoopKind

KIND = LoopKind(
    "ooda",
    name_field="procedure",
    name_variable="ROODA_PROCEDURE",
    is_family=False,
    moments={"failures": "stuck", "agent": "needs_person", "prompt": "needs_person"},
)


class Timing(TypedDict, total=False):
    count: int
    min: float
    max: float
    mean: float
    stddev: float


class RunStarted(Event, name="run.started", durable=True):
    iterations: int  # iterations completed by earlier sessions, 0 at a start
    max_iterations: int  # the limit, 0 = none
    elapsed: float  # run time of earlier sessions
    gates: list[str]  # names of the quality gates
    limits: Limits  # `cost` in dollars, `tokens`, `seconds`; 0 = no limit


class RunResumed(RunStarted, name="run.resumed", durable=True):
    pass


class IterationStarted(Event, name="iteration.started"):
    iteration: int
    max_iterations: int  # the limit, 0 = none


class IterationEnded(Event, name="iteration.ended", durable=True):
    iteration: int
    max_iterations: int  # the limit, 0 = none
    phase: Literal["persist"]  # the part of the iteration
    elapsed: float  # the agent's run time, gates not included
    outcome: Outcome  # how the iteration ended
    exit_code: int  # the agent's exit code
    ended: Ended  # as in `agent.ended`
    limit: float  # as in `agent.ended`
    note: str  # as in `agent.ended`
    promise: Promise  # as in `agent.ended`
    # as in `agent.ended`, empty for a raw command
    agent_outcome: Annotated[AgentOutcome, ""]
    message: str  # as in `agent.ended`, empty for a raw command
    said: str  # the agent's last words, or the reason it gave with FAILURE; empty if the iteration succeeded
    gates_failed: str  # as `summary` in `gates.ended`
    consecutive_failures: int  # after this iteration
    failure_threshold: int  # at which the run aborts


class RunEnded(Event, name="run.ended", durable=True):
    # the rule that ended the loop
    reason: Annotated[str, "max-iterations", "success-signal", "failures", "prompt", "agent", "limit", "signal"]
    status: Annotated[str, "completed", "aborted", "interrupted"]  # as in the state file
    exit_code: int  # rooda's exit code
    signal: int  # the number of the first signal that was received, else 0
    note: str  # what was wrong with the prompt, what the agent's CLI said, or which limit was reached
    iterations: int  # iterations completed, earlier sessions included
    max_iterations: int  # the limit, 0 = none
    consecutive_failures: int  # at the end
    elapsed: float  # run time of earlier sessions, and this session's wall time
    timing: Timing  # the agent's run times: `count`, `min`, `max`, `mean`, `stddev` if two or more; empty if none
    cause: EndCause = ABSENT
