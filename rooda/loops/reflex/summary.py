"""What a loop came to, for the screen, the log and `stop`."""

from typing import NamedTuple

from rooda.base import files
from rooda.base.json import Json
from rooda.errors import Cause
from rooda.loops.reflex import files as reflex_files
from rooda.loops.reflex import scoring
from rooda.loops.reflex.events import RunEnded
from rooda.loops.reflex.files import Place
from rooda.loops.reflex.history import JUDGED
from rooda.loops.reflex.loop import EXIT_CODES
from rooda.loops.reflex.state import RUNNING, State
from rooda.run.spending import cause_facts


class Left(NamedTuple):
    """Why a loop is not over, and can be resumed if its files are there."""

    reason: str
    note: str
    exit_code: int
    cause: Cause | None = None


def ended(place: Place, state: State, left: Left | None = None) -> RunEnded:
    """The end of a session. A score is final only if it is the score of the artifact that lies there."""
    found, data = state.evaluation, reflex_files.read_artifact(place)
    current = bool(found) and data is not None and found.get("artifact_hash") == files.sha256(data)
    score = scoring.hundredths(found["score"]) if found else None
    resumable = left if state.status == RUNNING else None
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
        exit_code=left.exit_code if left else EXIT_CODES[state.status],
    )


def _distance(state: State) -> Json:
    """How far from its threshold a loop ended at its limit."""
    found = state.evaluation
    if state.stop["reason"] != "iteration_limit" or not found or found["passed"]:
        return {}
    exactly = scoring.exact_score(state.rules, found)
    return {"distance": scoring.distance(found, state.threshold, exactly)._asdict()}


def _why(state: State) -> str:
    """The rule behind the end, and the facts that it was applied to."""
    found, reason = state.evaluation, state.stop["reason"]
    if state.status == RUNNING:
        return ""
    if not found or reason not in JUDGED:
        ended = "ended from outside" if state.elsewhere else f"stopped by a person: {reason}"
        return state.error or ended
    threshold = f"threshold {scoring.written(state.threshold)} of phase {state.phase}"
    score = f"score {scoring.hundredths(found['score'])}, {threshold}"
    left = ", ".join(entry["id"] for entry in (*found["failed"], *found["warnings"]))
    return "; ".join(part for part in (score, f"not met: {left}" if left else "", RULES.get(reason, "")) if part)


RULES = {
    "no_major_issues": "no rule of severity fail has failed in phase B",
    "stagnation": "twice a gain below 0.02 without a failed fail rule",
    "iteration_limit": "the last iteration did not pass",
}
