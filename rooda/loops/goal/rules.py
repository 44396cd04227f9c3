"""Decides which criteria of a goal to verify, when a step is done, and when the goal stops or pauses."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rooda.errors import FAILED as EXIT_FAILED
from rooda.errors import OK, UNFINISHED, Cause, code_of_signal
from rooda.loops.goal.answers import Claim
from rooda.loops.goal.criteria import ASSUMPTION, OBSERVATION, RUN, SHOWING, Criterion, Mark, plain
from rooda.loops.goal.state import (
    COMPLETED,
    FAILED,
    IN_PROGRESS,
    SATISFY,
    GoalState,
    cost_text,
    criteria_of_step,
    money,
)
from rooda.loops.goal.world import CallResult, Finding
from rooda.run.records import Ending
from rooda.run.spending import add

STUCK, ERRORS, EDITS = 5, 3, 5  # breaker limits: iterations without change, equal errors, edits of one file
MOST_ITERATIONS, MOST_DOLLARS = 50, 100.0  # more requires --force-limits
ROUNDING = 1e-9  # dollars; rounding of float sums


class Pause:
    """Reasons why a goal pauses, by the names that its state file uses."""

    STUCK, ERROR, EDITS, BUDGET, LIMIT = "stuck", "error", "edits", "budget", "limit"
    MUST_NOT, SHAPE, OBSERVE, TESTS, SIGNAL, ASKED = "mustNot", "shape", "observation", "tests", "interrupted", "asked"
    QUESTION = "question"  # the agent asks the user
    G1, G2, G3, SHARED, FILES, UNTOLD = "G1", "G2", "G3", "shared limit", "files", "untold"


OFFERED = (Pause.STUCK, Pause.ERROR, Pause.EDITS, Pause.BUDGET, Pause.LIMIT)  # rooda asks whether to continue


def with_step(state: GoalState) -> GoalState:
    """Add a step for the first unmet criterion if all steps are done."""
    if state.done < len(state.steps) or not state.unmet:
        return state
    name = fresh = f"{SATISFY}{state.unmet[0]}"
    count = 1
    taken = {*state.steps, *(f"{SATISFY}{each.name}" for each in state.brief.criteria if each.name != state.unmet[0])}
    while fresh in taken:
        count += 1
        fresh = f"{name} ({count})"
    return state._replace(steps=(*state.steps, fresh))


def affected(state: GoalState) -> list[Criterion]:
    """Return the criteria to verify after this step: its own, those that held, and those not tied to any step.

    Criteria that held before any work are always included, so that rooda notices when a broken one holds again.
    """
    due = {*criteria_of_step(state, state.step), *state.brief.already}
    of_some = {name for step in state.brief.steps for name in step.criteria}
    pairs = zip(state.brief.criteria, state.marks, strict=True)
    return [each for each, mark in pairs if mark.met or each.name in due or each.name not in of_some]


def runnable(criteria: Sequence[Criterion]) -> list[Criterion]:
    return [each for each in criteria if each.kind in RUN]


def mark_verified(state: GoalState, findings: Sequence[Finding], iteration: int) -> GoalState:
    """Return the state with the results of rooda's own checks."""
    found = {each.name: each for each in findings}
    marks = []
    for criterion, mark in zip(state.brief.criteria, state.marks, strict=True):
        if finding := found.get(criterion.name):
            mark = updated_mark(mark, criterion, finding.met, iteration)._replace(evidence=finding.evidence)
        marks.append(mark)
    return state._replace(marks=tuple(marks))


def updated_mark(mark: Mark, criterion: Criterion, met: bool, iteration: int, achieved: str = "") -> Mark:
    """Return the mark with the new result `met`. Its `since` becomes this iteration only if the result has changed."""
    since = mark.since if mark.met == met else iteration
    return mark._replace(met=met, since=since, verification=achieved if met and achieved else criterion.verification)


def mark_claimed(state: GoalState, claim: Claim, iteration: int) -> GoalState:
    """Mark criteria without a check as met or unmet, as the agent claims; the claim alone never completes the goal."""
    marks = list(state.marks)
    for place, criterion in enumerate(state.brief.criteria):
        if criterion.kind == ASSUMPTION and not claim.fault:
            met = claims(claim, criterion.name)
            marks[place] = updated_mark(marks[place], criterion, met, iteration, ASSUMPTION)
    return state._replace(marks=tuple(marks))


def claims(claim: Claim, name: str) -> bool:
    return claim.exit or name in claim.criteria


def accepted(state: GoalState, result: CallResult, claim: Claim) -> bool:
    """True if the call succeeded, the step's criteria hold and, when debugging, the root cause is known.

    For criteria without a check, the agent's claim counts.
    """
    if not result.ok or state.done >= len(state.steps) or (needs_cause(state) and not claim.root_cause):
        return False
    kinds = {each.name: each.kind for each in state.brief.criteria}
    return all(
        state.mark(name).met or (kinds[name] in (OBSERVATION, ASSUMPTION) and claims(claim, name))
        for name in criteria_of_step(state, state.step)
    )


def needs_cause(state: GoalState) -> bool:
    """True if the workflow is debugging and the root cause is still unknown."""
    return state.brief.workflow == "B" and not state.brief.evidence and not state.root_cause


def waits_for_cause(state: GoalState) -> bool:
    """True if only the unknown root cause keeps the step open: the step's criteria hold, or it has none."""
    return needs_cause(state) and not any(name in state.unmet for name in criteria_of_step(state, state.step))


def add_cost(state: GoalState, result: CallResult) -> GoalState:
    """Add the cost of a call to the state, unless the call never started."""
    if result.ended == "not-started":
        return state
    spent = add(state.spent, result.cost, estimated=result.estimated)
    return state._replace(spent=spent._replace(cost=round(spent.cost, 6), lost=spent.lost + result.lost))


def signature(state: GoalState, result: CallResult, findings: Sequence[Finding]) -> tuple[str, str]:
    """Return this iteration's error in two forms: normalized, to compare it with the previous error, and as printed."""
    if not result.ok:
        said = f"{result.how}: {result.error}" if result.error else result.how
        return normalized(said), said
    own = set(criteria_of_step(state, state.step))
    failing = [each for each in findings if each.name in own and not each.met and each.error]
    lines = [each.line for each in failing]
    return "; ".join(normalized(each.error) for each in failing), "; ".join(lines)


def count_errors(before: GoalState, after: GoalState, found: tuple[str, str]) -> GoalState:
    """Count consecutive iterations with the same error; progress resets the count."""
    sign, line = found
    progress = after.done > before.done or bool(set(before.unmet) - set(after.unmet))
    same = sign == before.signature and not progress
    return after._replace(signature=sign, error=line, repeats=(before.repeats if same else 0) + 1 if sign else 0)


def stuck_count(before: GoalState, after: GoalState) -> int:
    """Return the number of consecutive iterations with the same unmet criteria."""
    if not after.unmet or before.iteration == 0 or before.unmet != after.unmet:
        return 0
    return before.stuck + 1


def why_stop(state: GoalState, signal: int, requested: str) -> Ending | None:
    """Return the ending if the loop must stop; None to continue."""
    if state.status == COMPLETED:
        return Ending("completed", OK)
    if state.status == FAILED:
        return Ending("failed", EXIT_FAILED, note=state.reason)
    if signal:
        return Ending(Pause.SIGNAL, code_of_signal(signal), signal, "interrupted")
    if state.pause:
        return Ending(state.pause, UNFINISHED, note=state.reason, cause=state.cause)
    if requested:
        return Ending(Pause.ASKED, UNFINISHED, note=f"{requested} requested", cause=Cause(requested))
    found = None if state.gate == "close" else limit_reached(state)  # the final check needs no iteration
    return Ending(found[0], UNFINISHED, note=found[1]) if found else None


def limit_reached(state: GoalState) -> tuple[str, str] | None:
    """Return the reached limit and a message, checking the budget before the iterations; None if none is reached."""
    if state.spent.lost:
        return Pause.BUDGET, "the cost of a call is unknown, since its transcript or the event log disappeared"
    if over_budget(state):
        return Pause.BUDGET, f"budget exceeded: {cost_text(state.spent)}/{money(state.budget)}"
    if state.iteration >= state.limit:
        return Pause.LIMIT, f"iteration limit: {state.limit}"
    return None


def over_budget(state: GoalState) -> bool:
    return state.spent.cost + ROUNDING >= state.budget


def open_breaker(state: GoalState, result: CallResult) -> tuple[str, str] | None:
    """Return the circuit breaker that the last iteration tripped, and why; None if none did."""
    if state.stuck >= STUCK and waits_for_cause(state):
        return Pause.STUCK, f"no root cause {STUCK}x: {state.step}"
    if state.stuck >= STUCK:
        return Pause.STUCK, f"same criteria unmet {STUCK}x: {', '.join(state.unmet)}"
    if state.repeats >= ERRORS:
        return Pause.ERROR, f"same error {ERRORS}x: {state.error}"
    least = "at least " if result.edits_seen else ""
    thrashed = [f"{path} ({least}{count}x)" for path, count in sorted(result.edits.items()) if count >= EDITS]
    if thrashed:
        return Pause.EDITS, f"same file edits {EDITS}x: {', '.join(thrashed)}"
    return limit_reached(state)


def with_signal(ending: Ending, signal: int) -> Ending:
    """Return the ending; if a signal arrived while rooda asked whether to continue, give it that signal's exit code."""
    asks = signal and not ending.signal and ending.kind in OFFERED
    return ending._replace(code=code_of_signal(signal), signal=signal) if asks else ending


def raise_limits(state: GoalState, kind: str) -> GoalState | None:
    """Raise the limit that caused the pause, as `rooda goal continue` does; None if that needs --force-limits."""
    budget, limit = round(state.budget + state.brief.allowance, 6), state.limit + state.brief.iterations
    if kind == Pause.BUDGET:
        return state._replace(budget=budget) if budget <= MOST_DOLLARS else None
    if kind == Pause.LIMIT:
        return state._replace(limit=limit) if limit <= MOST_ITERATIONS else None
    return state


def not_completed(state: GoalState, why: str) -> GoalState:
    """Return the state after a failed save: an unsaved goal is not completed; the next session checks it again."""
    if state.status != COMPLETED:
        return state
    words = f"the state can't be written: {why}"
    return state._replace(exit_signal=False, status=IN_PROGRESS, pause=Pause.FILES, reason=words, gate="close")


def reset_breaker(state: GoalState, kind: str) -> GoalState:
    """Reset the counter of the circuit breaker that caused a pause of this kind."""
    if kind == Pause.STUCK:
        return state._replace(stuck=0)
    if kind == Pause.ERROR:
        return state._replace(repeats=0, signature="", error="")
    return state


# Error lines, normalized for comparison between iterations.
_ERROR = re.compile(
    r"^\s*(?:(?:ERROR|Error|error|FAILED|FAIL|fatal|FATAL|panic|Traceback)\b|E   )|\b\w*(?:Error|Exception):|: error:"
)
_FIELD = re.compile(r"^\s*[\"']?\w+[\"']?\s*:\s*[\[{\"'\d]|^\s*[{\[]")
_CHANGING = (
    (re.compile(r"\x1b\[[0-9;?]*[A-Za-z]"), ""),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"), "<time>"),
    (re.compile(r"\b\d+(?:\.\d+)?\s?(?:ms|µs|us|ns|s|sec|seconds|minutes)\b"), "<duration>"),
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "<address>"),
    (re.compile(r"\bpid[ =:]*\d+", re.IGNORECASE), "<pid>"),
    (re.compile(r"(?:/var/folders|/private/tmp|/tmp|/dev/shm)/[^\s:'\")]+"), "<temporary>"),
)
LONGEST = 300


def looks_like_error(line: str) -> bool:
    return bool(_ERROR.search(line)) and not _FIELD.match(line)


def first_error(text: str) -> str:
    """Return the first line that looks like an error; "" if none does."""
    return next((line.strip() for line in text.splitlines() if looks_like_error(line)), "")[:LONGEST]


def last_error(text: str) -> str:
    """Return the last line that looks like an error, else the last non-blank line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found = [line for line in lines if looks_like_error(line)]
    return (found or lines or [""])[-1][:LONGEST]


def normalized(line: str) -> str:
    """Replace timestamps, durations, addresses, PIDs and temporary paths with placeholders."""
    for pattern, word in _CHANGING:
        line = pattern.sub(word, line)
    return " ".join(line.split())


# The stop hook's answer: whether the agent may stop, according to the goal's state file.
INVALID = {"ok": True, "reason": "invalid state file"}


def decide(state: Any) -> dict[str, Any]:
    """Return the stop hook's answer: `ok` is true if the agent may stop. The hook's contract sets the checks' order."""
    if not isinstance(state, Mapping):
        return INVALID
    if state.get("status") in ("completed", "cancelled"):
        return {"ok": True}
    breaker = state.get("circuitBreaker")
    stuck = breaker.get("stuckCount") if isinstance(breaker, Mapping) else 0
    if isinstance(stuck, int | float) and stuck >= STUCK:
        return {"ok": True, "reason": f"circuit breaker triggered after {STUCK} stuck iterations"}
    status = state.get("criteriaStatus")
    entries: Mapping[str, Any] = status if isinstance(status, Mapping) else {}
    unmet = [name for name, entry in entries.items() if not is_met(entry)]
    if unmet or not entries:
        return {"ok": False, "reason": f"unmet criteria: {', '.join(unmet)}"}
    if any(isinstance(entry, Mapping) and not is_shown(entry) for entry in entries.values()):
        return {"ok": False, "reason": "criterion verified by assumption only - requires actual verification"}
    if state.get("exit_signal") is True:
        return {"ok": True}
    return {"ok": False, "reason": "criteria met but exit_signal not set - verify completion"}


def is_shown(entry: Mapping[str, Any]) -> bool:
    """True if the criterion was verified by a command, an observation or a review, not by an assumption."""
    word = entry.get("verification")
    return isinstance(word, str) and plain(word) in SHOWING


def is_met(entry: Any) -> bool:
    """True if a criterion's entry, a boolean or an object with `met`, says that it is met."""
    return entry.get("met") is True if isinstance(entry, Mapping) else entry is True
