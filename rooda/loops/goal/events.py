"""The events of a goal, as typed records. Imports nothing but the base of all events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypedDict

from rooda.run.event_records import ABSENT, EndCause, Event
from rooda.run.owner import LoopKind

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


class Way(TypedDict):
    name: str
    method: str


class GoalScored(Event, name="goal.scored"):
    scores: Mapping[str, Score]  # by dimension: `score`, `quote` that earns it, `note` why it was cut
    total: int  # their sum
    shape: Shape  # what the total means
    by: Annotated[str, "plan", "file", "person", "offline"]  # who scored


class GoalPlanned(Event, name="goal.planned"):
    reversibility: Reversibility  # how hard it is to take back
    criteria: list[Way]  # of each its `name` and `method`
    steps: list[str]  # their names
    gate: str  # what evidence the workflow asks for
    evidence: str  # that evidence
    must_not: list[str]  # what must never become true
    notes: list[str]  # what a person should know of the plan


class GoalPrechecked(Event, name="goal.prechecked"):
    """Only where work is hard to take back (type 1)."""

    amendments: list[str]  # of each misreading the words that rule it out


class GoalDisclosed(Event, name="goal.disclosed"):
    text: str  # where the state is written; asked instead where a person can answer


class RunStarted(Event, name="run.started", durable=True):
    shape: Shape  # as in `goal.scored`
    total: int  # as in `goal.scored`
    workflow: Annotated[str, "A", "B", "C"]  # the workflow
    steps: int  # how many
    budget: str  # as it is shown: `$25`
    max_iterations: int  # the limit
    edits: str  # how edits of files are counted
    already: list[str]  # criteria that held before any work
    blind: bool  # true: what calls cost is not known
    type: Reversibility  # as `reversibility` in `goal.planned`
    git: bool  # is there a repository for checkpoints?


class RunResumed(Event, name="run.resumed", durable=True):
    spec: str  # the specification
    done: int  # steps accepted
    total: int  # steps
    iterations: int  # iterations closed by earlier sessions
    unmet: list[str]  # names of the criteria that don't hold
    next: str  # the step that is next
    notes: list[str]  # what a person should know


class IterationStarted(Event, name="iteration.started"):
    iteration: int
    max_iterations: int  # the limit
    cost: str  # so far, as it is shown: `$1.20`, `~$1.20` or `$?`
    budget: str  # as it is shown
    step: str  # what is to be done


class CriterionVerified(Event, name="criterion.verified"):
    """rooda itself ran the criterion's command."""

    criterion: str  # its name
    verdict: Annotated[str, "met", "not met"]  # what was found
    evidence: str  # the file with the command's output, seen from the workspace
    elapsed: float  # how long the command ran


class IterationEnded(Event, name="iteration.ended", durable=True):
    iteration: int
    step: str  # what was to be done
    accepted: bool  # is it done?
    done: int  # steps accepted
    total: int  # steps
    next_step: str  # the next one, or `none`
    exit_signal: bool  # as in the state file
    criteria: Mapping[str, bool]  # of each whether it holds
    stuck: int  # as `stuckCount` in the state file
    next: str  # the next action
    outcome: Annotated[str, "success", "failure"]  # `success`: the step was accepted
    elapsed: float  # the agent's run time
    cost: str  # so far, as it is shown: `$1.20`, `~$1.20` or `$?`
    claimed: bool  # did the agent say that all is done?
    edits: Mapping[str, int]  # how often each file was written; at least, if the agent did not report it


class RunEnded(Event, name="run.ended", durable=True):
    # `completed`, `failed`, why it paused, or one where all but the first four may be absent: `unplanned`, it ended
    # before there was a plan; `files`, they can't be written or read
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
    note: str  # the same in words
    status: Annotated[str, "completed", "paused", "failed", "in_progress"]  # as in the state file
    exit_code: int  # of rooda
    signal: int = ABSENT  # the number of the first signal that was received, else 0
    iterations: int = ABSENT  # iterations closed, earlier sessions included
    max_iterations: int = ABSENT  # the limit
    cost: str = ABSENT  # as it is shown: `$1.20`, `~$1.20` or `$?`
    budget: str = ABSENT  # as it is shown
    allowance: str = ABSENT  # what one continue would add
    done: int = ABSENT  # steps accepted
    remaining: int = ABSENT  # steps left
    criteria: Mapping[str, bool] = ABSENT  # of each whether it holds
    claimed: list[str] = ABSENT  # those of them for which there is only the agent's word
    verdict: Annotated[str, "SHIP", "MONITOR", "RESEARCH"] = ABSENT  # of all criteria together
    verified: list[str] = ABSENT  # the ways in which criteria were shown to hold
    confidence: str = ABSENT  # what the agent said of it
    type: Reversibility = ABSENT  # as `reversibility` in `goal.planned`
    points: int = ABSENT  # of the plan, 0 = not said
    alt: str = ABSENT  # another approach
    risk: str = ABSENT  # the assumption that matters most
    tests_changed: list[str] = ABSENT  # files that verify the work and are not as they were
    cause: EndCause = ABSENT
