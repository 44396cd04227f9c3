"""How a goal comes to its plan: by a person's file, by the words alone, or by an agent that is asked twice at most."""

from functools import partial
from typing import NamedTuple

from rooda.agents.backoff import until_reset
from rooda.errors import Interrupted, RoodaError, Undecided
from rooda.loops.goal import answers, prompts, scoring, wording
from rooda.loops.goal import plan as goal_plan
from rooda.loops.goal import shape as goal_shape
from rooda.loops.goal.criteria import Criterion
from rooda.loops.goal.plan import Plan, Step
from rooda.loops.goal.scoring import Scores
from rooda.loops.goal.shape import Shape
from rooda.loops.goal.world import CallResult, World
from rooda.run.event_records import Problem
from rooda.run.setup import Budget

TRIES = 2


class Wish(NamedTuple):
    """What a person asks for, and how."""

    spec: str
    plan: Plan | None = None  # of --plan
    scores: Scores | None = None
    shape: str = ""  # Tool | Colleague | ""
    workflow: str = ""
    evidence: str = ""  # for the workflow's gate
    offline: bool = False
    criteria: tuple[Criterion, ...] = ()
    gates_off: bool = False
    headless: bool = False
    high_stakes: bool = False
    keep: str = ""
    iterations: int = 10
    budget: float = 25.0
    limits: Budget = Budget()
    blind: bool = False
    exit_signal_source: str = "agent"
    must_not_judge: bool = False
    observation_evidence: str = "person"
    edits: str = ""


class Draft(NamedTuple):
    """A plan with everything else that speaks about the goal."""

    plan: Plan
    scores: Scores
    scored_by: str
    workflow: str
    criteria: tuple[Criterion, ...]
    shape_file: Shape
    calls: tuple[CallResult, ...] = ()
    clarified: str = ""
    notes: tuple[str, ...] = ()


class NotReady(Undecided):
    """The specification is not clear enough to start with; a person must say more."""


def drafted(world: World, wish: Wish, clarified: str = "", calls: tuple[CallResult, ...] = ()) -> Draft:
    """The plan, complete or refused with the list of what is unclear."""
    workflow = wish.workflow or wording.workflow(wish.spec)
    shape = goal_shape.read_shape(world.shape_file()[0])
    complete = partial(completed, wish, workflow, shape)
    if wish.plan is not None:
        return complete(wish.plan, "file", calls, clarified)
    if wish.offline:
        return complete(_offline(wish, shape), "offline", calls, clarified)
    problems: list[str] = []
    plan = Plan()
    for attempt in range(1, TRIES + 1):
        prompt = plan_prompt(world, wish, workflow, clarified, problems)
        told = asked(world, "plan", attempt, prompt)
        calls = (*calls, told)
        plan = goal_plan.read_plan(answers.found(told.text))
        problems = unclear(wish, plan, workflow, shape) + ([plan.scores_fault] if plan.scores_fault else [])
        if not problems:
            break
        how = "" if told.ok else f" (the AI command: {told.how})"
        world.emit(Problem(text=f"Plan {attempt}/{TRIES} is not usable: {'; '.join(problems)}{how}"))
    if problems and not told.ok and not (plan.criteria or plan.steps):
        raise failed(told, "Nothing was started.")
    return complete(plan, "plan", calls, clarified)


def asked(world: World, kind: str, number: int, prompt: str) -> CallResult:
    """A call before the loop; waits out a usage limit, and gives up where every call would fail."""
    while True:
        told = world.ask(kind, number, prompt)
        if world.signalled():
            raise Interrupted(world.signalled())
        if told.fatal:
            raise RoodaError(f"The {kind} call failed: {told.fatal}", "Nothing was started.")
        if not told.limited:
            return told
        world.rest(until_reset(told.reset_at, world.seconds()))
        if world.signalled():
            raise Interrupted(world.signalled())


def failed(told: CallResult, left: str) -> RoodaError:
    """A command that failed and gave no plan says nothing of the specification."""
    why = ": ".join(text for text in (told.how, told.error) if text)
    return RoodaError(f"The plan call failed: {why}", f"{left} What the agent printed: rooda logs goal")


def plan_prompt(world: World, wish: Wish, workflow: str, clarified: str, problems: list[str]) -> str:
    again = f"Your last answer could not be used: {'; '.join(problems)}." if problems else ""
    values = {
        "spec": prompts.quoted(wish.spec),
        "clarified": prompts.section("What the person added", prompts.quoted(clarified) if clarified else ""),
        "problems": prompts.section("Once more", again),
        "gate": wording.GATE_OF[workflow],
        "asks": wording.GATE_ASKS[workflow],
    }
    return prompts.filled(world.template, "plan", values)


def _offline(wish: Wish, shape: Shape) -> Plan:
    """No agent plans: one step for each criterion that a person named."""
    criteria = goal_plan.merged(shape.criteria, *wish.criteria)
    steps = tuple(Step(f"Satisfy: {each.name}", (each.name,)) for each in criteria)
    faults = ("criteria", "steps") if not steps else ()
    planned = wording.stricter(wording.floor(wish.spec))
    return Plan(scores=Scores(), reversibility=planned, steps=steps, evidence=wish.evidence, unclear=faults)


def unclear(wish: Wish, plan: Plan, workflow: str, shape: Shape) -> list[str]:
    """What of the start checklist is missing or no use."""
    found = [item for item in plan.unclear if not (item == "score" and (wish.scores or wish.offline))]
    if not plan.reversibility:
        found.append("reversibility")
    if not (plan.criteria or shape.criteria or wish.criteria):
        found.append("criteria")
    if _lacks_evidence(wish, plan, workflow):
        found.append(f"workflow gate ({wording.GATE_ASKS[workflow]})")
    return list(dict.fromkeys(found))


def _lacks_evidence(wish: Wish, plan: Plan, workflow: str) -> bool:
    """True if the gate of the workflow asks for evidence and there is none."""
    return workflow != "B" and not (plan.evidence or wish.evidence)


def completed(
    wish: Wish, workflow: str, shape: Shape, plan: Plan, by: str, calls: tuple[CallResult, ...], clarified: str
) -> Draft:
    """Scores decided, criteria put together; NotReady where anything is unclear."""
    faults = unclear(wish, plan, workflow, shape)
    notes: list[str] = []
    whole = f"{wish.spec}\n{clarified}"
    if wish.scores:
        scores, by = wish.scores, "person"
    elif wish.offline or (plan.scores is None and plan.scores_fault):
        scores, by = scoring.offline(whole), "offline"
        notes += [f"Scored by the offline rubric, since {plan.scores_fault}."] if plan.scores_fault else []
    else:
        scores = scoring.quoted(plan.scores or Scores(), whole, trusted=by == "file")
    if faults:
        ways = f"give --plan FILE{' or --evidence TEXT' if _lacks_evidence(wish, plan, workflow) else ''}"
        raise NotReady(f"Not started: unclear: {', '.join(faults)}.", f"Say it in the specification, or {ways}.")
    plan = plan._replace(evidence=wish.evidence or plan.evidence)
    criteria = goal_plan.merged(plan.criteria, *shape.criteria, *wish.criteria)
    notes += remarks(plan, criteria, workflow, shape, wish)
    return Draft(plan, scores, by, workflow, criteria, shape, calls, clarified, tuple(notes))


def remarks(plan: Plan, criteria: tuple[Criterion, ...], workflow: str, shape: Shape, wish: Wish) -> list[str]:
    """What a person should know of the plan before it is carried out."""
    names = {each.name for each in criteria}
    used = [name for step in plan.steps for name in step.criteria]
    found = [f"A step is tied to {name!r}, which is no criterion." for name in dict.fromkeys(used) if name not in names]
    free = [each.name for each in criteria if each.name not in used]
    if free:
        found.append(f"Tied to no step, so verified after each: {', '.join(free)}")
    bare = [each.name for each in criteria if each.kind == "assumption"]
    if bare:
        found.append(f"Nothing verifies: {', '.join(bare)} (only the agent's word; the goal can't complete on that)")
    if weak := wording.gate_weakness(workflow, plan.evidence) if plan.evidence else "":
        found.append(weak)
    unchecked = [each for each in (*plan.must_not, *shape.must_not) if not each.violated_if]
    if unchecked and not wish.must_not_judge:
        found.append(f"{len(unchecked)} mustNot entries are not machine-checked")
    return found
