"""Creates the events in `history.jsonl` for a transition between two states, and rebuilds a state from events.

An event's payload holds everything that the event changed, except the artifact's text.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from rooda.base.json import Json
from rooda.loops.reflex.scoring import FAILED, STATUS_OF, STOPPED, Position, step_after
from rooda.loops.reflex.state import (
    CRITIQUE,
    EVALUATE,
    PLAN,
    PREPARE,
    PRODUCE_PREPARE,
    REFINE,
    RUNNING,
    State,
    after_evaluation,
    decoded,
    encoded,
)

JUDGED = tuple(
    reason for reason in STATUS_OF if reason not in ("user_stop", "phase_error")
)  # stop reasons that an evaluation decides
DONE = (
    *("plan_created", "artifact_created", "checks_prepared"),
    *("evaluation_done", "critique_done", "refinement_done"),
)
EVALUATION = ("score", "passed", "failed", "warnings", "rule_results", "artifact_hash")


class Artifact(NamedTuple):
    """Hashes of an artifact that the history records."""

    before: str  # hash of the replaced artifact; "" for none
    after: str  # hash of the current artifact
    sections: Mapping[str, str]


class Event(NamedTuple):
    """One line of the history, without time and run id."""

    iteration: int
    phase: str
    step: str
    event: str
    status: str
    payload: Json


def events(before: State | None, after: State, artifact: Artifact, by_user: bool = False) -> list[Event]:
    """Return the events of a transition between two states. `by_user`: the user stopped the loop."""
    if before is None or is_reopened(before, after):
        return [Event(after.iteration, after.phase, after.current_step, "run_started", "ok", encoded(after))]
    by_user = by_user or _by_user(before, after)
    found = [*_made(before, after, artifact), *(() if by_user else _judged(before, after, artifact))]
    if after.status == RUNNING:
        return found
    where = (before.iteration, after.phase, after.current_step)
    if after.status == FAILED:
        return [*found, Event(*where, "failed", "error", {**after.stop, "status": FAILED, "error": after.error})]
    payload = {**after.stop, "status": after.status}
    if by_user:
        said = after.stop["reason"]
        payload |= {"reason": "user_stop", "detail": "" if said == "user_stop" else said}
    return [*found, Event(*where, "stopped", "ok", payload)]


def is_reopened(before: State, after: State) -> bool:
    """True if the user resumes the loop after its end or with another limit; the history records that like a start."""
    return before.max_iterations != after.max_iterations or (before.status != RUNNING and after.status == RUNNING)


def _by_user(before: State, after: State) -> bool:
    """True if the loop stopped for a reason that no evaluation can have given, so the user stopped it."""
    judged = before.current_step == EVALUATE and STATUS_OF.get(after.stop["reason"]) == STOPPED
    return after.status == STOPPED and not (judged and after.stop["reason"] in JUDGED)


def _made(before: State, after: State, artifact: Artifact) -> list[Event]:
    """Return the events of finished phases other than EVALUATE."""
    now, left, came = (before.iteration, before.phase), before.current_step, after.current_step
    found = []
    if left == PLAN and came == PRODUCE_PREPARE:
        found.append(Event(*now, PLAN, "plan_created", "ok", {"plan": list(after.plan)}))
    if left == PRODUCE_PREPARE and came in (PREPARE, EVALUATE):
        found.append(Event(*now, "PRODUCE", "artifact_created", "ok", {"artifact_hash": artifact.after}))
    if (left == PREPARE and came == EVALUATE) or _only_checks(before, after):
        found.append(Event(*now, PREPARE, "checks_prepared", "ok", after.prepared_checks))
    if left == CRITIQUE and came == REFINE:
        found.append(Event(*now, CRITIQUE, "critique_done", "ok", after.critique))
    if left == REFINE and came == PLAN:
        hashes = {"previous_artifact_hash": artifact.before, "artifact_hash": artifact.after}
        found.append(Event(*now, REFINE, "refinement_done", "ok", hashes))
        advanced = {"iteration": after.iteration}
        found.append(Event(after.iteration, after.phase, PLAN, "iteration_advanced", "ok", advanced))
    return found


def _only_checks(before: State, after: State) -> bool:
    fresh = before.prepared_checks is None and after.prepared_checks is not None
    return before.current_step == PRODUCE_PREPARE and fresh


def _judged(before: State, after: State, artifact: Artifact) -> list[Event]:
    """Return the events of an evaluation, and of the switch to phase B."""
    stopped_by_it = after.status not in (RUNNING, FAILED) and after.stop["reason"] in JUDGED
    if before.current_step != EVALUATE or not (stopped_by_it or after.current_step in (CRITIQUE, PREPARE)):
        return []
    counts = {"last_score": after.last_score, "stagnation_count": after.stagnation_count}
    payload = {**after.evaluation, **counts, "sections": dict(artifact.sections)}
    found = [Event(before.iteration, before.phase, EVALUATE, "evaluation_done", "ok", payload)]
    if after.phase != before.phase:
        levels = {"from": before.phase, "to": after.phase}
        found.append(Event(before.iteration, after.phase, EVALUATE, "phase_switched", "ok", levels))
    return found


def breach(state: State, phase: str, attempt: int, error: str, excerpt: str) -> Event:
    payload = {"attempt": attempt, "error": error, "excerpt": excerpt}
    return Event(state.iteration, state.phase, phase, "phase_error", "error", payload)


def breaches(history: Iterable[Json], state: State, phase: str) -> list[str]:
    """Return the errors of the phase's breaches in this iteration and level, since the phase last succeeded."""
    found: list[str] = []
    for event in history:
        if _is_done(event, phase):
            found = []
        elif is_breach_of(event, state, phase):
            payload = event.get("payload")
            found.append(str(payload.get("error", "")) if isinstance(payload, dict) else "")
    return found


def fixes(history: Iterable[Json], state: State) -> list[Json]:
    """Return the issues of the previous iteration's critique, which REFINE has addressed."""
    before = {"event": "critique_done", "iteration": state.iteration - 1}
    found = [event["payload"] for event in history if before.items() <= event.items()]
    issues = found[-1].get("issues") if found and isinstance(found[-1], dict) else None
    return [each for each in issues if isinstance(each, dict)] if isinstance(issues, list) else []


def _is_done(event: Json, phase: str) -> bool:
    return event.get("step") == phase and event.get("event") in DONE


def is_breach_of(event: Json, state: State, phase: str) -> bool:
    where = (event.get("event"), event.get("step"), event.get("iteration"), event.get("phase"))
    return where == ("phase_error", phase, state.iteration, state.phase)


def fold(history: Iterable[Json]) -> State | None:
    """Rebuild the state from all events; None if the first one is missing."""
    return _folded(history)[0]


def _folded(history: Iterable[Json]) -> tuple[State | None, str]:
    """Return the state after all events, and the name of the last event that is neither foreign nor torn."""
    state, last = None, ""
    for event in history:
        try:
            if event["event"] == "run_started":
                state = decoded(event["payload"])
            elif state is not None and event["event"] in _FOLDS:
                state = _FOLDS[event["event"]](state, event["payload"], event)
            if state is not None:
                state, last = state._replace(updated_at=str(event["ts"])), str(event["event"])
        except (AttributeError, KeyError, TypeError, ValueError):
            continue  # a foreign or torn line
    try:
        return state and decoded(encoded(state)), last
    except ValueError:
        return None, ""


def rebuilt(history: Iterable[Json]) -> State | None:
    """Rebuild the state from all events; if a crash lost a transition's second event, derive it from the first one."""
    state, last = _folded(history)
    if state is None or state.status != RUNNING:
        return state
    if last == "evaluation_done":
        where = Position(state.phase, state.iteration, state.max_iterations, state.stagnation_count)
        step = step_after(
            where._replace(strict=state.strict), state.evaluation["passed"], bool(state.evaluation["failed"])
        )
        return after_evaluation(state._replace(current_step=EVALUATE), step)
    return _advanced(state, {"iteration": state.iteration + 1}, {}) if last == "refinement_done" else state


def _artifact(state: State, payload: Json, event: Json) -> State:
    return state._replace(current_step=PREPARE if state.prepared_checks is None else EVALUATE)


def _checks(state: State, payload: Json, event: Json) -> State:
    step = EVALUATE if state.current_step == PREPARE else state.current_step
    return state._replace(prepared_checks={"checks": payload["checks"]}, current_step=step)


def _evaluation(state: State, payload: Json, event: Json) -> State:
    found = {key: payload[key] for key in EVALUATION if key in payload}
    counts: dict[str, Any] = {"last_score": payload["score"], "stagnation_count": payload["stagnation_count"]}
    return state._replace(evaluation=found, current_step=EVALUATE if found["passed"] else CRITIQUE, **counts)


def _switched(state: State, payload: Json, event: Json) -> State:
    return state._replace(phase=payload["to"], current_step=PREPARE)


def _advanced(state: State, payload: Json, event: Json) -> State:
    state = state._replace(iteration=payload["iteration"], current_step=PLAN)
    return state._replace(plan=(), prepared_checks=None, critique=None)


def _stopped(state: State, payload: Json, event: Json) -> State:
    stop = {"passed": payload.get("passed", False), "reason": payload.get("detail") or payload["reason"]}
    return state._replace(status=payload["status"], stop=stop, current_step=event["step"])


_FOLDS = {
    "plan_created": lambda state, payload, event: state._replace(
        plan=tuple(payload["plan"]), current_step=PRODUCE_PREPARE
    ),
    "artifact_created": _artifact,
    "checks_prepared": _checks,
    "evaluation_done": _evaluation,
    "phase_switched": _switched,
    "critique_done": lambda state, payload, event: state._replace(
        critique={"issues": payload["issues"]}, current_step=REFINE
    ),
    "iteration_advanced": _advanced,
    "stopped": _stopped,
    "failed": _stopped,
}


def missing(history: Iterable[Json], state: State, artifact: Artifact) -> list[Event]:
    """Return the last transition's events that were never written, because rooda crashed after writing `run.json`."""
    known = list(history)
    now = fold(known)
    if now is None or (now.run_id, now.status) != (state.run_id, RUNNING) or _same_place(now, state):
        return []
    first = known[-1].get("event") in ("evaluation_done", "refinement_done")  # the first of two events
    for written in (1, 0) if first else (0,):
        before = fold(known[: len(known) - written])
        if before is None or before.status != RUNNING:
            continue
        found = events(before, state, artifact)
        after = fold([{**event._asdict(), "ts": ""} for event in _from(before, found)])
        there = [_kind(event) for event in known[len(known) - written :]]
        if there == [_kind(event._asdict()) for event in found[:written]] and after and _same_place(after, state):
            return found[written:]
    return []


def _kind(event: Json) -> tuple[Any, ...]:
    return tuple(event.get(key) for key in ("iteration", "phase", "step", "event"))


def _from(before: State, found: list[Event]) -> list[Event]:
    start = Event(before.iteration, before.phase, PLAN, "run_started", "ok", encoded(before))
    return [start, *found]


def _same_place(one: State, other: State) -> bool:
    """True if both states are at the same point of the loop."""
    return _place(one) == _place(other)


def _place(state: State) -> tuple[Any, ...]:
    prepared = state.prepared_checks is not None
    return (state.status, state.iteration, state.phase, state.current_step, prepared, state.critique is not None)
