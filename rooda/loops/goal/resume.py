"""`rooda goal continue`: resumes a goal that paused, was interrupted or crashed."""

import os
from functools import reduce

from rooda.agents.records import Agent
from rooda.agents.reply import interrupted_reply
from rooda.base.json import Json
from rooda.base.text import counted
from rooda.errors import FAILED, OK, UsageProblem
from rooda.loops import launch, signed, trusting
from rooda.loops.goal import effects, foreign, plan
from rooda.loops.goal import shape as goal_shape
from rooda.loops.goal.arguments import Prepared, check_limit, prepare, shape_source
from rooda.loops.goal.criteria import Mark
from rooda.loops.goal.events import RunResumed
from rooda.loops.goal.files import NAME, Place
from rooda.loops.goal.loop import reopened
from rooda.loops.goal.rules import MOST_DOLLARS, MOST_ITERATIONS, Pause, add_cost, needs_cause, over_budget, with_step
from rooda.loops.goal.start import OpenSession, finish, run_session
from rooda.loops.goal.state import COMPLETED, IN_PROGRESS, GoalState, money
from rooda.loops.goal.store import unfinished
from rooda.loops.goal.view import NO_CAUSE
from rooda.loops.goal.watched_files import written_after
from rooda.loops.goal.world import CallResult, Question, World
from rooda.loops.kernel import Turns
from rooda.loops.remembered import task_with_secrets, with_remembered
from rooda.processes import lock
from rooda.run import asked, folder
from rooda.run.events import NAME as events_NAME
from rooda.run.history import SessionLog
from rooda.settings.where import Where
from rooda.views.say import say

CUT_SHORT = ("", Pause.SIGNAL)  # pauses by a crash or a signal
MOST_NAMED = 20  # changed files listed after a call that was cut off


def continue_(where: Where, typed: Json) -> int:
    place = Place(where.workspace)
    foreign.refuse(place)
    signed.require(where.workspace, NAME, NAME)
    if state := finish(place):
        say(f"[LOOP] The goal has ended: {state.status}. Its missing files were written.")
        return OK if state.status == COMPLETED else FAILED
    brief = require(place).brief
    asked.require_answer(where.workspace, NAME, NAME)
    where, typed = with_remembered(where, typed, NAME, NAME, brief.run)
    prepared = prepare(where, typed, resumed=True)
    held = launch.take_lock(place.lock, "a goal", NAME, prepared.screen)
    return resume_session(prepared, where, held, typed)


def require(place: Place) -> GoalState:
    state = unfinished(place)
    if state is None:
        raise UsageProblem("There is no goal to resume here.", "Start one with: rooda goal run SPEC")
    return state


def resume_session(prepared: Prepared, where: Where, held: lock.Lock | None, typed: Json) -> int:
    place = Place(where.workspace)
    found = require(place)
    if typed.get("reload_shape"):
        trusting.require_files(prepared.look.settings, [shape_source(where)])
    setup = launch.with_limits(prepared.setup, found.brief.limits._asdict(), typed)
    prepared = prepared._replace(setup=setup, headless=prepared.headless or found.brief.headless)
    spec, doubt = task_with_secrets(where.workspace, NAME, NAME, found.brief.spec, found.brief.run)
    if doubt:
        launch.warn(prepared.screen, doubt)
    found = with_limits(found._replace(brief=found.brief._replace(limits=setup.budget, spec=spec)), typed)
    crashed = found.status == IN_PROGRESS
    if crashed:
        found = _with_lost_calls(prepared, place, found)

    def begin(opened: OpenSession, turns: Turns) -> GoalState:
        known = with_shape_file(opened.world, found) if typed.get("reload_shape") else found
        state, notes = with_more(opened.world, known, typed)
        if typed.get("no_gates"):
            state = state._replace(gates_off=True)
        _report(
            opened.world, state, [*notes, *(["The last call was cut off; its step is repeated."] if crashed else [])]
        )
        return state

    return run_session(prepared, where, held, "one" if typed.get("yes") else "", begin, spec, True)


def _with_lost_calls(prepared: Prepared, place: Place, state: GoalState) -> GoalState:
    """Add the cost of calls that a crash cut off, and list the files that these calls changed, for the next prompt."""
    calls = lost_calls(place.workspace, NAME, prepared.agent, prepared.number("cost_per_call"))
    state = reduce(add_cost, calls, state)
    changed = ", ".join(_changed_since(place))
    return state._replace(
        feedback=(*state.feedback, *([f"The last call was cut off; it had changed: {changed}"] if changed else []))
    )


def with_more(world: World, state: GoalState, typed: Json) -> tuple[GoalState, list[str]]:
    """Raise the limit that paused the goal, and reopen the goal if possible; return the state and notes to print."""
    kind, notes, brief = state.pause, [], state.brief
    budget, limit = typed.get("budget"), typed.get("iterations")
    if violations := world.violations([each for each in brief.mustNot if each.violated_if], state.iteration).true:
        words = f"mustNot: {', '.join(violations)}"
        waiting = reopened(state)  # rooda asks the pending question once the violation is fixed
        return waiting._replace(pause=Pause.MUST_NOT, reason=words), ["A mustNot entry is violated."]
    if kind == Pause.BUDGET and not budget and (state.spent.lost or over_budget(state)):
        ask = f"Add {money(brief.allowance)} and continue?"
        answer = world.ask_user(Question("more", ask, hint="[y/N]")) if world.attended() else None
        budget = brief.allowance if answer == "y" else None
        if budget is None:
            return state, ["The budget is used up. Add to it with: rooda goal continue --budget=25"]
    if budget:
        check_limit("budget", state.budget + budget, MOST_DOLLARS, typed)
        state = state._replace(budget=round(state.budget + budget, 6))
        notes.append(f"Budget: {money(state.budget)}")
    if limit or (state.iteration >= state.limit and kind not in CUT_SHORT):
        more = state.limit + (limit or brief.iterations)
        check_limit("iterations", more, MOST_ITERATIONS, typed)
        state = state._replace(limit=more)
    return reopened(state), notes


def with_limits(state: GoalState, typed: Json) -> GoalState:
    """Return the state with the limits that -n and --max-cost set. They are totals, as in all kinds of loops."""
    limit, budget = typed.get("max_iterations"), typed.get("max_cost")
    if limit and limit <= state.iteration:
        what = f"-n {limit} is too low: the goal has done {counted(state.iteration, 'iteration')}."
        raise UsageProblem(what, f"To allow more: rooda goal resume -n {state.iteration + state.brief.iterations}")
    if limit:
        check_limit("iterations", limit, MOST_ITERATIONS, typed)
        state = state._replace(limit=limit)
    if budget and budget > state.budget:
        check_limit("budget", budget, MOST_DOLLARS, typed)
        state = state._replace(budget=float(budget))
    return state


def with_shape_file(world: World, state: GoalState) -> GoalState:
    """Read SHAPE.md again: add new criteria and mustNot entries, and update how known criteria are verified."""
    text, sha = world.shape_file()
    shape = goal_shape.read_shape(text)
    brief = state.brief
    known = dict(zip(brief.criteria, state.marks, strict=True))
    criteria = plan.merged(brief.criteria, *shape.criteria)
    marks = [
        known.get(each, Mark(False, each.verification)) for each in criteria
    ]  # unmet again if the verification method changed
    brief = brief._replace(
        criteria=criteria,
        mustNot=plan.unique(brief.mustNot, shape.must_not),
        used_shape_file=brief.used_shape_file or bool(shape.criteria),
    )
    return state._replace(brief=brief, marks=tuple(marks), shape_sha256=sha)


def _report(world: World, state: GoalState, notes: list[str]) -> None:
    world.emit(
        RunResumed(
            spec=state.brief.spec,
            done=state.done,
            total=len(state.steps),
            iterations=state.iteration,
            unmet=list(state.unmet),
            next=with_step(state).step,
            notes=[*notes, *([NO_CAUSE] if needs_cause(state) else [])],
        )
    )


def _changed_since(place: Place) -> list[str]:
    """Return the files that are newer than the state file."""
    try:
        then = os.stat(place.state).st_mtime
    except OSError:
        return []
    found = [os.path.relpath(path, place.workspace) for path in written_after(place.workspace, then)]
    return sorted(found)[:MOST_NAMED]


def lost_calls(workspace: str, name: str, agent: Agent, per_call: float) -> list[CallResult]:
    """Return the results, read from transcripts, of calls that the latest session started after its last save."""
    events = os.path.join(folder.latest(workspace, name) or "", events_NAME)
    calls = SessionLog(events).refresh().unsaved
    return [effects.result_of(agent, interrupted_reply(call, agent, answer=True), 0, per_call, {}) for call in calls]
