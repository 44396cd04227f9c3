"""The reflex loop: an artifact is produced, judged by rules and refined, until the rules hold or the loop must end."""

from collections.abc import Callable
from functools import partial

from rooda.base.json import Json
from rooda.errors import FAILED as EXIT_FAILED
from rooda.errors import OK, UNFINISHED, Interrupted
from rooda.loops.kernel import Run
from rooda.loops.reflex import contract, scoring
from rooda.loops.reflex import prompts as inputs
from rooda.loops.reflex.asking import asked, json_of
from rooda.loops.reflex.events import ReflexBoundary
from rooda.loops.reflex.judging import evaluate
from rooda.loops.reflex.state import CRITIQUE, EVALUATE, PLAN, PREPARE, PRODUCE_PREPARE, REFINE, RUNNING, State
from rooda.loops.reflex.world import How, Job, World

EXIT_CODES = {scoring.COMPLETED: OK, scoring.STOPPED: UNFINISHED, scoring.FAILED: EXIT_FAILED}


def reflex(run: Run, start: State, how: How, world: World) -> State:
    """The loop. A round is an iteration, or the second evaluation of one that has just come to phase B."""
    state: State = run.carry(start)
    while state.status == RUNNING:
        for name, steps, phase in ROUND:
            if state.status == RUNNING and state.current_step in steps:
                if number := world.signalled():
                    raise Interrupted(number)
                before, state = state, run.step(name, partial(phase, state, how, world))
                announce(name, before, state, how, world)
        state = run.carry(state)
    return state


def plan(state: State, how: How, world: World) -> State:
    def take(now: State, steps: list[str]) -> State:
        return now._replace(plan=tuple(steps), current_step=PRODUCE_PREPARE)

    values = inputs.plan(state, world.recent(state))
    job = Job("PLAN", world.compose("PLAN", values), json_of(contract.plan, how), take)
    return asked(state, world, (job,))


def draft(state: State, how: How, world: World) -> State:
    """PRODUCE beside PREPARE; at the change to phase B, or after an interruption, only what is not there yet."""
    jobs = []
    if state.current_step == PRODUCE_PREPARE:
        jobs.append(_produce(state, world))
    if state.current_step == PREPARE or state.prepared_checks is None:
        jobs.append(_prepare(state, how, world))
    for wave in [(job,) for job in jobs] if how.sequential else [tuple(jobs)]:
        if state.status == RUNNING:
            state = asked(state, world, wave)
            state = world.keep(state) if how.sequential else state
    return state


def _produce(state: State, world: World) -> Job:
    def take(now: State, text: str) -> State:
        world.stage(text)
        return now._replace(current_step=PREPARE if now.prepared_checks is None else EVALUATE)

    previous = world.artifact() if state.iteration > 1 else None
    return Job("PRODUCE", world.compose("PRODUCE", inputs.produce(state, previous)), contract.markdown, take)


def _prepare(state: State, how: How, world: World) -> Job:
    def take(now: State, checks: list[Json]) -> State:
        step = EVALUATE if now.current_step == PREPARE else now.current_step
        return now._replace(prepared_checks={"checks": checks}, current_step=step)

    active = [rule["id"] for rule in state.active]
    read = json_of(partial(contract.checks, active=active, artifact=how.artifact, roots=how.roots), how)
    return Job("PREPARE", world.compose("PREPARE", inputs.prepare(state, how.artifact)), read, take)


def critique(state: State, how: How, world: World) -> State:
    def take(now: State, issues: list[Json]) -> State:
        return now._replace(critique={"issues": issues}, current_step=REFINE)

    failing = [entry["id"] for entry in (*state.evaluation["failed"], *state.evaluation["warnings"])]
    read = json_of(partial(contract.issues, failing=failing), how)
    prompt = world.compose("CRITIQUE", inputs.critique(state, world.artifact() or ""))
    return asked(state, world, (Job("CRITIQUE", prompt, read, take),))


def refine(state: State, how: How, world: World) -> State:
    """The artifact is replaced, and the next iteration begins."""

    def take(now: State, text: str) -> State:
        world.stage(text)
        return now._replace(
            iteration=now.iteration + 1, current_step=PLAN, plan=(), prepared_checks=None, critique=None
        )

    prompt = world.compose("REFINE", inputs.refine(state, world.artifact() or ""))
    return asked(state, world, (Job("REFINE", prompt, contract.markdown, take),))


ROUND: tuple[tuple[str, tuple[str, ...], Callable[[State, How, World], State]], ...] = (
    ("PLAN", (PLAN,), plan),
    ("PRODUCE_PREPARE", (PRODUCE_PREPARE, PREPARE), draft),
    ("EVALUATE", (EVALUATE,), evaluate),
    ("CRITIQUE", (CRITIQUE,), critique),
    ("REFINE", (REFINE,), refine),
)


def announce(name: str, before: State, after: State, how: How, world: World) -> None:
    """The compact block: after CRITIQUE where there is one, else after EVALUATE; and what goes with it."""
    judged = name == "EVALUATE" and after.evaluation is not before.evaluation and after.current_step != CRITIQUE
    if after.elsewhere or not (judged or name == "CRITIQUE"):
        return
    world.emit(inputs.block(before, after, how.artifact, world.changed(before)))
    switched = judged and after.phase != before.phase
    if switched:
        world.show()
    if switched or before.iteration >= 2:
        world.emit(ReflexBoundary(switched=switched))
