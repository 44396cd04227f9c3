"""Defines the state of a goal: its brief, which is fixed at the start, and its progress."""

from typing import Any, NamedTuple

from rooda.errors import Cause
from rooda.loops.goal.answers import Claim
from rooda.loops.goal.criteria import Criterion, Mark
from rooda.loops.goal.plan import MustNot, Step
from rooda.loops.goal.scoring import COLLEAGUE, Scores
from rooda.loops.goal.world import Fingerprint
from rooda.run.setup import Budget
from rooda.run.spending import Spent

IN_PROGRESS, PAUSED, COMPLETED, CANCELLED, FAILED = "in_progress", "paused", "completed", "cancelled", "failed"
STATUSES = (IN_PROGRESS, PAUSED, COMPLETED, CANCELLED, FAILED)
UNFINISHED = (IN_PROGRESS, PAUSED)
SATISFY = "Satisfy: "
CONFIRM = "Confirm completion"  # the step after the last one, if all criteria hold


class Brief(NamedTuple):
    """A goal's specification, plan and settings, fixed at the start; only the user can change them later."""

    run: str
    spec: str
    criteria: tuple[Criterion, ...]
    steps: tuple[Step, ...]
    scores: Scores
    total: int
    shape: str
    workflow: str
    reversibility: str
    scored_by: str = "plan"  # plan | file | person | offline
    shape_by: str = "score"  # score | person | headless
    headless: bool = False  # never ask, even at a terminal
    clarified: str = ""
    gate: str = ""
    evidence: str = ""
    mustNot: tuple[MustNot, ...] = ()
    points: int = 0
    alt: str = ""
    risk: str = ""
    amendments: tuple[str, ...] = ()
    used_shape_file: bool = False
    exit_signal_source: str = "agent"
    must_not_judge: bool = False
    observation_evidence: str = "person"
    base: str = ""  # the git tree at the goal's start
    already: tuple[str, ...] = ()  # criteria that held before any work
    edits: str = ""  # how file edits are counted
    limits: Budget = Budget()  # limits on cost, tokens and seconds of all sessions together
    iterations: int = 10  # iterations that one `rooda goal continue` adds
    allowance: float = 25.0
    started_at: str = ""


class GoalState(NamedTuple):
    """The brief and progress of a goal."""

    brief: Brief
    marks: tuple[Mark, ...]
    steps: tuple[str, ...]
    limit: int
    budget: float
    done: int = 0
    iteration: int = 0
    status: str = IN_PROGRESS
    exit_signal: bool = False
    stuck: int = 0
    spent: Spent = Spent()
    blind: bool = False  # the cost of calls is unknown before the first call
    signature: str = ""
    repeats: int = 0
    error: str = ""  # the error line whose normalized form is `signature`
    gate: str = ""  # the question to ask next: G1, G2, close
    asks: str = ""  # text of G2's question
    step_base: str = ""  # the git tree before the step, for G2
    said: str = ""  # the end of the agent's last message, for G2 and G3
    denied: bool = False  # the user just denied completion, so G2 would be a second question
    gates_off: bool = False
    keep: str = ""  # keep | delete | ""
    claim: Claim = Claim()
    feedback: tuple[str, ...] = ()
    instructions: tuple[str, ...] = ()  # what the user answered when asked what is missing
    root_cause: str = ""
    alt: str = ""
    risk: str = ""
    confidence: str = ""
    tests: tuple[Fingerprint, ...] = ()
    tests_changed: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()  # mustNot entries that could not be checked
    shape_sha256: str = ""
    pause: str = ""
    reason: str = ""  # text of the reason for the pause
    cause: Cause | None = None  # cause of a pause at a shared limit or on request
    elapsed: float = 0.0
    updated_at: str = ""

    @property
    def unmet(self) -> tuple[str, ...]:
        """Names of the unmet criteria, in the order of the brief."""
        return tuple(each.name for each, mark in zip(self.brief.criteria, self.marks, strict=True) if not mark.met)

    @property
    def step(self) -> str:
        """Name of the current step."""
        return self.steps[self.done] if self.done < len(self.steps) else CONFIRM

    @property
    def has_gates(self) -> bool:
        return self.brief.shape == COLLEAGUE and not self.gates_off

    def mark(self, name: str) -> Mark:
        return self.marks[[each.name for each in self.brief.criteria].index(name)]


def public(state: GoalState) -> dict[str, Any]:
    """Return the content of the state file, with exactly the keys of its schema."""
    names = [each.name for each in state.brief.criteria]
    entries = [
        {"met": mark.met, "verification": mark.verification} if state.brief.used_shape_file else mark.met
        for mark in state.marks
    ]
    return {
        "spec": state.brief.spec,
        "criteria": names,
        "criteriaStatus": dict(zip(names, entries, strict=True)),
        "exit_signal": state.exit_signal,
        "steps": list(state.steps),
        "completedSteps": list(state.steps[: state.done]),
        "remainingSteps": list(state.steps[state.done :]),
        "iteration": state.iteration,
        "status": state.status,
        "circuitBreaker": {"stuckCount": state.stuck, "lastUnmet": last_unmet(state)},
    }


def is_public_of(found: Any, state: GoalState | None) -> bool:
    """True if the content of a state file can be that of this goal, or of any goal if `state` is None."""
    if not isinstance(found, dict) or not is_complete(found):
        return False
    return state is None or found["spec"] == state.brief.spec


KEYS: dict[str, type] = {  # of the state file
    **{"spec": str, "criteria": list, "criteriaStatus": dict, "exit_signal": bool, "steps": list},
    **{"completedSteps": list, "remainingSteps": list, "iteration": int, "status": str, "circuitBreaker": dict},
}


def is_complete(found: dict[str, Any]) -> bool:
    """True if a state file has all keys of the schema. It may come from another tool that follows the specification."""
    return all(isinstance(found.get(key), kind) for key, kind in KEYS.items())


def last_unmet(state: GoalState) -> str:
    """Return the first unmet criterion; "" if all are met or before the first iteration."""
    return state.unmet[0] if state.iteration and state.unmet else ""


def criteria_of_step(state: GoalState, step: str) -> tuple[str, ...]:
    """Return the names of the criteria that the step must meet."""
    known = {each.name for each in state.brief.criteria}
    for each in state.brief.steps:
        if each.name == step:
            return tuple(name for name in each.criteria if name in known)
    wanted = step.removeprefix(SATISFY)  # a step added by rooda names its criterion only in its own name
    return tuple(name for name in sorted(known, key=len, reverse=True) if wanted.startswith(name))[:1]


def step_class(state: GoalState) -> str:
    """Return the current step's reversibility class: how hard the step is to undo."""
    own = {each.name: each.reversibility for each in state.brief.steps}
    return own.get(state.step) or state.brief.reversibility


def cost_text(spent: Spent, blind: bool = False) -> str:
    """Format the cost with two decimals, with `~` if it is an estimate; `$?` (not `$0.00`) if it is unknown."""
    if (spent.unknown and not spent.cost) or (blind and not spent.calls):
        return "$?"
    return f"{'~' if spent.estimated else ''}${spent.cost:.2f}"


def cost_doubt(spent: Spent) -> str:
    """Return a note on calls of unknown cost; "" if there are none or if no cost is known at all."""
    if not spent.unknown or not spent.cost:
        return ""
    return f" (the cost of {spent.unknown} of {spent.calls} calls is unknown)"


def money(dollars: float) -> str:
    """Format an amount in dollars; whole dollars have no decimals."""
    return f"${dollars:.0f}" if dollars == int(dollars) else f"${dollars:.2f}"
