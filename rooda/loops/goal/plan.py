"""Leniently reads plans written by an agent or the user, and lists their unclear parts."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from rooda.loops.goal import criteria, scoring
from rooda.loops.goal.criteria import ASSUMPTION, EXECUTION, MEASUREMENT, REVIEW, Criterion
from rooda.loops.goal.scoring import Scores

NOT_JSON = "the answer is not JSON: it has no JSON object that can be read"


class Step(NamedTuple):
    """One unit of work, with the criteria that show that it is done."""

    name: str
    criteria: tuple[str, ...] = ()
    reversibility: str = ""


class MustNot(NamedTuple):
    """A condition that must never become true; without a command only a judge can check it."""

    text: str
    violated_if: str = ""


class Plan(NamedTuple):
    """A plan for a specification, as an agent or the user wrote it."""

    scores: Scores | None = None
    scores_fault: str = ""  # why the given scores are invalid
    reversibility: str = ""
    gate: str = ""  # the kind of evidence that the workflow needs
    evidence: str = ""
    criteria: tuple[Criterion, ...] = ()
    must_not: tuple[MustNot, ...] = ()
    steps: tuple[Step, ...] = ()
    points: int = 0
    alt: str = ""
    risk: str = ""
    unclear: tuple[str, ...] = ()
    finished: tuple[str, ...] = ()  # tasks of a user's list that are marked as done
    no_json: bool = False  # the answer has no JSON object, so nothing was read


def read_plan(value: Any) -> Plan:
    """Read a plan from a JSON value; a value that isn't an object yields an empty plan with everything unclear."""
    if value is None:
        return Plan(no_json=True, unclear=(NOT_JSON,))
    given: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
    scores = given.get("scores")
    graded = scoring.read_scores(scores) if scores else None
    faults: list[str] = []
    gate = given.get("workflow_gate")
    gate = gate if isinstance(gate, Mapping) else {"evidence": gate}
    planned = text_of(given.get("reversibility"))
    plan = Plan(
        scores=graded if isinstance(graded, Scores) else None,
        scores_fault=graded if isinstance(graded, str) else "",
        reversibility=scoring.class_of(planned) or ("2B" if planned else ""),
        gate=text_of(gate.get("kind")),
        evidence=_evidence(gate.get("evidence")),
        criteria=_criteria(given.get("criteria"), faults),
        must_not=_must_not(given.get("mustNot", given.get("must_not"))),
        steps=_steps(given.get("steps"), faults),
        points=points if type(points := given.get("points")) is int and points > 0 else 0,
        alt=text_of(given.get("alt")),
        risk=text_of(given.get("risk")),
    )
    return plan._replace(unclear=(*(() if scores else ("score",)), *faults))


def text_of(value: Any) -> str:
    return " ".join(str(value).split()) if isinstance(value, str | int | float) and value is not True else ""


def _evidence(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(filter(None, map(text_of, value)))
    return text_of(value) if isinstance(value, str) else ""


def criterion(name: str, item: Mapping[str, Any]) -> Criterion:
    """Return a criterion with its verification method; a missing type is derived from the method."""
    command, expect = _command(item.get("command")), text_of(item.get("expect"))
    natural = MEASUREMENT if expect and criteria.is_bound(expect) else EXECUTION
    word = text_of(item.get("verification"))
    return Criterion(name, word or (natural if command else ASSUMPTION), command, expect, item.get("holdout") is True)


def _command(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _criteria(value: Any, faults: list[str]) -> tuple[Criterion, ...]:
    found = []
    for item in value if isinstance(value, list) else []:
        given = item if isinstance(item, Mapping) else {"name": item}
        found.append(criterion(text_of(given.get("name")), given))
        if found[-1].expect and (fault := criteria.fault(found[-1].expect)):
            faults.append(f"criteria ({fault})")
    check_names("criteria", [each.name for each in found], faults)
    return tuple(found)


def _steps(value: Any, faults: list[str]) -> tuple[Step, ...]:
    found = []
    for item in value if isinstance(value, list) else []:
        given = item if isinstance(item, Mapping) else {"name": item}
        tied = given.get("criteria")
        names = tuple(filter(None, map(text_of, tied))) if isinstance(tied, list) else ()
        kind = scoring.class_of(given.get("reversibility"))
        found.append(Step(text_of(given.get("name")), names, kind))
    check_names("steps", [each.name for each in found], faults)
    if not found:
        faults.append("steps")
    return tuple(found)


def check_names(what: str, names: list[str], faults: list[str]) -> None:
    """Add to `faults` one fault for missing names and one for duplicate names. `what`: steps or criteria."""
    if not all(name and name.isprintable() for name in names):
        faults.append(f"{what} (one has no name)")
    if twice := {name for name in names if names.count(name) > 1}:
        faults.append(f"{what} (twice: {', '.join(sorted(twice))})")


def _must_not(value: Any) -> tuple[MustNot, ...]:
    found = []
    for item in value if isinstance(value, list) else []:
        given = item if isinstance(item, Mapping) else {"text": item}
        text, command = text_of(given.get("text")), _command(given.get("violated_if"))
        if text or command:
            found.append(MustNot(text or command, command))
    return tuple(found)


def unique(*lists: Iterable[MustNot]) -> tuple[MustNot, ...]:
    """Merge mustNot entries by text; an entry with a command wins."""
    found: dict[str, MustNot] = {}
    for entry in (entry for entries in lists for entry in entries):
        if entry.violated_if or entry.text not in found:
            found[entry.text] = entry
    return tuple(found.values())


def merged(first: Iterable[Criterion], *more: Criterion) -> tuple[Criterion, ...]:
    """Merge criteria by name in order of first mention; the last mention decides how each is verified."""
    found = {each.name: each for each in first}
    for each in more:
        before = found.get(each.name)
        if before and before.command and not each.command:
            each = each._replace(command=before.command, expect=before.expect)
        word = each.verification or (before.verification if before else ASSUMPTION)
        found[each.name] = each._replace(verification=word)
    return tuple(found.values())


def read_state(value: Mapping[str, Any]) -> Plan:
    """Read a loop's state file as a plan that has the loop's criteria and its uncompleted steps."""
    status = value["criteriaStatus"]
    names = [*filter(None, map(text_of, value["criteria"]))]
    kinds = {name: entry.get("verification") for name, entry in status.items() if isinstance(entry, Mapping)}
    criteria = tuple(Criterion(name, text_of(kinds.get(name)) or REVIEW) for name in names)
    left = tuple(Step(name) for name in map(text_of, value["remainingSteps"]) if name)
    faults: list[str] = []
    check_names("criteria", names, faults)
    check_names("steps", [step.name for step in left], faults)
    return Plan(
        scores_fault="a state file has no scores",
        reversibility=scoring.stricter(scoring.least_class(" ".join([*names, *(step.name for step in left)]))),
        criteria=criteria,
        steps=left,
        unclear=(*faults, *(() if left else ("steps (all steps are completed)",))),
        finished=tuple(filter(None, map(text_of, value["completedSteps"]))),
    )
