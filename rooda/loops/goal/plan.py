"""A plan, as an agent or a person wrote it: read tolerantly, and everything that is unclear about it said."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from rooda.loops.goal import goal_expect, goal_score, wording
from rooda.loops.goal.goal_score import Scores
from rooda.loops.goal.goal_types import ASSUMPTION, EXECUTION, MEASUREMENT, Criterion


class Step(NamedTuple):
    """One logical unit of work, and the criteria that show that it is done."""

    name: str
    criteria: tuple[str, ...] = ()
    reversibility: str = ""


class MustNot(NamedTuple):
    """What must never become true. Without a command nobody but a judge can tell."""

    text: str
    violated_if: str = ""


class Plan(NamedTuple):
    """What a start needs to know besides the specification."""

    scores: Scores | None = None
    scores_fault: str = ""  # there are scores, but not five numbers from 0 to 2
    reversibility: str = ""
    gate: str = ""  # kind of evidence
    evidence: str = ""
    criteria: tuple[Criterion, ...] = ()
    must_not: tuple[MustNot, ...] = ()
    steps: tuple[Step, ...] = ()
    points: int = 0
    alt: str = ""
    risk: str = ""
    unclear: tuple[str, ...] = ()


def read(value: Any) -> Plan:
    """The plan in a JSON object; of one that isn't there everything is unclear."""
    given: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
    scores = given.get("scores")
    graded = goal_score.read(scores) if scores else None
    faults: list[str] = []
    gate = given.get("workflow_gate")
    gate = gate if isinstance(gate, Mapping) else {"evidence": gate}
    planned = text_of(given.get("reversibility"))
    plan = Plan(
        scores=graded if isinstance(graded, Scores) else None,
        scores_fault=graded if isinstance(graded, str) else "",
        reversibility=wording.class_of(planned) or ("2B" if planned else ""),
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
    """One criterion with its method. Without a type it is what its method makes of it."""
    command, expect = _command(item.get("command")), text_of(item.get("expect"))
    natural = MEASUREMENT if expect and goal_expect.is_bound(expect) else EXECUTION
    word = text_of(item.get("verification"))
    return Criterion(name, word or (natural if command else ASSUMPTION), command, expect, item.get("holdout") is True)


def _command(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _criteria(value: Any, faults: list[str]) -> tuple[Criterion, ...]:
    found = []
    for item in value if isinstance(value, list) else []:
        given = item if isinstance(item, Mapping) else {"name": item}
        found.append(criterion(text_of(given.get("name")), given))
        if found[-1].expect and (fault := goal_expect.fault(found[-1].expect)):
            faults.append(f"criteria ({fault})")
    check_names("criteria", [each.name for each in found], faults)
    return tuple(found)


def _steps(value: Any, faults: list[str]) -> tuple[Step, ...]:
    found = []
    for item in value if isinstance(value, list) else []:
        given = item if isinstance(item, Mapping) else {"name": item}
        tied = given.get("criteria")
        names = tuple(filter(None, map(text_of, tied))) if isinstance(tied, list) else ()
        kind = wording.class_of(given.get("reversibility"))
        found.append(Step(text_of(given.get("name")), names, kind))
    check_names("steps", [each.name for each in found], faults)
    if not found:
        faults.append("steps")
    return tuple(found)


def check_names(what: str, names: list[str], faults: list[str]) -> None:
    """Nothing without a name, and no name twice."""
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
    """Each text once; the one with a command wins."""
    found: dict[str, MustNot] = {}
    for entry in (entry for entries in lists for entry in entries):
        if entry.violated_if or entry.text not in found:
            found[entry.text] = entry
    return tuple(found.values())


def merged(first: Iterable[Criterion], *more: Criterion) -> tuple[Criterion, ...]:
    """Each name once, in order of first mention; who speaks later decides how it is shown."""
    found = {each.name: each for each in first}
    for each in more:
        before = found.get(each.name)
        if before and before.command and not each.command:
            each = each._replace(command=before.command, expect=before.expect)
        word = each.verification or (before.verification if before else ASSUMPTION)
        found[each.name] = each._replace(verification=word)
    return tuple(found.values())
