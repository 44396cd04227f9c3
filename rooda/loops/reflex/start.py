"""Starts or resumes a reflex loop, and runs it to its end."""

import os
from typing import NamedTuple

from rooda.agents.records import Bounds
from rooda.base import clock
from rooda.base import files as base_files
from rooda.base.json import Json
from rooda.errors import FAILED as EXIT_FAILED
from rooda.errors import (
    OK,
    UNFINISHED,
    Cause,
    Interrupted,
    LimitReached,
    RoodaError,
    Undecided,
    UsageProblem,
    code_of_signal,
)
from rooda.loops import launch, options
from rooda.loops.kernel import Run
from rooda.loops.options import RunOptions
from rooda.loops.reflex import files, rules, scoring
from rooda.loops.reflex import store as reflex_store
from rooda.loops.reflex.drafting import Proposal
from rooda.loops.reflex.effects import CAP, Effects, Permission, exec_checks, show_artifact
from rooda.loops.reflex.events import KIND, RunEnded, RunResumed, RunStarted
from rooda.loops.reflex.files import START_NEW, Found, Place, no_history_error
from rooda.loops.reflex.history import JUDGED
from rooda.loops.reflex.keys import OWN
from rooda.loops.reflex.loop import reflex
from rooda.loops.reflex.setup import Prepared, prepared
from rooda.loops.reflex.state import PLAN, PREPARE, PRODUCE_PREPARE, RUNNING, State, reopened
from rooda.loops.reflex.store import ReflexStore
from rooda.loops.reflex.world import CallFailed, LoopOptions
from rooda.loops.remembered import with_remembered
from rooda.processes import lock
from rooda.processes.signals import Signals
from rooda.run.event_records import limits_of
from rooda.run.records import Owner
from rooda.run.session import Session
from rooda.run.setup import Setup
from rooda.run.spending import cause_facts
from rooda.settings.lookup import Lookup
from rooda.settings.where import Where
from rooda.views.summary import relative_place

EXIT_CODES = {scoring.COMPLETED: OK, scoring.STOPPED: UNFINISHED, scoring.FAILED: EXIT_FAILED}


class Unfinished(NamedTuple):
    """The reason why a session ended before its loop did. The loop can be resumed if its files still exist."""

    reason: str
    note: str
    exit_code: int
    cause: Cause | None = None


def start(proposal: Proposal, here: Where, asked: RunOptions, made: Prepared) -> int:
    """Start the loop that the user confirmed, run it to its end, and return the exit code."""
    reflex_store.tidy_all(here.workspace)
    if asked.opening == "fresh":
        _end_open_loops(here.workspace)
    place = Place(here.workspace, unused_alias(here.workspace, proposal.alias))
    held = launch.take_lock(place.lock, f"the loop '{place.alias}'", place.alias, made.screen)
    reflex_store.require_none_running(here.workspace)  # another loop may have started before this one took the lock
    store = ReflexStore(place, None)
    if proposal.artifact:
        store.stage(proposal.artifact)
    return run_session(place, store, first_state(place, proposal), made, held, asked)


def resume_loop(place: Place, here: Where, typed: Json) -> int:
    """Resume a saved loop with the options of its start, run it to its end, and return the exit code."""
    limit = typed.get("max_iterations")
    require_open(place, files.load(place), limit)
    _refuse_beside_another(place)
    here, typed = with_remembered(here, typed, "reflex", place.alias)
    asked = options.run_options(typed)
    made = _limited(prepared(here, asked, own_flags(typed), resumed=True), place, asked)
    held = launch.take_lock(place.lock, f"the loop '{place.alias}'", place.alias, made.screen)
    reflex_store.tidy_all(here.workspace)
    found = files.load(place)
    state = require_open(place, found, limit)
    if found.rebuilt:
        launch.warn(made.screen, f"{place.run} could not be read; it was rebuilt from history.jsonl.")
    elif not found.history:
        launch.warn(made.screen, f"{place.history} has no event of this loop; it continues from run.json alone.")
    store = reflex_store.open_store(place, found)
    state = reopened(state, limit or state.max_iterations)
    return run_session(place, store, with_artifact(place, state), made, held, asked)


def first_state(place: Place, proposal: Proposal) -> State:
    """Return the state before the first phase."""
    now = clock.now()
    stamp = clock.file_stamp(now)
    return State(
        run_id=f"{place.alias}-{stamp[:8]}-{stamp[9:15]}",
        task_alias=place.alias,
        status=RUNNING,
        iteration=1,
        max_iterations=proposal.max_iterations,
        phase="A",
        current_step=PREPARE if proposal.artifact else PLAN,  # an existing artifact is judged first
        task={"prompt": proposal.task, "ideal_result": proposal.ideal},
        criteria=rules.stored(proposal.criteria),
        created_at=clock.rfc3339(now),
    )


def require_open(place: Place, found: Found, limit: int | None) -> State:
    """Return the state of a loop that can be resumed; raise an error that explains why it can't.

    `limit`: the iterations that the user allows now; a loop that ended at its limit or by stagnation needs more.
    """
    if found.no_history:
        raise no_history_error(place, found)
    if over := None if found.state else files.ended_elsewhere(place):
        raise Undecided(_ended(place, over), START_NEW)
    if found.state is None:
        raise RoodaError(f"The files of the loop '{place.alias}' are damaged.", START_NEW)
    state, ended = found.state, found.state.status != RUNNING
    if ended and not (limit and state.can_go_on):
        more = f"Continue with: rooda reflex resume {place.alias} -n {state.iteration + 4}\n" if state.can_go_on else ""
        raise Undecided(f"{_ended(place, state, bool(more))}{last_error(found)}", f"{more}{START_NEW}")
    if limit and limit < state.iteration + ended:
        raise UsageProblem(
            f"-n {limit} is too low: the loop '{place.alias}' is already at iteration {state.iteration}.",
            f"To allow more iterations: rooda reflex resume {place.alias} -n {state.iteration + 4}",
        )
    return state


def last_error(found: Found) -> str:
    """Return a line about the latest phase_error of a failed loop; "" if there is none."""
    errors = [event for event in found.history if event["event"] == "phase_error"]
    if not errors or found.state is None or found.state.status != "failed":
        return ""
    return f"\nLast phase_error: {errors[-1].get('step')}: {errors[-1].get('payload', {}).get('error')}"


def with_artifact(place: Place, state: State) -> State:
    """Return the state, set back to the phase that writes the artifact if the artifact is missing."""
    written = state.current_step not in (PLAN, PRODUCE_PREPARE)
    if written and files.read_artifact(place) is None:
        step = PRODUCE_PREPARE if state.plan else PLAN
        return state._replace(current_step=step, prepared_checks=None, critique=None)
    return state


def own_flags(typed: Json) -> Json:
    """Return the settings of [reflex] that were given on the command line."""
    return options.flags_of(OWN, typed)


def refuse_second(workspace: str) -> None:
    """Raise Undecided if a loop is marked as running: a workspace can have only one active reflex loop."""
    running = files.running(workspace)
    if running:
        raise Undecided(
            f"The loop '{running[0]}' is active; no second one was started.",
            f"Resume with: rooda reflex resume {running[0]}\nor end it: rooda reflex stop",
        )


def _end_open_loops(workspace: str) -> None:
    """End the loops that could be resumed, for --fresh; raise Undecided if one of them runs."""
    for place in (Place(workspace, alias) for alias in files.running(workspace)):
        if lock.is_held(place.lock):
            raise launch.already_running(place.lock, f"the loop '{place.alias}'", place.alias)
        reflex_store.close(place, "replaced by a new loop")


def _refuse_beside_another(place: Place) -> None:
    others = [alias for alias in files.running(place.workspace) if alias != place.alias]
    active = files.active(place.workspace)
    if active in others:
        raise Undecided(
            f"The loop '{active}' is active; '{place.alias}' was not resumed.",
            f"Resume with: rooda reflex resume {active}\nor end it: rooda reflex stop",
        )


def unused_alias(workspace: str, alias: str) -> str:
    """Return the alias, with a number appended if another loop already has it."""
    number = 1
    while _is_taken(Place(workspace, rules.numbered(alias, number))):
        number += 1
    return rules.numbered(alias, number)


def _is_taken(place: Place) -> bool:
    """True if a file or folder, even one of another tool, already exists at the path of the loop's folder."""
    return os.path.lexists(place.folder) and not (os.path.isdir(place.folder) and files.is_leftover(place))


def _limited(made: Prepared, place: Place, asked: RunOptions) -> Prepared:
    """Return `made` with the limits that the loop was started with, except where the user has given new ones."""
    return made._replace(
        setup=launch.with_earlier_limits(made.setup, place.workspace, "reflex", place.alias, asked.flags)
    )


def _ended(place: Place, state: State, can_go_on: bool = False) -> str:
    why = f"{state.status} ({state.stop['reason']})"
    end = "it needs a higher limit to go on" if can_go_on else "there is nothing to resume"
    return f"The loop '{place.alias}' has ended: {why}; {end}."


def run_session(
    place: Place, store: ReflexStore, start: State, prepared: Prepared, held: lock.Lock | None, asked: RunOptions
) -> int:
    """Run the loop to its end, show the result, and return the exit code."""
    setup, screen, look = prepared.setup, prepared.screen, prepared.look
    fresh = store.state is None
    screen.place = screen.place or relative_place(place.workspace)
    with Signals() as signals:
        owner = Owner(KIND, place.alias, setup._replace(bounds=_bounds(setup)), not fresh, asked.remembered)
        session = Session(place.workspace, owner, signals, screen.show, screen.tick(), held)
        store.new_limits = session.inbox.new_limits
        permission = Permission(exec_checks(look), signals)
        effects = Effects(session, place, store, prepared, permission, not asked.json)
        session.emit(_opening(start, setup, fresh))
        try:
            state = reflex(Run(store), start, _loop_options(place, look), effects)
            session.emit(ended(place, state))
        except (CallFailed, Interrupted, LimitReached, OSError) as problem:
            if (latest := store.latest()) is None:
                raise
            unfinished = _unfinished(problem, place)
            if not signals.abandoned:
                session.emit(ended(place, latest, unfinished))
            return unfinished.exit_code
        finally:
            screen.close()
            session.close()
    show_artifact(prepared, place, not asked.json)
    return EXIT_CODES[state.status]


def _bounds(setup: Setup) -> Bounds:
    """Return the bounds for check commands; their output limit is lower than that of agents."""
    return setup.bounds._replace(max_output_buffer=min(setup.bounds.max_output_buffer, CAP))


def _loop_options(place: Place, look: Lookup) -> LoopOptions:
    sequential, extraction = bool(look.value("sequential")), str(look.value("extraction"))
    return LoopOptions(place.shown_artifact, sequential, extraction, _names_of(place.workspace))


def _names_of(folder: str) -> list[str]:
    """Return the folder's paths: as given, with symlinks resolved, and as in $PWD."""
    real, shell = os.path.realpath(folder), os.environ.get("PWD", "")
    known = [folder, real, *([shell] if os.path.isabs(shell) and os.path.realpath(shell) == real else [])]
    return list(dict.fromkeys(known))


def _opening(start: State, made: Setup, fresh: bool) -> RunStarted:
    return (RunStarted if fresh else RunResumed)(
        number=start.iteration,
        level=start.phase,
        step=start.current_step,
        iterations=start.iteration - 1,
        max_iterations=start.max_iterations,
        limits=limits_of(made.budget),
    )


def _unfinished(problem: Exception, place: Place) -> Unfinished:
    if isinstance(problem, Interrupted):
        return Unfinished("signal", "Interrupted", code_of_signal(problem.number))
    if isinstance(problem, LimitReached):
        return Unfinished("limit", f"{problem.what}. {problem.hint}".rstrip(". "), problem.code, problem.cause)
    if isinstance(problem, CallFailed):
        return Unfinished("error", f"An agent call failed. {problem}", EXIT_FAILED)
    assert isinstance(problem, OSError)
    if not files.is_begun(place):
        return Unfinished("gone", f"{place.folder} was deleted, and the loop with it", EXIT_FAILED)
    return Unfinished("files", f"{problem.filename or place.folder}: {problem.strerror or problem}", EXIT_FAILED)


# The end of a session, for the screen, the log and `rooda reflex stop`.


def ended(place: Place, state: State, unfinished: Unfinished | None = None) -> RunEnded:
    """Return the event that ends a session. The score is final only if it belongs to the current artifact."""
    found, data = state.evaluation, files.artifact_if_readable(place)
    current = bool(found) and data is not None and found.get("artifact_hash") == base_files.sha256(data)
    score = scoring.hundredths(found["score"]) if found else None
    resumable = unfinished if state.status == RUNNING else None
    return RunEnded(
        status=state.status,
        number=state.iteration,
        max_iterations=state.max_iterations,
        level=state.phase,
        final_score=score if current else None,
        last_evaluated_score=None if current else score,
        stop_reason=state.stop["reason"],
        reason=resumable.reason if resumable else state.stop["reason"],
        note=resumable.note if resumable else _why(state),
        error=state.error,
        elsewhere=state.elsewhere,
        artifact=place.shown_artifact,
        **_distance(state),
        **cause_facts(resumable and resumable.cause),
        exit_code=unfinished.exit_code if unfinished else EXIT_CODES[state.status],
    )


def _why(state: State) -> str:
    """Return the reason why the loop ended, with score, threshold and unmet rules."""
    found, reason = state.evaluation, state.stop["reason"]
    if state.status == RUNNING:
        return ""
    if not found or reason not in JUDGED:
        ended = "ended by another command" if state.elsewhere else f"stopped by the user: {reason}"
        return state.error or ended
    threshold = f"threshold {scoring.number_text(state.threshold)} of phase {state.phase}"
    score = f"score {scoring.hundredths(found['score'])}, {threshold}"
    left = ", ".join(entry["id"] for entry in (*found["failed"], *found["warnings"]))
    return "; ".join(part for part in (score, f"not met: {left}" if left else "", RULES.get(reason, "")) if part)


def _distance(state: State) -> Json:
    """Return the distance to success of a loop that ended at its iteration limit; {} for any other end."""
    found = state.evaluation
    if state.stop["reason"] != "iteration_limit" or not found or found["passed"]:
        return {}
    exactly = scoring.exact_score(state.rules, found)
    return {"distance": scoring.distance(found, state.threshold, exactly)._asdict()}


RULES = {
    "no_major_issues": "no rule of severity fail has failed in phase B",
    "stagnation": "the score gained less than 0.02 twice, and no fail rule failed",
    "iteration_limit": "the last iteration did not pass",
}
