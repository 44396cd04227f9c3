"""Where a person is asked before the loop goes on, and what the answer means."""

from functools import partial

from rooda.loops.goal import wording
from rooda.loops.goal.breakers import OFFERED, Pause, forgiven, raised
from rooda.loops.goal.closing import YES, conclude
from rooda.loops.goal.state import IN_PROGRESS, PAUSED, GoalState, money
from rooda.loops.goal.world import GoalWorld, Question
from rooda.loops.kernel import Run
from rooda.run.records import Ending

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
    if answer is not None and wording.skips_gates(answer):
        return opened._replace(gates_off=True)
    if answer is not None and answer.strip().lower() in YES:
        return opened
    return opened._replace(pause=state.gate, reason=f"gate {state.gate}")


def question(state: GoalState) -> Question:
    if state.gate == "G1":
        numbered = tuple(f"{place}. {name}" for place, name in enumerate(state.steps, 1))
        return Question("G1", "Proceed?", (f"G1: Decomposed into {len(state.steps)} steps:", *numbered))
    return Question("G2", state.asks)


def offered(run: Run, state: GoalState, ending: Ending, world: GoalWorld) -> GoalState | None:
    """After a breaker a person at a terminal may go on at once; the pause is written first. None: it stays."""
    if ending.kind not in OFFERED or not world.attended():
        return None
    further = raised(state, ending.kind)
    if further is None:
        return None
    state = run.carry(state._replace(status=PAUSED, pause=ending.kind, reason=ending.note, updated_at=world.now()))
    more = {Pause.BUDGET: f"Add {money(state.brief.allowance)} and continue?"}
    more |= {Pause.LIMIT: f"Continue for {state.brief.iterations} more?"}
    ask = Question("more", more.get(ending.kind, "Continue?"), (f"[LOOP] ⏸ {ending.note}",), "[y/N]")
    answer = run.step("MORE", partial(world.question, ask))
    if world.signalled() or answer is None or answer.strip().lower() not in ("y", "yes"):
        return None
    return reopened(further._replace(pause=ending.kind))


def reopened(state: GoalState) -> GoalState:
    """A goal that goes on: what waited waits again, the breaker that fired begins anew, everything else stays."""
    gate = WAITING.get(state.pause, state.gate)
    opened = forgiven(state, state.pause)
    return opened._replace(status=IN_PROGRESS, exit_signal=False, pause="", reason="", cause=None, gate=gate)
