"""`rooda goal run SPEC`: plan it, then work on it."""

from rooda.base.json import Json
from rooda.base.text import visible
from rooda.errors import Interrupted, LimitReached, RoodaError, StateDamaged, Undecided, code_of_signal
from rooda.loops import launch
from rooda.loops.goal import files
from rooda.loops.goal.checklist import announced, start
from rooda.loops.goal.events import RunEnded
from rooda.loops.goal.files import NAME, Place
from rooda.loops.goal.planning import Wish
from rooda.loops.goal.ready import Ready, ready
from rooda.loops.goal.start import Opened, carried_out
from rooda.loops.goal.state import GoalState
from rooda.loops.goal.store import unfinished
from rooda.loops.goal.table import facts, lines
from rooda.loops.goal.wish import wish
from rooda.loops.kernel import Run
from rooda.loops.remembered import taken_over
from rooda.processes import lock
from rooda.run import questions
from rooda.run.event_records import Problem
from rooda.run.spending import cause_facts
from rooda.settings.where import Where

CUT_SHORT = "Interrupted before the goal began: nothing is there to go on with"


def act(where: Where, typed: Json) -> int:
    made = ready(where, typed)
    wanted = wish(made, where, typed)
    if made.asked.worktree:
        from rooda.loops import launch

        return launch.inside(where, NAME, NAME, made.screen, lambda there: _begun(made, there, typed, wanted))
    return _begun(made, where, typed, wanted)


def _begun(made: Ready, where: Where, typed: Json, wanted: Wish) -> int:
    place = Place(where.workspace)
    held = launch.locked(place.lock, "a goal", NAME, made.screen)
    if _goes_on(place, typed, made):
        from rooda.loops.goal.resume import require, resumed

        there, merged = taken_over(where, typed, NAME, NAME, require(place).brief.run)
        return resumed(ready(there, merged) if merged["kept"] else made, there, held, {"yes": typed["yes"]})
    return _fresh(made, where, held, typed, wanted)


def _fresh(made: Ready, where: Where, held: lock.Lock | None, typed: Json, wanted: Wish) -> int:
    def begin(open_: Opened, run: Run) -> GoalState:
        place = Place(where.workspace)
        files.ready(place)
        earlier = files.reports(place)
        try:
            state = start(open_.world, wanted._replace(edits=open_.edits), open_.session.folder.run)
        except (Interrupted, RoodaError) as problem:
            if isinstance(problem, Interrupted):
                open_.session.emit(Problem(text=CUT_SHORT))
            open_.session.emit(_unplanned(problem))
            raise
        state = announced(run, state, open_.world)
        files.clear(earlier)
        return state

    return carried_out(made, where, held, "all" if typed["yes"] else "", begin, wanted.spec)


def _unplanned(problem: Interrupted | RoodaError) -> RunEnded:
    """An end before there is a goal: for its log, for hooks, and for `why`."""
    if isinstance(problem, Interrupted):
        code = code_of_signal(problem.number)
        return RunEnded(status="failed", reason="interrupted", note=CUT_SHORT, exit_code=code)
    reason, cause = ("shared limit", problem.cause) if isinstance(problem, LimitReached) else ("unplanned", None)
    return RunEnded(status="failed", reason=reason, note=problem.what, exit_code=problem.code, **cause_facts(cause))


def _goes_on(place: Place, typed: Json, made: Ready) -> bool:
    """Is it the unfinished goal that is meant? Undecided if nobody says."""
    try:
        state = unfinished(place)
    except StateDamaged as problem:
        launch.warn(made.screen, f"{problem.what}; starting fresh")
        return False
    if state is None or typed["fresh"]:
        return False
    found = f"An unfinished goal is here: {state.iteration} iterations, {state.done}/{len(state.steps)} steps."
    while questions.at_terminal() and not made.headless:
        answer = questions.typed_answer(f"{found}\nResume it, start fresh, or view its status? [r/f/v] ")
        word = (answer or "").strip().lower()[:1]
        if answer is None:
            break
        if word in ("r", "f"):
            return word == "r"
        if word == "v":
            print_status(state)
    raise Undecided(
        f"{found} Nothing was started.",
        "Go on with: rooda goal continue\nend it with: rooda goal cancel\nor start over with: rooda goal run --fresh …",
    )


def print_status(state: GoalState) -> None:
    import click

    click.echo("\n".join(map(visible, lines(facts(state, False, None)))))
