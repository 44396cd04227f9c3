"""Rules of one iteration: what to verify, which step is done, when errors repeat."""

from collections.abc import Sequence

from rooda.loops.goal import breakers
from rooda.loops.goal.answers import Claim
from rooda.loops.goal.criteria import ASSUMPTION, OBSERVATION, RUN, Criterion, Mark
from rooda.loops.goal.state import SATISFY, GoalState, tied
from rooda.loops.goal.world import CallResult, Finding
from rooda.run.spending import add


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
    """Criteria to verify after this step: its own, those already met, and those of no step."""
    of_step = set(tied(state, state.step))
    of_some = {name for step in state.brief.steps for name in step.criteria}
    pairs = zip(state.brief.criteria, state.marks, strict=True)
    return [each for each, mark in pairs if mark.met or each.name in of_step or each.name not in of_some]


def runnable(criteria: Sequence[Criterion]) -> list[Criterion]:
    return [each for each in criteria if each.kind in RUN]


def mark_verified(state: GoalState, findings: Sequence[Finding], iteration: int) -> GoalState:
    """The state with the results of rooda's own checks."""
    found = {each.name: each for each in findings}
    marks = []
    for criterion, mark in zip(state.brief.criteria, state.marks, strict=True):
        if finding := found.get(criterion.name):
            mark = updated_mark(mark, criterion, finding.met, iteration)._replace(evidence=finding.evidence)
        marks.append(mark)
    return state._replace(marks=tuple(marks))


def updated_mark(mark: Mark, criterion: Criterion, met: bool, iteration: int, achieved: str = "") -> Mark:
    """The mark with this result; `since` changes only if the result does."""
    since = mark.since if mark.met == met else iteration
    return mark._replace(met=met, since=since, verification=achieved if met and achieved else criterion.verification)


def mark_claimed(state: GoalState, claim: Claim, iteration: int) -> GoalState:
    """Mark criteria without any check as the agent claims them. Such a claim never completes the goal."""
    marks = list(state.marks)
    for place, criterion in enumerate(state.brief.criteria):
        if criterion.kind == ASSUMPTION and not claim.fault:
            met = claims(claim, criterion.name)
            marks[place] = updated_mark(marks[place], criterion, met, iteration, ASSUMPTION)
    return state._replace(marks=tuple(marks))


def claims(claim: Claim, name: str) -> bool:
    return claim.exit or name in claim.criteria


def accepted(state: GoalState, result: CallResult, claim: Claim) -> bool:
    """True if the call succeeded and the step's criteria hold. For those that rooda can't run, the claim counts."""
    if not result.ok or state.done >= len(state.steps) or (needs_cause(state) and not claim.root_cause):
        return False
    kinds = {each.name: each.kind for each in state.brief.criteria}
    return all(
        state.mark(name).met or (kinds[name] in (OBSERVATION, ASSUMPTION) and claims(claim, name))
        for name in tied(state, state.step)
    )


def needs_cause(state: GoalState) -> bool:
    """True if the workflow is debugging and the root cause is still unknown."""
    return state.brief.workflow == "B" and not state.brief.evidence and not state.root_cause


def add_cost(state: GoalState, result: CallResult) -> GoalState:
    """Add the cost of a call, however it ended."""
    if result.ended == "not-started":
        return state
    spent = add(state.spent, result.cost, estimated=result.estimated)
    return state._replace(spent=spent._replace(cost=round(spent.cost, 6)))


def signature(state: GoalState, result: CallResult, findings: Sequence[Finding]) -> tuple[str, str]:
    """The normalized error of this iteration, to compare with the last one, and its line as printed."""
    if not result.ok:
        said = f"{result.how}: {result.error}" if result.error else result.how
        return breakers.normalized(said), said
    own = set(tied(state, state.step))
    failing = [each for each in findings if each.name in own and not each.met and each.error]
    lines = [each.line for each in failing]
    return "; ".join(breakers.normalized(each.error) for each in failing), "; ".join(lines)


def count_errors(before: GoalState, after: GoalState, found: tuple[str, str]) -> GoalState:
    """Count equal errors in a row; progress resets the count."""
    sign, line = found
    progress = after.done > before.done or bool(set(before.unmet) - set(after.unmet))
    same = sign == before.signature and not progress
    return after._replace(signature=sign, error=line, repeats=(before.repeats if same else 0) + 1 if sign else 0)


def stuck_count(before: GoalState, after: GoalState) -> int:
    """Number of iterations in a row with the same set of unmet criteria."""
    if not after.unmet or before.iteration == 0 or before.unmet != after.unmet:
        return 0
    return before.stuck + 1
