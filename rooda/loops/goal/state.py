"""What a goal carries from iteration to iteration: the brief that is fixed at its start, and where it stands."""

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
CONFIRM = "Confirm completion"  # what is left to do when all steps are used up and all criteria hold


class Brief(NamedTuple):
    """Fixed at the start; afterwards only a person changes it."""

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
    headless: bool = False  # nobody is to be asked, terminal or not
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
    base: str = ""  # the git tree at the start
    already: tuple[str, ...] = ()  # criteria that held before any work
    edits: str = ""  # how edits of files are counted
    limits: Budget = Budget()  # of all its sessions: cost, tokens, seconds
    iterations: int = 10  # what one continue grants
    allowance: float = 25.0
    started_at: str = ""


class GoalState(NamedTuple):
    """Where a goal stands."""

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
    blind: bool = False  # before the first call it is not known either what calls cost
    signature: str = ""
    repeats: int = 0
    error: str = ""  # the line behind the signature
    gate: str = ""  # a question that waits: G1, G2, close
    asks: str = ""  # the words of G2
    denied: bool = False  # a person has just said that it is not done; G2 would ask the same once more
    gates_off: bool = False
    keep: str = ""  # keep | delete | ""
    claim: Claim = Claim()
    feedback: tuple[str, ...] = ()
    root_cause: str = ""
    alt: str = ""
    risk: str = ""
    confidence: str = ""
    tests: tuple[Fingerprint, ...] = ()
    tests_changed: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()  # mustNot entries of which nobody can tell whether they have come true
    shape_sha256: str = ""
    pause: str = ""
    reason: str = ""  # the same for people
    cause: Cause | None = None  # of a pause at a shared limit, or that was asked for
    elapsed: float = 0.0
    updated_at: str = ""

    @property
    def unmet(self) -> tuple[str, ...]:
        """Names of the criteria that don't hold, in their order."""
        return tuple(each.name for each, mark in zip(self.brief.criteria, self.marks, strict=True) if not mark.met)

    @property
    def step(self) -> str:
        """What is to be done now."""
        return self.steps[self.done] if self.done < len(self.steps) else CONFIRM

    @property
    def gated(self) -> bool:
        return self.brief.shape == COLLEAGUE and not self.gates_off

    def mark(self, name: str) -> Mark:
        return self.marks[[each.name for each in self.brief.criteria].index(name)]


def public(state: GoalState) -> dict[str, Any]:
    """The state file, with exactly the keys of its schema."""
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


def last_unmet(state: GoalState) -> str:
    """The first that doesn't hold; nothing before anything was tried."""
    return state.unmet[0] if state.iteration and state.unmet else ""


def tied(state: GoalState, step: str) -> tuple[str, ...]:
    """Names of the criteria that show whether a step is done."""
    known = {each.name for each in state.brief.criteria}
    for each in state.brief.steps:
        if each.name == step:
            return tuple(name for name in each.criteria if name in known)
    wanted = step.removeprefix(SATISFY)  # of a step that was added: state.json has its name and nothing else
    return tuple(name for name in sorted(known, key=len, reverse=True) if wanted.startswith(name))[:1]


def step_class(state: GoalState) -> str:
    """How hard the current step is to take back."""
    own = {each.name: each.reversibility for each in state.brief.steps}
    return own.get(state.step) or state.brief.reversibility


def cost_text(spent: Spent, blind: bool = False) -> str:
    """With two decimals; `~` for an estimate; `$?` as long as nothing is known: then it is not `$0.00`."""
    if (spent.unknown and not spent.cost) or (blind and not spent.calls):
        return "$?"
    return f"{'~' if spent.estimated else ''}${spent.cost:.2f}"


def cost_doubt(spent: Spent) -> str:
    """What the sum leaves out; "" where nothing or all is unknown."""
    if not spent.unknown or not spent.cost:
        return ""
    return f" (the cost of {spent.unknown} of {spent.calls} calls is unknown)"


def money(dollars: float) -> str:
    """A budget: whole dollars without decimals."""
    return f"${dollars:.0f}" if dollars == int(dollars) else f"${dollars:.2f}"
