"""Plans a goal: from the user's file, from the criteria alone, or with an agent, which gets two attempts."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, TypeAlias

from rooda.agents.backoff import until_reset
from rooda.errors import Interrupted, RoodaError, Undecided
from rooda.loops.goal import answers, prompts, scoring
from rooda.loops.goal import plan as goal_plan
from rooda.loops.goal import shape as goal_shape
from rooda.loops.goal.criteria import Criterion
from rooda.loops.goal.plan import NOT_JSON, Plan, Step
from rooda.loops.goal.scoring import Scores
from rooda.loops.goal.shape import Shape
from rooda.loops.goal.world import CallResult, World
from rooda.run.event_records import Problem
from rooda.run.setup import Budget

TRIES = 2
Missing: TypeAlias = Callable[[Mapping[str, str]], Mapping[str, str]]  # World.missing_programs


class Request(NamedTuple):
    """A goal as requested by the user: specification, options and settings."""

    spec: str
    plan: Plan | None = None  # from --plan
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
    """A plan merged with SHAPE.md, the options and the user's answers."""

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
    """The specification is not clear enough to start; the user must add to it."""


def draft_plan(world: World, request: Request, clarified: str = "", calls: tuple[CallResult, ...] = ()) -> Draft:
    """Return a complete plan, or raise NotReady with a list of the unclear items."""
    workflow = request.workflow or scoring.workflow(request.spec)
    shape = goal_shape.read_shape(world.shape_file()[0])
    complete = partial(complete_draft, request, workflow, shape, world.missing_programs)
    if request.plan is not None:
        return complete(request.plan, "file", calls, clarified)
    if request.offline:
        return complete(_offline(request, shape), "offline", calls, clarified)
    problems: list[str] = []
    plan = Plan()
    for attempt in range(1, TRIES + 1):
        prompt = plan_prompt(world, request, workflow, clarified, problems)
        result = call_agent(world, "plan", attempt, prompt)
        calls = (*calls, result)
        plan = goal_plan.read_plan(answers.find_json(result.text))
        problems = unclear(request, plan, workflow, shape) + ([plan.scores_fault] if plan.scores_fault else [])
        if not problems:
            break
        how = "" if result.ok else f" (the AI command: {result.how})"
        world.emit(Problem(text=f"Plan {attempt}/{TRIES} can't be used: {'; '.join(problems)}{how}"))
    if problems and not result.ok and not (plan.criteria or plan.steps):
        raise plan_failed(result, "Nothing was started.")
    return complete(plan, "plan", calls, clarified)


def call_agent(world: World, kind: str, number: int, prompt: str) -> CallResult:
    """Call the agent before the loop starts; wait out usage limits, and raise RoodaError if a retry would fail too."""
    while True:
        result = world.ask(kind, number, prompt)
        if world.signalled():
            raise Interrupted(world.signalled())
        if result.fatal:
            raise RoodaError(f"The {kind} call failed: {result.fatal}", "Nothing was started.")
        if not result.limited:
            return result
        world.wait(until_reset(result.reset_at, world.seconds()))
        if world.signalled():
            raise Interrupted(world.signalled())


def plan_failed(result: CallResult, left: str) -> RoodaError:
    """Return the error for a planning call that failed through no fault of the specification."""
    why = ": ".join(text for text in (result.how, result.error) if text)
    return RoodaError(f"The plan call failed: {why}", f"{left} See the agent's output: rooda logs goal")


def plan_prompt(world: World, request: Request, workflow: str, clarified: str, problems: list[str]) -> str:
    again = f"Your last answer could not be used: {'; '.join(problems)}." if problems else ""
    values = {
        "spec": prompts.quoted(request.spec),
        "clarified": prompts.section("What the user added", prompts.quoted(clarified) if clarified else ""),
        "problems": prompts.section("Once more", again),
        "gate": scoring.GATE_OF[workflow],
        "asks": scoring.GATE_ASKS[workflow],
    }
    return prompts.filled(world.template, "plan", values)


def _offline(request: Request, shape: Shape) -> Plan:
    """Return a plan made without an agent: one step per criterion that the user named."""
    criteria = goal_plan.merged(shape.criteria, *request.criteria)
    steps = tuple(Step(f"Satisfy: {each.name}", (each.name,)) for each in criteria)
    faults = ("criteria", "steps") if not steps else ()
    planned = scoring.stricter(scoring.least_class(request.spec))
    return Plan(scores=Scores(), reversibility=planned, steps=steps, evidence=request.evidence, unclear=faults)


def unclear(request: Request, plan: Plan, workflow: str, shape: Shape) -> list[str]:
    """Return the items of the start checklist that are missing or unusable, worded for the user."""
    if plan.no_json:
        return [*plan.unclear]
    found = [item for item in plan.unclear if not (item == "score" and (request.scores or request.offline))]
    if not plan.reversibility:
        found.append("reversibility")
    if not (plan.criteria or shape.criteria or request.criteria):
        found.append("criteria")
    if weak := weak_gate(request, plan, workflow):
        found.append(f"workflow gate ({weak})")
    return list(dict.fromkeys(found))


def weak_gate(request: Request, plan: Plan, workflow: str) -> str:
    """Return why the plan's evidence does not pass the workflow's gate, and what the gate needs; "" if it passes.

    A plan from the user needs no evidence, and debugging (workflow B) may start without a root cause.
    """
    if request.plan is not None or request.evidence:
        return ""
    if request.offline:
        return "" if workflow == "B" else scoring.GATE_ASKS[workflow]
    why = scoring.gate_fault(workflow, plan.gate, plan.evidence)
    if workflow == "B" and not plan.evidence:
        return ""
    return f"{why}; needed: {scoring.GATE_ASKS[workflow]}" if why else ""


def complete_draft(
    request: Request,
    workflow: str,
    shape: Shape,
    missing_programs: Missing,
    plan: Plan,
    by: str,
    calls: tuple[CallResult, ...],
    clarified: str,
) -> Draft:
    """Choose the scores and merge the criteria of a draft; raise NotReady if anything is unclear."""
    if workflow == "B" and weak_gate(request, plan, workflow):
        plan = plan._replace(evidence="", gate="")  # unusable evidence: the first step must find the root cause
    faults = unclear(request, plan, workflow, shape)
    notes: list[str] = []
    whole = f"{request.spec}\n{clarified}"
    if request.scores:
        scores, by = request.scores, "person"
    elif request.offline or (plan.scores is None and plan.scores_fault):
        scores, by = scoring.score_words(whole), "offline"
        notes += [f"Scored by the offline rubric, since {plan.scores_fault}."] if plan.scores_fault else []
    else:
        scores = scoring.checked_quotes(plan.scores or Scores(), whole, trusted=by == "file")
    if faults:
        options = f"give --plan FILE{' or --evidence TEXT' if weak_gate(request, plan, workflow) else ''}"
        if plan.no_json:
            raise NotReady(f"Not started: {NOT_JSON}.", "See the answer: rooda logs goal\nor give --plan FILE.")
        raise NotReady(
            f"Not started: unclear: {', '.join(faults)}.", f"Clarify this in the specification, or {options}."
        )
    plan = plan._replace(evidence=request.evidence or plan.evidence)
    criteria = goal_plan.merged(plan.criteria, *shape.criteria, *request.criteria)
    notes += remarks(plan, criteria, workflow, shape, request)
    commands = {each.name: each.command for each in criteria if each.command}
    for name, program in missing_programs(commands).items():
        notes.append(f"The program of {name!r} was not found: {program}")
    return Draft(plan, scores, by, workflow, criteria, shape, calls, clarified, tuple(notes))


def remarks(plan: Plan, criteria: tuple[Criterion, ...], workflow: str, shape: Shape, request: Request) -> list[str]:
    """Return remarks for the user on the plan's weak points."""
    names = {each.name for each in criteria}
    used = [name for step in plan.steps for name in step.criteria]
    found = [
        f"A step refers to {name!r}, which is not a criterion." for name in dict.fromkeys(used) if name not in names
    ]
    free = [each.name for each in criteria if each.name not in used]
    if free:
        found.append(f"Not tied to a step, so verified after each step: {', '.join(free)}")
    if plan.finished:
        found.append(f"Marked as done in the plan, so left out: {', '.join(plan.finished)}")
    bare = [each.name for each in criteria if each.kind == "assumption"]
    if bare:
        found.append(f"Nothing verifies: {', '.join(bare)} (only the agent's word, which can't complete the goal)")
    if workflow == "B" and not plan.evidence:
        found.append("The root cause is not known yet; the goal starts, and its first step must name it.")
    unchecked = [each for each in (*plan.must_not, *shape.must_not) if not each.violated_if]
    if unchecked and not request.must_not_judge:
        found.append(f"{len(unchecked)} mustNot entries are not machine-checked")
    return found
