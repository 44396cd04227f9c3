"""Defines the events that only goals emit, as typed records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypedDict

from rooda.run.event_records import ABSENT, EndCause, Event
from rooda.run.records import LoopKind

Shape = Annotated[str, "Tool", "Colleague", "Intent"]
Reversibility = Annotated[str, "2A", "2B", "1"]

_NEEDS_USER = ("files", "mustNot", "shape", "observation", "tests", "untold", "question", "G1", "G2", "G3")
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
    scores: Mapping[
        str, Score
    ]  # per dimension: `score`, the `quote` that earned it, and a `note` if points were removed
    total: int  # sum of the scores
    shape: Shape  # the goal's shape, from the total or `--shape`
    by: Annotated[str, "plan", "file", "person", "offline"]  # source of the scores


class GoalPlanned(Event, name="goal.planned"):
    reversibility: Reversibility  # how hard the work is to undo: 2A (easy), 2B or 1 (hard)
    criteria: list[CriterionMethod]  # `name` and `method` of each criterion
    steps: list[str]  # names of the steps
    gate: str  # the kind of evidence that the workflow needs
    evidence: str  # the evidence given for the workflow's gate
    must_not: list[str]  # what must never become true
    notes: list[str]  # remarks on the plan for the user


class GoalPrechecked(Event, name="goal.prechecked"):
    """The adversarial pre-check ended. It runs only if the work is hard to undo (type 1) or with `--high-stakes`."""

    amendments: list[str]  # additions to the specification, each of which rules out one misreading


class GoalDisclosed(Event, name="goal.disclosed"):
    text: str  # note that says where rooda writes the state; at a terminal rooda asks a question instead


class RunStarted(Event, name="run.started", durable=True):
    shape: Shape  # as in `goal.scored`
    total: int  # as in `goal.scored`
    workflow: Annotated[str, "A", "B", "C"]  # A: build, B: debug, C: refactor
    steps: int  # number of steps
    budget: str  # the budget as displayed, such as `$25`
    max_iterations: int  # the iteration limit
    edits: str  # how file edits are counted
    already: list[str]  # names of the criteria that held before any work
    blind: bool  # true if the cost of calls is unknown
    type: Reversibility  # as `reversibility` in `goal.planned`
    git: bool  # true if there is a repository for checkpoints
    no_cause: bool = ABSENT  # true if the workflow is B (debug) and the root cause is not known yet


class RunResumed(Event, name="run.resumed", durable=True):
    spec: str  # the specification
    done: int  # number of steps accepted
    total: int  # number of steps
    iterations: int  # number of iterations that earlier sessions finished
    unmet: list[str]  # names of the unmet criteria
    next: str  # the next step
    notes: list[str]  # remarks for the user


class IterationStarted(Event, name="iteration.started"):
    iteration: int
    max_iterations: int  # the iteration limit
    cost: str  # cost so far as displayed: `$1.20`, `~$1.20` or `$?`
    budget: str  # the budget as displayed
    step: str  # the current step


class CriterionVerified(Event, name="criterion.verified"):
    """rooda ran the criterion's command."""

    criterion: str  # name of the criterion
    verdict: Annotated[str, "met", "not met"]  # the result
    evidence: str  # file with the command's output, relative to the workspace
    elapsed: float  # seconds that the command ran


class IterationEnded(Event, name="iteration.ended", durable=True):
    iteration: int
    step: str  # the step of this iteration
    accepted: bool  # true if the step is done
    done: int  # number of steps accepted
    total: int  # number of steps
    next_step: str  # the next step, or `none`
    exit_signal: bool  # as in the state file
    criteria: Mapping[str, bool]  # per criterion: true if met
    stuck: int  # as `stuckCount` in the state file
    next: str  # the next action
    outcome: Annotated[str, "success", "failure"]  # `success`: the step was accepted
    elapsed: float  # seconds that the agent ran
    cost: str  # cost so far as displayed: `$1.20`, `~$1.20` or `$?`
    claimed: bool  # true if the agent claims that the goal is complete
    edits: Mapping[str, int]  # number of writes per file; a lower bound if the agent does not report its writes
    no_cause: bool = ABSENT  # as in `run.started`


class RunEnded(Event, name="run.ended", durable=True):
    # `completed`, `failed`, or why the goal paused. With `unplanned` (the session ended without a plan) and `files`
    # (the goal's files can't be read or written), only the first four fields are always present
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
        "question",
        "G1",
        "G2",
        "G3",
        "shared limit",
    ]
    note: str  # the reason in words
    status: Annotated[str, "completed", "paused", "failed", "in_progress"]  # as in the state file
    exit_code: int  # rooda's exit code
    signal: int = ABSENT  # number of the first signal received, else 0
    question: str = ABSENT  # only if the reason is `question`: what the agent asks
    iterations: int = ABSENT  # number of iterations finished, including earlier sessions
    max_iterations: int = ABSENT  # the iteration limit
    cost: str = ABSENT  # cost as displayed: `$1.20`, `~$1.20` or `$?`
    budget: str = ABSENT  # the budget as displayed
    allowance: str = ABSENT  # dollars that `rooda goal continue` proposes to add to the budget
    done: int = ABSENT  # number of steps accepted
    remaining: int = ABSENT  # number of steps left
    criteria: Mapping[str, bool] = ABSENT  # per criterion: true if met
    claimed: list[str] = ABSENT  # names of criteria that are met only by assumption, without evidence
    verdict: Annotated[str, "SHIP", "MONITOR", "RESEARCH"] = ABSENT  # the verdict on all criteria together
    verified: list[str] = ABSENT  # types of verification by which criteria were met
    confidence: str = ABSENT  # the agent's confidence, in its own words
    type: Reversibility = ABSENT  # as `reversibility` in `goal.planned`
    points: int = ABSENT  # the plan's estimate in points; 0 if the plan has no estimate
    alt: str = ABSENT  # another approach, named by the agent
    risk: str = ABSENT  # the most important assumption, named by the agent
    tests_changed: list[str] = ABSENT  # paths of changed files that verify the work
    cause: EndCause = ABSENT
