"""The goal loop: one step per agent call, verified by rooda, until all criteria hold and completion is claimed."""

from typing import NamedTuple

from rooda.agents.backoff import until_reset
from rooda.base.text import counted
from rooda.errors import LimitReached
from rooda.loops.goal import answers, prompts, scoring
from rooda.loops.goal.answers import Claim
from rooda.loops.goal.closing import YES, check_must_not, conclude, judge, observe, unconfirmed
from rooda.loops.goal.criteria import REVIEW, Criterion
from rooda.loops.goal.prompts import feedback, g2_question, iteration_ended, iteration_started, run_ended, step_prompt
from rooda.loops.goal.rules import (
    OFFERED,
    Pause,
    accepted,
    add_cost,
    affected,
    claims,
    count_errors,
    mark_claimed,
    mark_verified,
    needs_cause,
    open_breaker,
    raise_limits,
    reset_breaker,
    runnable,
    signature,
    stuck_count,
    why_stop,
    with_signal,
    with_step,
)
from rooda.loops.goal.state import COMPLETED, FAILED, IN_PROGRESS, PAUSED, GoalState, money, step_class
from rooda.loops.goal.world import LOST, CallResult, Finding, Question, World
from rooda.loops.kernel import Turns
from rooda.run.records import Ending


class StepOutcome(NamedTuple):
    """Result of one agent call and of the checks that follow it."""

    result: CallResult
    claim: Claim
    violations: tuple[str, ...] = ()  # mustNot entries that are violated
    findings: tuple[Finding, ...] = ()
    accepted: bool = False
    reshaped: bool = False  # SHAPE.md changed


def goal(turns: Turns, start: GoalState, world: World) -> Ending:
    """Run the loop from a new or reopened state until it completes or pauses; return how it ended."""
    state, ending = until_stopped(turns, turns.carry(start), world)
    while further := offer_more(turns, state, ending, world):
        state, ending = until_stopped(turns, turns.carry(further), world)
    ending = with_signal(ending, world.signalled())
    status = {COMPLETED: COMPLETED, FAILED: FAILED}.get(ending.kind, PAUSED)
    kind = ending.kind if status == PAUSED else ""
    last = state._replace(status=status, pause=kind, reason=ending.note, cause=ending.cause)
    state = turns.carry(state if last == state else last._replace(updated_at=world.now()))
    world.emit(run_ended(state, ending))
    return ending


def until_stopped(turns: Turns, state: GoalState, world: World) -> tuple[GoalState, Ending]:
    """Run iterations and gates until a rule stops the loop."""
    while (ending := why_stop(state, world.signalled(), world.requested())) is None:
        try:
            state = ask_gate(turns, state, world) if state.gate else iterate(turns, state, world)
        except (
            LimitReached
        ) as limit:  # a limit shared by all sessions, or a service limit that the settings don't wait out
            state = turns.carried(state)._replace(pause=Pause.SHARED, reason=limit.what, cause=limit.cause)
    return state, ending


def iterate(turns: Turns, state: GoalState, world: World) -> GoalState:
    """Call the agent for one step and check the result; save the state before deciding whether to pause."""
    before = with_step(state)
    if before.has_gates:
        before = before._replace(step_base=world.tree(True))
    before = turns.carry(before)
    number = before.iteration + 1
    world.emit(iteration_started(before))
    if step_class(before) != "2A":
        world.checkpoint(before.brief.run, number)
    result = world.ask("step", number, step_prompt(before, world))
    if result.ended == "interrupted":
        return add_cost(before, result)
    if result.ended == LOST:
        return add_cost(before, result)._replace(status=FAILED, reason=result.fatal)
    if result.limited:  # counts neither as an iteration nor as a failure
        state = turns.carry(add_cost(before, result))
        world.wait(until_reset(result.reset_at, world.seconds()))
        return state
    try:
        after, outcome = check_step(add_cost(before, result), result, world)
    except LimitReached as limit:  # a judge's call reached it; the step's cost counts anyway
        return add_cost(before, result)._replace(pause=Pause.SHARED, reason=limit.what, cause=limit.cause)
    if world.signalled() and after.status != COMPLETED:
        return before._replace(spent=after.spent)
    after = turns.carry(closed_iteration(before, after, outcome, world.now()))
    world.emit(iteration_ended(before, after, outcome.accepted or after.exit_signal, result))
    after = pause_or_gate(after, outcome)
    return turns.carry(after) if after.gate else after


def check_step(state: GoalState, result: CallResult, world: World) -> tuple[GoalState, StepOutcome]:
    """Check the work of one call: the mustNot entries and, if no entry is violated, the criteria."""
    number, claim = state.iteration + 1, answers.redacted(claim_of(result), world.redact)
    said = world.redact(prompts.last_words(answers.without_blocks(result.text)))
    state, violations = check_must_not(with_claim(state, claim)._replace(said=said), world, number)
    sha = world.shape_file()[1]
    outcome = StepOutcome(result, claim, violations, reshaped=bool(state.shape_sha256) and sha != state.shape_sha256)
    state = state._replace(shape_sha256=sha if outcome.reshaped else state.shape_sha256)
    if violations or world.signalled():
        return state, outcome
    due = affected(state)
    found = world.verify(runnable(due), number)
    state = mark_claimed(mark_verified(state, found, number), claim, number)
    open_ = [each for each in due if result.ok and each.kind == REVIEW and not state.mark(each.name).met]
    state = judge(state, world, open_, number)
    if not claim.exit:  # if it is set, `conclude` asks
        state = observe(state, world, claim, number)
    good = accepted(state, result, claim)
    state = state._replace(done=state.done + good)
    may_end = result.ok and not result.question and not outcome.reshaped and not world.signalled()
    if may_end and may_conclude(state, claim, due):
        state = conclude(state, world, claim, number)
    return state, outcome._replace(findings=tuple(found), accepted=good)


def claim_of(result: CallResult) -> Claim:
    """Read the status block of an answer; ignore claims of criteria and completion if the call failed."""
    claim = answers.read_block(result.text)
    return claim if result.ok else claim._replace(exit=False, criteria=())


def with_claim(state: GoalState, claim: Claim) -> GoalState:
    """Return the state with the claims of the agent's final message."""
    return state._replace(
        claim=claim,
        alt=claim.alt or state.alt,
        risk=claim.risk or state.risk,
        confidence=claim.confidence or state.confidence,
        feedback=(),
        denied=False,
    )


def may_conclude(state: GoalState, claim: Claim, due: list[Criterion]) -> bool:
    """True if a final check of all criteria could complete the goal."""
    if needs_cause(state) and not claim.root_cause:
        return False
    personal = set(unconfirmed(state))
    if any(not state.mark(each.name).met for each in due if each.name not in personal):
        return False
    if claim.exit or state.brief.exit_signal_source == "verified" or state.done >= len(state.steps):
        return True
    return bool(state.unmet) and all(name in personal and claims(claim, name) for name in state.unmet)


def closed_iteration(before: GoalState, after: GoalState, outcome: StepOutcome, now: str) -> GoalState:
    """Return the state to save after an iteration, accepted or not."""
    result, claim = outcome.result, outcome.claim
    after = after._replace(
        iteration=before.iteration + 1,
        stuck=stuck_count(before, after),
        root_cause=after.root_cause or claim.root_cause,
        elapsed=round(before.elapsed + result.seconds, 3),
        updated_at=now,
        status=FAILED if result.fatal else after.status,
        reason=result.fatal or after.reason,
        asks=g2_question(before, after, outcome.accepted),
    )
    after = count_errors(before, after, signature(before, result, outcome.findings))
    return after._replace(feedback=after.feedback or feedback(before, after, result, outcome.violations))


def pause_or_gate(after: GoalState, outcome: StepOutcome) -> GoalState:
    """Set the reason for a pause or the gate whose question comes next, if either applies; return the state."""
    if after.status in (COMPLETED, FAILED):
        return after
    if outcome.violations:
        return after._replace(pause=Pause.MUST_NOT, reason=f"mustNot: {', '.join(outcome.violations)}")
    if outcome.reshaped:
        return after._replace(pause=Pause.SHAPE, reason="SHAPE.md changed")
    if outcome.result.question:  # the answer gets an iteration, even after the last one
        limit = max(after.limit, after.iteration + 1)
        return after._replace(pause=Pause.QUESTION, reason=outcome.result.question, limit=limit)
    if after.pause:
        return after
    if found := open_breaker(after, outcome.result):
        return after._replace(pause=found[0], reason=found[1])
    return after._replace(gate="G2" if after.has_gates and not after.denied else "")


# Gates: questions to the user between iterations.
AT_THE_END = ("G3", Pause.OBSERVE, Pause.TESTS, Pause.UNTOLD, Pause.FILES)
WAITING = {"G1": "G1", "G2": "G2", **dict.fromkeys(AT_THE_END, "close")}


def ask_gate(turns: Turns, state: GoalState, world: World) -> GoalState:
    """Ask the gate's question; pause the goal unless the user confirms or turns gates off."""
    if state.gate == "close":
        closed = conclude(state._replace(gate="", pause="", reason=""), world, state.claim, state.iteration)
        return state if world.signalled() else turns.carry(closed)
    if not state.has_gates:
        return state._replace(gate="")
    answer = world.ask_user(question(state, world))
    if world.signalled():
        return state
    opened = turns.carry(state._replace(gate=""))
    if answer is not None and scoring.skips_gates(answer):
        return opened._replace(gates_off=True)
    if answer is not None and answer.strip().lower() in YES:
        return opened
    return opened._replace(pause=state.gate, reason=f"gate {state.gate}")


def question(state: GoalState, world: World) -> Question:
    """Return the question of gate G1 or G2; G2 shows what the step has changed."""
    if state.gate == "G1":
        numbered = tuple(f"{place}. {name}" for place, name in enumerate(state.steps, 1))
        return Question("G1", "Proceed?", (f"G1: Decomposed into {counted(len(state.steps), 'step')}:", *numbered))
    seen = prompts.shown_work(state, world, state.step_base, state.iteration)
    return Question("G2", state.asks, seen, base=state.step_base)


def offer_more(turns: Turns, state: GoalState, ending: Ending, world: World) -> GoalState | None:
    """Ask a user at a terminal whether to continue after a pause; return the new state, or None to stay paused."""
    if ending.kind not in OFFERED or not world.attended():
        return None
    further = raise_limits(state, ending.kind)
    if further is None:
        return None
    state = turns.carry(state._replace(status=PAUSED, pause=ending.kind, reason=ending.note, updated_at=world.now()))
    more = {Pause.BUDGET: f"Add {money(state.brief.allowance)} and continue?"}
    more |= {Pause.LIMIT: f"Continue for {state.brief.iterations} more?"}
    ask = Question("more", more.get(ending.kind, "Continue?"), (f"[LOOP] ⏸ {ending.note}",), "[y/N]")
    answer = world.ask_user(ask)
    if world.signalled() or answer is None or answer.strip().lower() not in ("y", "yes"):
        return None
    return reopened(further._replace(pause=ending.kind))


def reopened(state: GoalState) -> GoalState:
    """Return the state with which a paused goal continues: its breaker is reset, and its pending question is due."""
    gate = WAITING.get(state.pause, state.gate)
    opened = reset_breaker(state, state.pause)
    return opened._replace(status=IN_PROGRESS, exit_signal=False, pause="", reason="", cause=None, gate=gate)
