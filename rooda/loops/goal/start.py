"""Implements `rooda goal run SPEC`; opens, runs and summarizes the sessions of a goal."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from rooda.agents.command import IN_TASK
from rooda.agents.reader import reader
from rooda.base import files
from rooda.base.json import Json
from rooda.base.text import counted, escape_line
from rooda.errors import FAILED, Interrupted, LimitReached, RoodaError, StateDamaged, Undecided, code_of_signal
from rooda.loops import launch
from rooda.loops.goal import checklist, foreign, table
from rooda.loops.goal import files as goal_files
from rooda.loops.goal.arguments import Prepared, prepare, request_of, specification
from rooda.loops.goal.effects import Asker, Context, Effects
from rooda.loops.goal.events import KIND, RunEnded
from rooda.loops.goal.files import NAME, Place
from rooda.loops.goal.loop import goal
from rooda.loops.goal.planning import Request
from rooda.loops.goal.prompts import run_ended
from rooda.loops.goal.state import COMPLETED, GoalState
from rooda.loops.goal.store import GoalStore, ended, finish_files, unfinished
from rooda.loops.goal.view import box
from rooda.loops.goal.watched_files import Watch, with_edit_watch
from rooda.loops.goal.world import World
from rooda.loops.kernel import Turns
from rooda.loops.remembered import with_remembered
from rooda.processes import lock
from rooda.processes.signals import Signals
from rooda.run import asked, questions
from rooda.run.event_records import Problem
from rooda.run.records import Ending, Owner
from rooda.run.session import Session
from rooda.run.spending import cause_facts
from rooda.settings.agents import with_programs
from rooda.settings.where import Where
from rooda.views.say import say
from rooda.views.summary import relative_place

INTERRUPTED = "Interrupted before the goal began: nothing to resume"
BY_LOOKING = "polling (at least)"


def run(where: Where, typed: Json) -> int:
    spec = specification(where, typed)
    prepared = prepare(where, typed)
    request = request_of(prepared, where, typed, spec)
    if prepared.options.worktree:

        def work(there: Where) -> int:
            agent = with_programs(prepared.agent, there.workspace, where.workspace)
            return _locked_run(prepared._replace(agent=agent), there, typed, request)

        return launch.in_worktree(where, NAME, prepared.screen, work, prepared.setup.worktree)
    return _locked_run(prepared, where, typed, request)


def _locked_run(prepared: Prepared, where: Where, typed: Json, request: Request) -> int:
    place = Place(where.workspace)
    held = launch.take_lock(place.lock, "a goal", NAME, prepared.screen)
    if _resumes(place, typed, prepared):
        asked.require_answer(where.workspace, NAME, NAME)
        from rooda.loops.goal.resume import require, resume_session

        there, merged = with_remembered(where, typed, NAME, NAME, require(place).brief.run)
        return resume_session(
            prepare(there, merged) if merged["remembered"] else prepared, there, held, {"yes": typed["yes"]}
        )
    return _new_goal(prepared, where, held, typed, request)


def _new_goal(prepared: Prepared, where: Where, held: lock.Lock | None, typed: Json, request: Request) -> int:
    place = Place(where.workspace)
    others = foreign.find(place)
    foreign.require_yes(others, typed["yes"], not prepared.headless)

    def begin(opened: OpenSession, turns: Turns) -> GoalState:
        foreign.keep(place, others, foreign.NOTES)
        earlier = goal_files.reports(place) if not others else {}
        goal_files.make_ready(place)
        try:
            state = checklist.start(opened.world, request._replace(edits=opened.edits), opened.session.folder.run)
        except (Interrupted, RoodaError) as problem:
            if isinstance(problem, Interrupted):
                opened.session.emit(Problem(text=INTERRUPTED))
            opened.session.emit(_ended_unplanned(problem))
            raise
        foreign.keep(place, others, foreign.STATES)
        state = checklist.announce(turns, state, opened.world)
        goal_files.delete_unchanged(earlier)
        return state

    return run_session(prepared, where, held, "all" if typed["yes"] else "", begin, request.spec)


def _ended_unplanned(problem: Interrupted | RoodaError) -> RunEnded:
    """Return the end event of a session in which no goal started."""
    if isinstance(problem, Interrupted):
        code = code_of_signal(problem.number)
        return RunEnded(status="failed", reason="interrupted", note=INTERRUPTED, exit_code=code)
    reason, cause = ("shared limit", problem.cause) if isinstance(problem, LimitReached) else ("unplanned", None)
    return RunEnded(status="failed", reason=reason, note=problem.what, exit_code=problem.code, **cause_facts(cause))


def _resumes(place: Place, typed: Json, prepared: Prepared) -> bool:
    """True to resume an unfinished goal, False to start a new one; ask the user if both are possible."""
    try:
        state = unfinished(place)
    except StateDamaged as problem:
        if foreign.is_ours(place):
            launch.warn(prepared.screen, f"{problem.what}; starting fresh")
        return False
    if state is None or typed["fresh"]:
        return False
    found = f"Found an unfinished goal: {counted(state.iteration, 'iteration')}, {state.done}/{len(state.steps)} steps."
    while questions.at_terminal() and not prepared.headless:
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
        "Resume with: rooda goal continue\nend it with: rooda goal cancel\nor start over: rooda goal run --fresh …",
    )


def print_status(state: GoalState) -> None:
    say("\n".join(map(escape_line, table.lines(table.facts(state, False, None)))))


class OpenSession(NamedTuple):
    """An open session of a running goal."""

    session: Session
    world: World
    store: GoalStore
    edits: str  # how file edits are counted


@contextmanager
def open_session(
    prepared: Prepared, where: Where, held: lock.Lock | None, yes: str, resumed: bool = False, spec: str = ""
) -> Iterator[OpenSession]:
    """Open a session: handle signals, create the run's folder and watch file edits until the block ends."""
    place, screen, setup = Place(where.workspace), prepared.screen, prepared.setup
    screen.place = screen.place or relative_place(where.workspace)
    if held or not lock.is_held(place.lock):  # a stale request; while a goal runs, it is for that goal
        files.remove(place.request)
    watch = Watch(where.workspace)
    with Signals() as signals:
        owner = Owner(KIND, NAME, setup, resumed, prepared.options.remembered, spec)
        tick = with_edit_watch(watch, screen.tick())
        session = Session(where.workspace, owner, signals, screen.show, tick, held)
        session.hide(prepared.agent.env)
        context = Context(
            workspace=where.workspace,
            folder=place.folder,
            shape=place.shape,
            request=place.request,
            agent=prepared.agent,
            setup=setup,
            verify_timeout=prepared.number("verify_timeout"),
            cost_per_call=prepared.number("cost_per_call"),
            may_ask=bool(os.environ.get(IN_TASK)) or not os.environ.get("ROODA_RUN"),
            yes=yes,
        )
        world = Effects(session, context, Asker(signals, prepared.headless), watch)
        stream = "the agent's event stream, else " if reader(prepared.agent.output).tells_edits else ""
        try:
            yield OpenSession(
                session,
                world,
                GoalStore(place, session.emit, session.clean, session.inbox.new_limits),
                f"{stream}{BY_LOOKING}",
            )
        finally:
            screen.close()
            session.close()


def run_session(
    prepared: Prepared,
    where: Where,
    held: lock.Lock | None,
    yes: str,
    begin: Callable[[OpenSession, Turns], GoalState],
    spec: str,
    resumed: bool = False,
) -> int:
    """Run the loop from the state that `begin` returns; return the exit code."""
    place = Place(where.workspace)
    with open_session(prepared, where, held, yes, resumed, spec) as opened:
        try:
            turns = Turns(opened.store)
            ending = goal(turns, begin(opened, turns), opened.world)
        except Interrupted as cut:
            return code_of_signal(cut.number)
        except OSError as problem:
            note = f"{problem.filename or place.folder}: {problem.strerror or problem}"
            opened.session.emit(RunEnded(reason="files", note=note, status="in_progress", exit_code=FAILED))
            raise
        except LimitReached as limit:  # reached during planning; once the loop runs, it pauses instead
            hint = "Nothing was started. Run it again with a higher limit, or later."
            raise LimitReached(limit.what, hint, limit.cause) from None
    if state := opened.store.last:
        write_summary(place, state)
        _delete_state_files(place, state)
    return ending.code


def finish(place: Place) -> GoalState | None:
    """Write the files that a kill left unwritten at a goal's end; return the state, None if nothing was missing."""
    state = None if lock.is_held(place.lock) else ended(place)
    if state is None or (finish_files(place, state) and os.path.exists(place.summary)):
        return None
    write_summary(place, state)
    _delete_state_files(place, state)
    return state


def _delete_state_files(place: Place, state: GoalState) -> None:
    if state.status == COMPLETED and state.keep == "delete":
        goal_files.delete_state(place)


def write_summary(place: Place, state: GoalState) -> None:
    """Write `summary.md`; a failure to write it is ignored."""
    ended_by = run_ended(state, Ending(state.pause, 0, note=state.reason, cause=state.cause))
    try:
        goal_files.make_ready(place)
        files.replace_unsynced(place.summary, table.summary(state, box(ended_by.facts)).encode("utf-8", "replace"))
    except OSError:
        pass
