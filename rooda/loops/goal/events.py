"""The events of a goal, as typed records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypedDict

from rooda.run.event_records import ABSENT, EndCause, Event
from rooda.run.records import LoopKind

Shape = Annotated[str, "Tool", "Colleague", "Intent"]
Reversibility = Annotated[str, "2A", "2B", "1"]

_NEEDS_USER = ("files", "mustNot", "shape", "observation", "tests", "untold", "G1", "G2", "G3")
KIND = LoopKind(
    "goal",
    moments={
        **dict.fromkeys(("stuck", "error", "edits"), "stuck"),
        **dict.fromkeys(_NEEDS_USER, "needs_person"),
        "budget": "budget",
    },
)


class Score(TypedDict):
    score: int
    quote: str
    note: str


class CriterionMethod(TypedDict):
    name: str
    method: str


class GoalScored(Event, name="goal.scored"):
    scores: Mapping[str, Score]  # by dimension: `score`, the `quote` for it, and a `note` if points were removed
    total: int  # their sum
    shape: Shape  # what the total means
    by: Annotated[str, "plan", "file", "person", "offline"]  # who scored


class GoalPlanned(Event, name="goal.planned"):
    reversibility: Reversibility  # how hard the work is to undo
    criteria: list[CriterionMethod]  # `name` and `method` of each
    steps: list[str]  # names of the steps
    gate: str  # the kind of evidence that the workflow needs
    evidence: str  # that evidence
    must_not: list[str]  # what must never become true
    notes: list[str]  # remarks on the plan for the user


class GoalPrechecked(Event, name="goal.prechecked"):
    """Only if the work is hard to undo (type 1)."""

    amendments: list[str]  # for each misreading, words that rule it out


class GoalDisclosed(Event, name="goal.disclosed"):
    text: str  # where the state is written; at a terminal rooda asks instead


class RunStarted(Event, name="run.started", durable=True):
    shape: Shape  # as in `goal.scored`
    total: int  # as in `goal.scored`
    workflow: Annotated[str, "A", "B", "C"]  # the workflow
    steps: int  # number of steps
    budget: str  # as displayed, such as `$25`
    max_iterations: int  # the limit
    edits: str  # how edits of files are counted
    already: list[str]  # criteria that held before any work
    blind: bool  # true if the cost of calls is unknown
    type: Reversibility  # as `reversibility` in `goal.planned`
    git: bool  # true if there is a repository for checkpoints


class RunResumed(Event, name="run.resumed", durable=True):
    spec: str  # the specification
    done: int  # steps accepted
    total: int  # steps
    iterations: int  # iterations closed by earlier sessions
    unmet: list[str]  # names of the unmet criteria
    next: str  # the next step
    notes: list[str]  # remarks for the user


class IterationStarted(Event, name="iteration.started"):
    iteration: int
    max_iterations: int  # the limit
    cost: str  # so far, as displayed: `$1.20`, `~$1.20` or `$?`
    budget: str  # as displayed
    step: str  # the current step


class CriterionVerified(Event, name="criterion.verified"):
    """rooda ran the criterion's command."""

    criterion: str  # name of the criterion
    verdict: Annotated[str, "met", "not met"]  # result
    evidence: str  # file with the command's output, relative to the workspace
    elapsed: float  # how long the command ran


class IterationEnded(Event, name="iteration.ended", durable=True):
    iteration: int
    step: str  # the step of this iteration
    accepted: bool  # true if the step is done
    done: int  # steps accepted
    total: int  # steps
    next_step: str  # the next one, or `none`
    exit_signal: bool  # as in the state file
    criteria: Mapping[str, bool]  # by name: true if met
    stuck: int  # as `stuckCount` in the state file
    next: str  # the next action
    outcome: Annotated[str, "success", "failure"]  # `success`: the step was accepted
    elapsed: float  # the agent's run time
    cost: str  # so far, as displayed: `$1.20`, `~$1.20` or `$?`
    claimed: bool  # true if the agent says that the goal is complete
    edits: Mapping[str, int]  # number of writes of each file; a lower bound if the agent doesn't report them


class RunEnded(Event, name="run.ended", durable=True):
    # `completed`, `failed`, or why the goal paused. With `unplanned` (it ended before there was a plan) and `files`
    # (its files can't be read or written) only the first four fields are certain
    reason: Annotated[
        str,
        "completed",
        "failed",
        "unplanned",
        "files",
        "stuck",
        "error",
        "edits",
        "budget",
        "limit",
        "mustNot",
        "shape",
        "observation",
        "tests",
        "untold",
        "interrupted",
        "asked",
        "G1",
        "G2",
        "G3",
        "shared limit",
    ]
    note: str  # the reason in words
    status: Annotated[str, "completed", "paused", "failed", "in_progress"]  # as in the state file
    exit_code: int  # of rooda
    signal: int = ABSENT  # number of the first signal received, else 0
    iterations: int = ABSENT  # iterations closed, earlier sessions included
    max_iterations: int = ABSENT  # the limit
    cost: str = ABSENT  # as displayed: `$1.20`, `~$1.20` or `$?`
    budget: str = ABSENT  # as displayed
    allowance: str = ABSENT  # dollars that one continue adds
    done: int = ABSENT  # steps accepted
    remaining: int = ABSENT  # steps left
    criteria: Mapping[str, bool] = ABSENT  # by name: true if met
    claimed: list[str] = ABSENT  # those that only the agent's word supports
    verdict: Annotated[str, "SHIP", "MONITOR", "RESEARCH"] = ABSENT  # for all criteria together
    verified: list[str] = ABSENT  # types by which criteria were verified
    confidence: str = ABSENT  # as the agent states it
    type: Reversibility = ABSENT  # as `reversibility` in `goal.planned`
    points: int = ABSENT  # of the plan; 0 if it has none
    alt: str = ABSENT  # another approach
    risk: str = ABSENT  # the assumption that matters most
    tests_changed: list[str] = ABSENT  # changed files that verify the work
    cause: EndCause = ABSENT
