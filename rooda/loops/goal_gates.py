"""Where a person is asked before the loop goes on, and what the answer means."""

from functools import partial

from rooda.kernel.run import Run
from rooda.loops.goal_breakers import Pause, forgiven
from rooda.loops.goal_close import YES, conclude
from rooda.loops.goal_state import IN_PROGRESS, GoalState
from rooda.policy import goal_words
from rooda.policy.goal_effects import GoalWorld, Question

AT_THE_END = ("G3", Pause.OBSERVE, Pause.TESTS, Pause.UNTOLD, Pause.FILES)
WAITING = {"G1": "G1", "G2": "G2", **dict.fromkeys(AT_THE_END, "close")}


def asked(run: Run, state: GoalState, world: GoalWorld) -> GoalState:
    """A question that waits. Everything but a yes pauses."""
    if state.gate == "close":
        closed = conclude(run, state._replace(gate="", pause="", reason=""), world, state.claim, state.iteration)
        return state if world.signalled() else run.carry(closed)
    if not state.gated:
        return state._replace(gate="")
    answer = run.step(f"ASK {state.gate}", partial(world.question, question(state)))
    if world.signalled():
        return state
    opened = run.carry(state._replace(gate=""))
    if answer is not None and goal_words.skips_gates(answer):
        return opened._replace(gates_off=True)
    if answer is not None and answer.strip().lower() in YES:
        return opened
    return opened._replace(pause=state.gate, reason=f"gate {state.gate}")


def question(state: GoalState) -> Question:
    if state.gate == "G1":
        numbered = tuple(f"{place}. {name}" for place, name in enumerate(state.steps, 1))
        return Question("G1", "Proceed?", (f"G1: Decomposed into {len(state.steps)} steps:", *numbered))
    return Question("G2", state.asks)


def reopened(state: GoalState) -> GoalState:
    """A goal that goes on: what waited waits again, the breaker that fired begins anew, everything else stays."""
    gate = WAITING.get(state.pause, state.gate)
    opened = forgiven(state, state.pause)
    return opened._replace(status=IN_PROGRESS, exit_signal=False, pause="", reason="", gate=gate)
