"""Starts a goal: works through the start checklist in order, before the first iteration."""

from functools import reduce

from rooda.base.json import Json
from rooda.errors import Interrupted
from rooda.loops.goal import answers, events, prompts, scoring
from rooda.loops.goal import plan as goal_plan
from rooda.loops.goal.criteria import ASSUMPTION, REVIEW, Mark
from rooda.loops.goal.planning import Draft, NotReady, Request, call_agent, draft_plan
from rooda.loops.goal.rules import add_cost, mark_verified, needs_cause, runnable
from rooda.loops.goal.scoring import COLLEAGUE, INTENT, TOOL
from rooda.loops.goal.state import Brief, GoalState, money
from rooda.loops.goal.world import Question, World
from rooda.loops.kernel import Turns
from rooda.run.event_records import Problem

FIELDS = ("TASK", "CONTEXT", "DONE LOOKS LIKE", "STAKES IF WRONG", "WHO REVIEWS")
HELP = "Too vague to start. Answer each question in one line (Enter skips it, Ctrl+C quits)."
ROUNDS = 2  # rounds of questions about the intent
DISCLOSURE = "Writing state to .loop/state.json. Delete after session?"


def start(world: World, request: Request, run_id: str) -> GoalState:
    """Plan a goal and return its initial state; raise NotReady if the specification isn't clear enough."""
    began = world.now()
    draft = draft_plan(world, request)
    shape, by = shape_of(request, draft)
    rounds = 0
    while shape == INTENT:
        report_scores(world, draft, shape)
        rounds += 1
        draft = draft_plan(world, request, clarify(world, draft, rounds), draft.calls)
        shape, by = shape_of(request, draft)
    report_scores(world, draft, shape)
    state = assemble(world, request, draft, run_id, shape, by)
    state = state._replace(brief=state.brief._replace(started_at=began))
    state = precheck(world, request, state)
    return take_baseline(world, state)


def shape_of(request: Request, draft: Draft) -> tuple[str, str]:
    """Return the shape and its source: the total score or `--shape`; `--headless` turns Colleague into Tool."""
    shape = request.shape or scoring.shape_of(draft.scores.total)
    if request.headless and shape == COLLEAGUE:
        return TOOL, "headless"
    return shape, "person" if request.shape else "score"


def report_scores(world: World, draft: Draft, shape: str) -> None:
    scores: Json = {name: score._asdict() for name, score in draft.scores._asdict().items()}
    world.emit(events.GoalScored(scores=scores, total=draft.scores.total, shape=shape, by=draft.scored_by))


def clarify(world: World, draft: Draft, rounds: int) -> str:
    """Ask the user to clarify the intent; return the answers. Without answers, write a template and raise NotReady."""
    if rounds > ROUNDS or not world.attended():
        path = world.write_note("intent.md", intent_template(draft))
        raise NotReady(
            f"Not started: the specification scores {draft.scores.total}/10; its intent must be clarified first. "
            f"The questions are in {path}.",
            "Answer them in the specification and start again, or use --shape colleague.",
        )
    asked = [Question("intent", f"{field}:", () if number else (HELP,), hint="") for number, field in enumerate(FIELDS)]
    answers = [(field, world.ask_user(question)) for field, question in zip(FIELDS, asked, strict=True)]
    if number := world.signalled():
        raise Interrupted(number)
    if any(answer is None for _, answer in answers):
        return clarify(world, draft, ROUNDS + 1)
    return "\n".join(f"{field}: {answer}" for field, answer in answers if answer)


def intent_template(draft: Draft) -> str:
    gaps = [f"- {name}: {each.score}/2" + gap(name, each.score) for name, each in draft.scores._asdict().items()]
    fields = [f"## {field}\n\n" for field in FIELDS]
    return "\n".join(["# Intent", "", f"Score: {draft.scores.total}/10", "", *gaps, "", *fields])


def gap(name: str, score: int) -> str:
    return f" ({scoring.GAPS[name]})" if score < 2 else ""


def assemble(world: World, request: Request, draft: Draft, run_id: str, shape: str, by: str) -> GoalState:
    """Build the goal's initial state from the request and the draft, and report the plan."""
    plan = draft.plan
    brief = Brief(
        run=run_id,
        spec=request.spec,
        criteria=draft.criteria,
        steps=plan.steps,
        scores=draft.scores,
        total=draft.scores.total,
        shape=shape,
        workflow=draft.workflow,
        reversibility=scoring.reversibility(request.spec, plan.reversibility),
        scored_by=draft.scored_by,
        shape_by=by,
        headless=request.headless,
        clarified=draft.clarified,
        gate=plan.gate or scoring.GATE_OF[draft.workflow],
        evidence=plan.evidence,
        mustNot=goal_plan.unique(plan.must_not, draft.shape_file.must_not),
        points=plan.points,
        alt=plan.alt,
        risk=plan.risk,
        used_shape_file=bool(draft.shape_file.criteria),
        exit_signal_source=request.exit_signal_source,
        must_not_judge=request.must_not_judge,
        observation_evidence=request.observation_evidence,
        edits=request.edits,
        iterations=request.iterations,
        allowance=request.budget,
        limits=request.limits,
    )
    state = opening_state(world, request, brief)
    report_plan(world, state, draft)
    return reduce(add_cost, draft.calls, state)


def opening_state(world: World, request: Request, brief: Brief) -> GoalState:
    """Return a state with no step done and no criterion checked."""
    return GoalState(
        brief=brief,
        marks=tuple(Mark(False, each.verification) for each in brief.criteria),
        steps=tuple(each.name for each in brief.steps),
        limit=request.iterations,
        budget=request.budget,
        blind=request.blind,
        gates_off=request.gates_off or scoring.skips_gates(request.spec),
        keep=request.keep,
        shape_sha256=world.shape_file()[1],
    )


def report_plan(world: World, state: GoalState, draft: Draft) -> None:
    brief = state.brief
    world.emit(
        events.GoalPlanned(
            reversibility=brief.reversibility,
            criteria=[{"name": each.name, "method": prompts.method(each)} for each in brief.criteria],
            steps=list(state.steps),
            gate=brief.gate,
            evidence=brief.evidence,
            must_not=[each.text for each in brief.mustNot],
            notes=list(draft.notes),
        )
    )
    if world.shape_file()[0] and not draft.shape_file.criteria:
        world.emit(Problem(text="SHAPE.md exists, but has no criteria that rooda can read"))


def precheck(world: World, request: Request, state: GoalState) -> GoalState:
    """Run the adversarial pre-check if the work is hard to undo or `--high-stakes` is set.

    Raise NotReady if nothing verifies a criterion, or if the pre-check finds too few misreadings or prohibitions.
    """
    brief = state.brief
    if brief.reversibility != "1" and not request.high_stakes:
        return state
    assumed = [each.name for each in brief.criteria if each.kind == ASSUMPTION]
    if assumed:
        raise NotReady(
            f"Not started: this work is hard to undo, and nothing verifies: {', '.join(assumed)}.",
            "Give each criterion a command, or the type observation or code review.",
        )
    values = {
        "spec": prompts.quoted(brief.spec),
        "clarified": prompts.section("What the user added", prompts.quoted(brief.clarified) if brief.clarified else ""),
        "criteria": prompts.bullets([each.name for each in prompts.visible_criteria(brief.criteria)]),
    }
    result = call_agent(world, "precheck", 1, prompts.filled(world.template, "precheck", values))
    world.write_note("precheck.md", result.text.strip() + "\n")
    found = answers.read_precheck(result.text)
    if len(found) < answers.LEAST:
        raise NotReady(
            f"Not started: the adversarial pre-check is required here and found {len(found)} misreadings; "
            f"it must find at least {answers.LEAST}.",
            "Its answer is in .loop/precheck.md. Start again, or make the specification narrower.",
        )
    rules = len(brief.mustNot) + answers.must_nots(result.text)
    if rules < answers.LEAST_RULES:
        raise NotReady(
            f"Not started: work that is hard to undo needs at least {answers.LEAST_RULES} things that must "
            f"not happen, in the plan, in SHAPE.md or in the pre-check; found {rules}.",
            "The answer is in .loop/precheck.md. Start again, or say in the specification what must not happen.",
        )
    world.emit(events.GoalPrechecked(amendments=list(found)))
    return add_cost(state._replace(brief=brief._replace(amendments=found)), result)


def take_baseline(world: World, state: GoalState) -> GoalState:
    """Mark the criteria that already hold, and hash the test files; raise NotReady if a mustNot is violated."""
    brief = state.brief
    violations = world.violations([each for each in brief.mustNot if each.violated_if], 0).true
    if violations and not world.signalled():
        raise NotReady(
            f"Not started: a mustNot entry is already violated: {', '.join(violations)}.",
            "Change what violates it, or correct the mustNot entry.",
        )
    found = world.verify(runnable(brief.criteria), 0)
    if number := world.signalled():  # the baseline is incomplete
        raise Interrupted(number)
    judged = brief.must_not_judge or any(each.kind == REVIEW for each in brief.criteria)
    met = [each for each in found if each.met]
    brief = brief._replace(base=world.tree(judged or state.has_gates), already=tuple(each.name for each in met))
    commands = [*(each.command for each in brief.criteria), *(each.violated_if for each in brief.mustNot)]
    state = mark_verified(state, met, 0)
    return state._replace(brief=brief, tests=world.fingerprints(commands), gate="G1" if state.has_gates else "")


def announce(turns: Turns, state: GoalState, world: World) -> GoalState:
    """Disclose the state file, ask whether to delete it after the session, save the state and report the start."""
    if state.keep or not world.attended():
        world.emit(events.GoalDisclosed(text=f"{DISCLOSURE} [Y/n]"))
    else:
        answer = world.ask_user(Question("keep", DISCLOSURE))
        state = state._replace(keep={"y": "delete", "n": "keep"}.get(answer or "", ""))
    state = turns.carry(state)
    brief = state.brief
    world.emit(
        events.RunStarted(
            shape=brief.shape,
            total=brief.total,
            workflow=brief.workflow,
            steps=len(state.steps),
            budget=money(state.budget),
            max_iterations=state.limit,
            edits=brief.edits,
            already=list(brief.already),
            blind=state.blind and state.spent.unknown == state.spent.calls,
            type=brief.reversibility,
            git=world.has_repository(),
            no_cause=needs_cause(state),
        )
    )
    return state
