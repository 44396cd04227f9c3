"""`rooda goal run SPEC`: plan it, then work on it."""

import os
import sys

from rooda.base import files as base_files
from rooda.base.json import Json, loads
from rooda.base.text import escape_line
from rooda.errors import Interrupted, LimitReached, RoodaError, StateDamaged, Undecided, UsageProblem, code_of_signal
from rooda.loops import launch
from rooda.loops.goal import files, scoring
from rooda.loops.goal import plan as goal_plan
from rooda.loops.goal.checklist import announced, start
from rooda.loops.goal.criteria import EXECUTION, Criterion
from rooda.loops.goal.events import RunEnded
from rooda.loops.goal.files import NAME, Place
from rooda.loops.goal.plan import Plan
from rooda.loops.goal.planning import Wish
from rooda.loops.goal.scoring import COLLEAGUE, TOOL, Scores
from rooda.loops.goal.start import Opened, Ready, blind, budget, carried_out, iterations, ready, variable
from rooda.loops.goal.state import GoalState
from rooda.loops.goal.store import unfinished
from rooda.loops.goal.table import facts, lines
from rooda.loops.kernel import Turns
from rooda.loops.remembered import taken_over
from rooda.processes import lock
from rooda.run import questions
from rooda.run.event_records import Problem
from rooda.run.spending import cause_facts
from rooda.settings.where import Where

CUT_SHORT = "Interrupted before the goal began: nothing is there to go on with"


def run(where: Where, typed: Json) -> int:
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
    def begin(open_: Opened, turns: Turns) -> GoalState:
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
        state = announced(turns, state, open_.world)
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

    click.echo("\n".join(map(escape_line, lines(facts(state, False, None)))))


# From what was typed to what is wished for.
SHAPES = {"tool": TOOL, "colleague": COLLEAGUE, "auto": "", "": ""}


def specification(where: Where, typed: Json) -> str:
    """Word for word: the argument, or a file's content."""
    spec, path = typed.get("spec"), typed.get("file")
    if (spec is None) == (path is None):
        raise UsageProblem("Say what is to be done: a specification, or --file FILE; not both.")
    if path is not None:
        spec = base_files.to_text(sys.stdin.buffer.read()) if path == "-" else _content(where, path)
    if not str(spec).strip():
        raise UsageProblem("The specification is empty.")
    return str(spec)


def _content(where: Where, path: str) -> str:
    place = os.path.join(where.workspace, path) if not os.path.exists(path) else path
    try:
        return base_files.text(place)
    except OSError as problem:
        raise UsageProblem(f"{path} can't be read: {problem.strerror or problem}.") from None


def wish(ready: Ready, where: Where, typed: Json) -> Wish:
    look = ready.look
    if typed["keep_state"] and typed["delete_state"]:
        raise UsageProblem("--keep-state and --delete-state are mutually exclusive.")
    return Wish(
        spec=specification(where, typed),
        plan=plan(where, typed["plan"]),
        scores=scores(typed["score"]),
        shape=shape(typed["shape"]),
        workflow=(typed["workflow"] or "").upper(),
        evidence=" ".join((typed["evidence"] or "").split()),
        offline=typed["offline"],
        criteria=(*criteria(typed["criterion"], False), *criteria(typed["holdout"], True)),
        gates_off=typed["no_gates"],
        headless=ready.headless,
        high_stakes=typed["high_stakes"],
        keep="keep" if typed["keep_state"] else "delete" if typed["delete_state"] else "",
        iterations=iterations(ready, typed),
        budget=budget(ready, typed),
        limits=ready.setup.budget,
        blind=blind(ready),
        exit_signal_source=str(look.value("exit_signal_source")),
        must_not_judge=bool(look.value("must_not_judge")),
        observation_evidence=str(look.value("observation_evidence")),
    )


def shape(typed: str | None) -> str:
    word = (typed or variable("SHAPE")).lower()
    if word not in SHAPES:
        raise UsageProblem(f"The shape in the environment must be auto, tool or colleague, got {word!r}.")
    return SHAPES[word]


def scores(typed: str | None) -> Scores | None:
    found = scoring.typed(typed) if typed is not None else None
    if isinstance(found, str):
        raise UsageProblem(f"{found}.")
    return found


def plan(where: Where, path: str | None) -> Plan | None:
    """A plan as JSON or as a list of tasks; what is unclear about it the start says."""
    if path is None:
        return None
    text = _content(where, path)
    if goal_plan.is_list(text):
        return goal_plan.read_tasks(text)
    try:
        found = loads(text)
    except ValueError as problem:
        raise UsageProblem(f"{path} is neither JSON nor a list of tasks: {problem}.") from None
    if not isinstance(found, dict):
        raise UsageProblem(f"{path} must hold one JSON object.")
    return goal_plan.read_plan(found)


def criteria(pairs: tuple[str, ...], holdout: bool) -> list[Criterion]:
    found = []
    for pair in pairs:
        name, equals, command = pair.partition("=")
        name = " ".join(name.split())
        if not equals or not name or not command.strip():
            option = "--holdout" if holdout else "--criterion"
            raise UsageProblem(f"{option} {pair!r} is not of the form NAME=COMMAND.")
        found.append(Criterion(name, EXECUTION, command.strip(), holdout=holdout))
    return found
