"""Defines the state of a procedure's loop, and the rules for starting or resuming from it."""

from collections.abc import Iterable
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

from rooda.base.text import parse_seconds

if TYPE_CHECKING:
    from rooda.loops.procedure.events import Timing
    from rooda.loops.procedure.model import Procedure

RUNNING, COMPLETED, ABORTED, INTERRUPTED, PAUSED = "running", "completed", "aborted", "interrupted", "paused"
STATUSES = (RUNNING, COMPLETED, ABORTED, INTERRUPTED, PAUSED)  # rooda accepts PAUSED in a file but never writes it
RESUMABLE = (INTERRUPTED, PAUSED)


class OodaState(NamedTuple):
    """The content of the state file, one field per key."""

    iteration: int
    max_iterations: int
    consecutive_failures: int
    failure_threshold: int
    started_at: str
    last_iteration_at: str | None
    status: str
    procedure_name: str
    elapsed_per_iteration: tuple[str, ...]


def fresh(procedure: "Procedure", started_at: str) -> OodaState:
    limits = (procedure.max_iterations, 0, procedure.failure_threshold)
    return OodaState(0, *limits, started_at, None, RUNNING, procedure.name, ())


def resumed_state(state: OodaState, max_iterations: int | None, failure_threshold: int | None) -> OodaState:
    """Return the state to resume from, with new limits if given. Resuming an aborted run resets its failures."""
    threshold = state.failure_threshold if failure_threshold is None else failure_threshold
    aborted = state.status == ABORTED or state.consecutive_failures >= threshold
    return state._replace(
        status=RUNNING,
        max_iterations=state.max_iterations if max_iterations is None else max_iterations,
        failure_threshold=threshold,
        consecutive_failures=0 if aborted else state.consecutive_failures,
    )


def start_mode(status: str | None, asked: str, on_interrupted: str, surely_dead: bool = False) -> str:
    """Return what `rooda P` must do: fresh, resume, ask or refuse. `asked`: the option given, resume, fresh or "".

    `surely_dead`: this process has the lock, so a run whose state says `running` was killed, and the user can be asked.
    """
    if status in (None, COMPLETED):
        return "fresh"
    if asked:
        return asked
    if status == RUNNING:
        return on_interrupted if surely_dead else "refuse"
    return on_interrupted if status in RESUMABLE else "fresh"


def can_resume(status: str | None) -> bool:
    """True if `rooda resume P` can continue the run."""
    return status not in (None, COMPLETED)


def resume_command(name: str, iteration: int, max_iterations: int) -> str:
    """Return the command that resumes a run; if its iterations are used up, with a higher limit."""
    more = f" -n {iteration + 1}" if 0 < max_iterations <= iteration else ""
    return f"rooda resume {name}{more}"


def mode_of_answer(answer: str) -> str:
    """Parse the user's answer to `Resume? [Y/n]`: return resume, fresh, or "" for any other answer."""
    word = answer.strip().lower()
    if word in ("", "y", "yes"):
        return "resume"
    return "fresh" if word in ("n", "no") else ""


def total_seconds(state: OodaState) -> float:
    return sum(map(parse_seconds, state.elapsed_per_iteration))


def timing(durations: Iterable[float]) -> "Timing":
    """Return count, min, max, mean and, for two or more durations, the population's stddev (Welford's algorithm)."""
    count, mean, spread, low, high = 0, 0.0, 0.0, 0.0, 0.0
    for value in durations:
        count += 1
        step = value - mean
        mean += step / count
        spread += step * (value - mean)
        low, high = (value, value) if count == 1 else (min(low, value), max(high, value))
    if not count:
        return {}
    facts: Timing = {"count": count, "min": round(low, 3), "max": round(high, 3), "mean": round(mean, 3)}
    if count > 1:
        facts["stddev"] = round(sqrt(spread / count), 3)
    return facts
