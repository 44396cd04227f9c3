"""The reflex loop: produce an artifact, judge it by rules and refine it, until the rules hold or the loop ends."""

from collections.abc import Callable
from functools import partial

from rooda.errors import Interrupted
from rooda.loops.kernel import Run
from rooda.loops.reflex import prompts
from rooda.loops.reflex.events import ReflexBoundary
from rooda.loops.reflex.phases import critique, evaluate, plan, produce_and_prepare, refine
from rooda.loops.reflex.state import CRITIQUE, EVALUATE, PLAN, PREPARE, PRODUCE_PREPARE, REFINE, RUNNING, State
from rooda.loops.reflex.world import LoopOptions, World

ROUND: tuple[tuple[str, tuple[str, ...], Callable[[State, LoopOptions, World], State]], ...] = (
    ("PLAN", (PLAN,), plan),
    ("PRODUCE_PREPARE", (PRODUCE_PREPARE, PREPARE), produce_and_prepare),
    ("EVALUATE", (EVALUATE,), evaluate),
    ("CRITIQUE", (CRITIQUE,), critique),
    ("REFINE", (REFINE,), refine),
)


def reflex(run: Run, start: State, options: LoopOptions, world: World) -> State:
    """Run rounds until the loop ends. A round is an iteration, or a second evaluation after the switch to phase B."""
    state: State = run.carry(start)
    while state.status == RUNNING:
        for name, steps, phase in ROUND:
            if state.status == RUNNING and state.current_step in steps:
                if number := world.signalled():
                    raise Interrupted(number)
                before, state = state, run.step(name, partial(phase, state, options, world))
                report(name, before, state, options, world)
        state = run.carry(state)
    return state


def report(name: str, before: State, after: State, options: LoopOptions, world: World) -> None:
    """Emit the event that reports an evaluation, after CRITIQUE if there is one, else after EVALUATE."""
    judged = name == "EVALUATE" and after.evaluation is not before.evaluation and after.current_step != CRITIQUE
    if after.elsewhere or not (judged or name == "CRITIQUE"):
        return
    world.emit(prompts.block(before, after, options.artifact, world.changed_sections(before)))
    switched = judged and after.phase != before.phase
    if switched:
        world.show_artifact()
    if switched or before.iteration >= 2:
        world.emit(ReflexBoundary(switched=switched))
