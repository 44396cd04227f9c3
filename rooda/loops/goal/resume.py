"""`rooda goal continue`: go on with a goal that paused, was interrupted or crashed."""

import os
from functools import reduce

import click

from rooda.agents.records import Agent
from rooda.agents.reply import interrupted_reply
from rooda.base.json import Json
from rooda.errors import FAILED, OK, UsageProblem
from rooda.loops import launch
from rooda.loops.goal import effects, plan
from rooda.loops.goal import shape as goal_shape
from rooda.loops.goal.breakers import MOST_DOLLARS, MOST_ITERATIONS, Pause
from rooda.loops.goal.criteria import Mark
from rooda.loops.goal.edit_counts import written_after
from rooda.loops.goal.events import RunResumed
from rooda.loops.goal.files import NAME, Place
from rooda.loops.goal.loop import reopened
from rooda.loops.goal.rules import paid, with_step
from rooda.loops.goal.start import Opened, Ready, carried_out, finished, ready, within
from rooda.loops.goal.state import COMPLETED, IN_PROGRESS, GoalState, money
from rooda.loops.goal.store import unfinished
from rooda.loops.goal.world import CallResult, Question, World
from rooda.loops.kernel import Turns
from rooda.loops.remembered import taken_over, whole
from rooda.processes import lock
from rooda.run import folder
from rooda.run.events import NAME as events_NAME
from rooda.run.history import SessionLog
from rooda.settings.where import Where

CUT_SHORT = ("", Pause.SIGNAL)  # no cause that a person has decided about: a limit that was reached has yet to pause it
MOST_NAMED = 20  # files that a call which died may have changed


def continue_(where: Where, typed: Json) -> int:
    place = Place(where.workspace)
    if state := finished(place):
        click.echo(f"[LOOP] The goal has ended: {state.status}. Its end was cut off; its files are whole now.")
        return OK if state.status == COMPLETED else FAILED
    where, typed = taken_over(where, typed, NAME, NAME, require(place).brief.run)
    made = ready(where, typed)
    held = launch.locked(place.lock, "a goal", NAME, made.screen)
    return resumed(made, where, held, typed)


def require(place: Place) -> GoalState:
    state = unfinished(place)
    if state is None:
        raise UsageProblem("There is no goal to go on with here.", "Start one with: rooda goal run SPEC")
    return state


def resumed(made: Ready, where: Where, held: lock.Lock | None, typed: Json) -> int:
    place = Place(where.workspace)
    found = require(place)
    limits = made.setup.budget if any(made.setup.budget) else found.brief.limits
    made = made._replace(setup=made.setup._replace(budget=limits), headless=made.headless or found.brief.headless)
    spec, doubt = whole(where.workspace, NAME, NAME, found.brief.spec, found.brief.run)
    if doubt:
        launch.warn(made.screen, doubt)
    found = found._replace(brief=found.brief._replace(limits=limits, spec=spec))
    crashed = found.status == IN_PROGRESS
    if crashed:
        found = _cut_off(made, place, found)

    def begin(open_: Opened, turns: Turns) -> GoalState:
        known = reshaped(open_.world, found) if typed.get("reload_shape") else found
        state, notes = granted(open_.world, known, typed)
        if typed.get("no_gates"):
            state = state._replace(gates_off=True)
        _announce(
            open_.world, state, [*notes, *(["The last call was cut off; its step is repeated."] if crashed else [])]
        )
        return state

    return carried_out(made, where, held, "one" if typed.get("yes") else "", begin, spec, True)


def _cut_off(made: Ready, place: Place, state: GoalState) -> GoalState:
    """After a crash: what the calls that died had cost, and what they had changed."""
    calls = unpaid(place.workspace, NAME, made.agent, made.number("cost_per_call"))
    state = reduce(paid, calls, state)
    changed = ", ".join(_changed_since(place))
    return state._replace(
        feedback=(*state.feedback, *([f"The last call was cut off; it had changed: {changed}"] if changed else []))
    )


def granted(world: World, state: GoalState, typed: Json) -> tuple[GoalState, list[str]]:
    """More money or iterations, if that is what it waits for; the cause of the pause is forgiven."""
    kind, notes, brief = state.pause, [], state.brief
    budget, limit = typed.get("budget"), typed.get("iterations")
    if hurt := world.violations([each for each in brief.mustNot if each.violated_if], state.iteration).true:
        words = f"mustNot: {', '.join(hurt)}"
        waiting = reopened(state)  # the question that waits is asked when this is put right
        return waiting._replace(pause=Pause.MUST_NOT, reason=words), ["What must not be is true."]
    if kind == Pause.BUDGET and not budget:
        ask = f"Add {money(brief.allowance)} and go on?"
        answer = world.ask_user(Question("more", ask, hint="[y/N]")) if world.attended() else None
        budget = brief.allowance if answer == "y" else None
        if budget is None:
            return state, ["The budget is used up. Say how much more: rooda goal continue --budget=25"]
    if budget:
        within("budget", state.budget + budget, MOST_DOLLARS, typed)
        state = state._replace(budget=round(state.budget + budget, 6))
        notes.append(f"Budget: {money(state.budget)}")
    if limit or kind == Pause.LIMIT or (state.iteration >= state.limit and kind not in CUT_SHORT):
        more = state.limit + (limit or brief.iterations)
        within("iterations", more, MOST_ITERATIONS, typed)
        state = state._replace(limit=more)
    return reopened(state), notes


def reshaped(world: World, state: GoalState) -> GoalState:
    """SHAPE.md as it is now: new criteria and mustNot entries join, known ones are verified as it says."""
    text, sha = world.shape_file()
    shape = goal_shape.read_shape(text)
    brief = state.brief
    known = dict(zip(brief.criteria, state.marks, strict=True))
    criteria = plan.merged(brief.criteria, *shape.criteria)
    marks = [known.get(each, Mark(False, each.verification)) for each in criteria]  # shown in another way: not yet
    brief = brief._replace(
        criteria=criteria,
        mustNot=plan.unique(brief.mustNot, shape.must_not),
        used_shape_file=brief.used_shape_file or bool(shape.criteria),
    )
    return state._replace(brief=brief, marks=tuple(marks), shape_sha256=sha)


def _announce(world: World, state: GoalState, notes: list[str]) -> None:
    world.emit(
        RunResumed(
            spec=state.brief.spec,
            done=state.done,
            total=len(state.steps),
            iterations=state.iteration,
            unmet=list(state.unmet),
            next=with_step(state).step,
            notes=notes,
        )
    )


def _changed_since(place: Place) -> list[str]:
    """Files that are newer than the state: what a call that died has left."""
    try:
        then = os.stat(place.state).st_mtime
    except OSError:
        return []
    found = [os.path.relpath(path, place.workspace) for path in written_after(place.workspace, then)]
    return sorted(found)[:MOST_NAMED]


# Calls that a crash cut off: what they cost is spent, though nobody lived to write it down.


def unpaid(workspace: str, name: str, agent: Agent, per_call: float) -> list[CallResult]:
    """Those of the latest session that began after its state was written last, read from their transcripts."""
    events = os.path.join(folder.latest(workspace, name) or "", events_NAME)
    calls = SessionLog(events).look().unsaved
    return [effects.result_of(agent, interrupted_reply(call, agent, answer=True), 0, per_call, {}) for call in calls]
