"""Defines the events that only reflex loops emit, as typed records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypedDict

from rooda.run.event_records import ABSENT, EndCause, Event, Limits
from rooda.run.records import LoopKind, turn_of

Level = Annotated[str, "A", "B"]


def _turn_of(event: str, facts: Mapping[str, Any]) -> tuple[bool, int | None]:
    return (False, facts["iteration"] + 1) if event == "reflex.phase" else turn_of(event, facts)


KIND = LoopKind(
    "reflex",
    moments={"stagnation": "stuck", "phase_error": "stuck", "files": "needs_person", "gone": "needs_person"},
    turn_events=("reflex.phase",),
    turn_of=_turn_of,
    turn_ends=("reflex.block",),
    turn_part="reflex.phase",
    part_ends=("reflex.phase",),
)


class Distance(TypedDict):
    threshold: float
    gap: float
    blocking: list[str]
    passed_rules: int
    total_rules: int


class RunStarted(Event, name="run.started", durable=True):
    number: int  # the iteration, from 1
    level: Level  # phase level
    step: str  # the next phase; as `current_step` in `run.json`
    iterations: int  # iterations completed before this session
    max_iterations: int  # the limit
    limits: Limits  # `cost` in dollars, `tokens`, `seconds`; 0 = no limit


class RunResumed(RunStarted, name="run.resumed", durable=True):
    pass


class ReflexPhase(Event, name="reflex.phase"):
    """rooda calls an agent for a phase, or two agents for two phases in parallel."""

    iteration: int
    steps: list[str]  # the phases: one, or two in parallel
    level: Level  # phase level
    attempt: int  # 1 or 2


class ReflexBreach(Event, name="reflex.breach"):
    """An agent's answer violated its phase's contract."""

    step: str  # the phase
    attempt: int  # 1 or 2
    error: str  # what is wrong with the answer
    last: bool  # true: it was the last attempt, so the loop ends


class ReflexChecks(Event, name="reflex.checks"):
    """An agent wrote checks that are commands."""

    commands: list[str]  # the commands of executable checks
    way: Annotated[str, "run", "skip"]  # what rooda does with the commands


class ReflexRestored(Event, name="reflex.restored"):
    """Something changed the artifact while an agent worked. rooda restored the artifact."""

    artifact: str  # the artifact's path, relative to the workspace


class ReflexBlock(Event, name="reflex.block"):
    """The summary of an evaluation. If CRITIQUE follows the evaluation, the event is emitted after CRITIQUE."""

    iteration: int
    number: int  # the iteration, from 1
    max_iterations: int  # the limit
    level: Level  # phase level
    score: str  # two decimals, as text
    passed: bool  # true: the score reached the threshold and no rule of severity `fail` failed
    plan: str  # the plan's steps on one line
    hash: str  # first 8 characters of the artifact's hash
    changed: list[str] | None  # headings of changed sections; null: no earlier artifact
    failed: list[str]  # ids of failed rules of severity `fail`
    warnings: list[str]  # ids of failed rules of other severities
    artifact: str  # the artifact's path, relative to the workspace
    fixes: list[list[str]]  # pairs of rule id and what to do


class ReflexBoundary(Event, name="reflex.boundary"):
    """All state is on disk: a good moment to interrupt the loop."""

    switched: bool  # true: the loop has just passed level A and switched to level B


class RunEnded(Event, name="run.ended", durable=True):
    status: Annotated[str, "completed", "stopped", "failed", "running"]  # `running`: the loop can be resumed
    # why the session ended: `stop_reason` if the loop ended; `signal`, `limit`, `error` or `files` if the loop can
    # be resumed; `gone` if the loop's files were deleted
    reason: str
    note: str  # the reason in words
    stop_reason: str  # as `stop.reason` in `run.json`
    exit_code: int  # rooda's exit code
    number: int  # the iteration
    max_iterations: int  # the limit
    level: Level  # phase level
    final_score: str | None  # score of the current artifact, two decimals; null: the artifact was not evaluated
    last_evaluated_score: str | None  # score of the last evaluated artifact, if `final_score` is null
    # only after `iteration_limit`: `threshold`, `gap`, `blocking` rules, `passed_rules`, `total_rules`
    distance: Distance = ABSENT
    error: str  # why a phase failed for good
    elsewhere: bool  # true: another command ended the loop
    artifact: str  # the artifact's path, relative to the workspace
    cause: EndCause = ABSENT
