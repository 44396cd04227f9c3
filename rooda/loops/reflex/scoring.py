"""Computes the score, the stagnation count and the next step of an evaluation, with exact fractions."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from rooda.base.json import Json

LEAST_GAIN, MOST_SMALL_GAINS = (
    Fraction("0.02"),
    2,
)  # the smallest gain that counts; the number of smaller gains in a phase that ends the loop
COMPLETED, STOPPED, FAILED = "completed", "stopped", "failed"
STATUS_OF = {
    "threshold_reached": COMPLETED,
    "no_major_issues": COMPLETED,
    "user_stop": STOPPED,
    "iteration_limit": STOPPED,
    "stagnation": STOPPED,
    "phase_error": FAILED,
}
SWITCH, REFINE = "switch", "refine"  # the next step if nothing stops the loop


class Finding(NamedTuple):
    """The result of checking one rule: whether it holds, and details."""

    id: str
    holds: bool
    details: str


class Next(NamedTuple):
    """The next step, which is SWITCH, REFINE or a reason to stop, and the new stagnation count."""

    what: str
    stagnation_count: int


def exact(number: Any) -> Fraction:
    """Convert a number to the fraction that its decimal digits express."""
    return Fraction(str(number))


def evaluation(rules: Sequence[Json], findings: Mapping[str, Finding], threshold: Any) -> Json:
    """Return the evaluation as the contract defines it. `rules`: the active rules, each of which has a finding."""
    failed: list[Json] = []
    warnings: list[Json] = []
    results: list[Json] = []
    for rule in rules:
        finding = findings[rule["id"]]
        verdict = "pass" if finding.holds else "fail" if rule["severity"] == "fail" else "warn"
        results.append({"id": rule["id"], "verdict": verdict, "details": finding.details})
        if not finding.holds:
            entry = {"id": rule["id"], "severity": rule["severity"], "message": finding.details}
            (failed if verdict == "fail" else warnings).append(entry)
    share = score(rules, {each for each, finding in findings.items() if finding.holds})
    passed = share >= exact(threshold) and not failed
    return {
        "score": float(share),
        "passed": passed,
        "failed": failed,
        "warnings": warnings,
        "rule_results": results,
    }


def score(rules: Sequence[Json], passed: set[str]) -> Fraction:
    """Return the share of the total weight that belongs to passed rules; 1 if no rule has weight."""
    whole = sum((exact(rule["weight"]) for rule in rules), Fraction(0))
    held = sum((exact(rule["weight"]) for rule in rules if rule["id"] in passed), Fraction(0))
    return held / whole if whole else Fraction(1)


def exact_score(rules: Sequence[Json], found: Json | None) -> Fraction:
    """Return the exact score of an earlier evaluation, recomputed from its verdicts; the stored number is rounded."""
    if found is None:
        return Fraction(0)
    verdicts = {result["id"]: result["verdict"] for result in found["rule_results"]}
    judged = [rule for rule in rules if rule["id"] in verdicts]
    if len(judged) != len(verdicts):
        return exact(found["score"])
    return score(judged, {name for name, verdict in verdicts.items() if verdict == "pass"})


class Position(NamedTuple):
    """The loop's position before an evaluation is counted."""

    level: str
    iteration: int
    max_iterations: int
    stagnation_count: int
    before: Fraction = Fraction(0)  # the previous score
    strict: bool = False  # warnings alone do not end the loop


def next_step(position: Position, now: Fraction, passed: bool, blocked: bool) -> Next:
    """Return the next step and the stagnation count. `blocked`: a rule of severity fail has failed.

    Completion wins over stagnation, stagnation over the limit. `no_major_issues` only counts in phase B: in A it
    would end the loop before the rules of B are evaluated. In a strict loop it never counts.
    """
    counts = (position.level == "A" or position.strict) and not passed and not blocked
    count = position.stagnation_count + (counts and now - position.before < LEAST_GAIN)
    what = step_after(position._replace(stagnation_count=count), passed, blocked)
    return Next(what, 0 if what == SWITCH else count)


def step_after(position: Position, passed: bool, blocked: bool) -> str:
    """Return the next step for a position whose stagnation count is already updated."""
    if passed:
        return SWITCH if position.level == "A" else "threshold_reached"
    if position.level == "B" and not blocked and not position.strict:
        return "no_major_issues"
    if position.stagnation_count >= MOST_SMALL_GAINS:
        return "stagnation"
    return "iteration_limit" if position.iteration >= position.max_iterations else REFINE


def hundredths(number: Any) -> str:
    """Format a number with two decimals, rounded down so that a failed score never looks like the threshold."""
    cut = int(exact(number) * 100)
    return f"{cut // 100}.{cut % 100:02d}"


def number_text(number: Any) -> str:
    """Format a number with all its stored digits."""
    return str(number).removesuffix(".0")


class Distance(NamedTuple):
    """An unfinished loop's distance to success."""

    threshold: Any
    gap: float
    blocking: tuple[str, ...]
    passed_rules: int
    total_rules: int


def distance(found: Json, threshold: Any, exactly: Fraction) -> Distance:
    results = found["rule_results"]
    return Distance(
        threshold,
        float(max(Fraction(0), exact(threshold) - exactly)),
        tuple(entry["id"] for entry in found["failed"]),
        sum(result["verdict"] == "pass" for result in results),
        len(results),
    )
