"""Read plans written by an agent or the user, tolerantly, and list their unclear parts."""

import re
from collections.abc import Iterable, Iterator, Mapping
from heapq import heappop, heappush
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
    """Add a fault for missing names and one for duplicate names."""
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


# A plan as a Markdown task list: headings `### T-001: title` or `### Task 1: title`, comments with `blockedBy`, check
# boxes; or check boxes alone
_HEAD = re.compile(
    r"^(#{2,4})[ \t]++([A-Za-z]++-\d++(?=[ \t]*+[:.][ \t]*+\S)|(?i:task)[ \t]++\d++)[ \t]*+[:.)]?+[ \t]*+(.*)$",
    re.MULTILINE,
)
_HEADING = re.compile(r"^(#{1,6})[ \t]", re.MULTILINE)
_BLOCKED = re.compile(r"blocked[_ ]?by[\"']?\s*[:=]\s*(\[[^\]]*\]|[^,;]*(?:,\s*[A-Za-z]+-\d+)*)", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z]+-\d+")
_BOX = re.compile(r"^[ \t]*+(?:[-*+]|\d++[.)])[ \t]++\[([ xX])\][ \t]++(\S.*)$", re.MULTILINE)
_EXITS = re.compile(
    r"(?:→|->|=>|[:,—–-])?\s*+(?:(?:exits?|returns?|ends?)\b(?: with)?(?: code| status)?\s*+0\b.*|passes|succeeds)\.?",
    re.IGNORECASE,
)


class Task(NamedTuple):
    """One task of a user's list, with its blockers and criteria."""

    name: str
    title: str
    after: tuple[str, ...]
    criteria: tuple[Criterion, ...]
    done: bool = False

    @property
    def step(self) -> str:
        return f"{self.name}: {self.title}" if self.name and self.title else self.name or self.title


def is_list(text: str) -> bool:
    """True if the text has headings of tasks, or check boxes."""
    return bool(_HEAD.search(text) or _BOX.search(text))


def read_tasks(text: str) -> Plan:
    """Read a Markdown task list: one step per task, after the tasks that block it; each check box is a criterion.

    Without headings of tasks, each box is a task. A checked box counts as done.
    """
    return _plan_of(_tasks(text) or _box_tasks(text), text)


def read_stories(value: Any) -> Plan | None:
    """Read the `userStories` of a prd.json as tasks, by priority; None if the value has none."""
    stories = value.get("userStories") if isinstance(value, Mapping) else None
    if not isinstance(stories, list):
        return None
    given = [each for each in stories if isinstance(each, Mapping)]
    tasks = [_story(each) for each in sorted(given, key=_priority)]
    return _plan_of(tasks, " ".join(f"{each.title} {' '.join(c.name for c in each.criteria)}" for each in tasks))


def _priority(story: Mapping[str, Any]) -> float:
    number = story.get("priority")
    return number if isinstance(number, int | float) else float("inf")


def _story(given: Mapping[str, Any]) -> Task:
    wanted = given.get("acceptanceCriteria")
    words = list(filter(None, map(text_of, wanted if isinstance(wanted, list) else [])))
    title = text_of(given.get("title")) or text_of(given.get("description"))
    done = given.get("passes") is True
    return Task(text_of(given.get("id")), title, (), tuple(_criterion(each, REVIEW) for each in words), done)


def _plan_of(written: list[Task], text: str) -> Plan:
    """Return the plan of a task list. Done tasks get no step, and keep only criteria with a command."""
    tasks = _ordered(written)
    there = set(tasks)
    faults: list[str] = []
    if lost := [task.name for task in written if task not in there]:
        faults.append(f"steps ({', '.join(lost)}: blocked by a missing task, or by each other)")
    check_names("steps", [task.name or task.title for task in written], faults)
    criteria = _boxes(tasks, faults)
    known = {each.name for each in criteria}
    open_ = [task for task in tasks if not task.done]
    if not open_:
        faults.append("steps (all tasks are marked as done)" if tasks else "steps")
    return Plan(
        scores_fault="a task list has no scores",
        reversibility=scoring.stricter(scoring.least_class(text)),
        criteria=criteria,
        steps=tuple(
            Step(task.step, tuple(each.name for each in task.criteria if each.name in known)) for task in open_
        ),
        unclear=tuple(faults),
        finished=tuple(task.step for task in tasks if task.done),
    )


def _tasks(text: str) -> list[Task]:
    text = text.replace("\r\n", "\n")
    return [_task(found[2], found[3], _below(text, found)) for found in _HEAD.finditer(text)]


def _box_tasks(text: str) -> list[Task]:
    """Return one task per check box of a list without headings of tasks."""
    found = []
    for mark, words in _BOX.findall(text.replace("\r\n", "\n")):
        criterion = _criterion(words.rstrip(" \t"), REVIEW)
        found.append(Task("", criterion.name, (), (criterion,), mark != " "))
    return found


def _below(text: str, head: "re.Match[str]") -> str:
    """Return the text below a heading, up to the next task or the next heading of its level."""
    for found in _HEADING.finditer(text, head.end()):
        if len(found[1]) <= len(head[1]) or _HEAD.match(text, found.start()):
            return text[head.end() : found.start()]
    return text[head.end() :]


def _boxes(tasks: list[Task], faults: list[str]) -> tuple[Criterion, ...]:
    """Merge check boxes by name; several tasks may share one, but it can have only one command."""
    written = [each for task in tasks for each in task.criteria if each.command or not task.done]
    commands = {(each.name, each.command) for each in written if each.command}
    check_names("criteria", [name for name, _ in commands], faults)
    found: dict[str, Criterion] = {}
    for each in written:
        if each.command or each.name not in found:
            found[each.name] = each
    return tuple(found.values())


def _task(name: str, title: str, body: str) -> Task:
    blocked = _BLOCKED.search(" ".join(_comments(body)))
    prose = REVIEW if name.lower().startswith("task") else ASSUMPTION
    boxes = [(mark != " ", _criterion(words.rstrip(" \t"), prose)) for mark, words in _BOX.findall(body)]
    return Task(
        name,
        " ".join(title.split()),
        tuple(_NAME.findall(blocked[1])) if blocked else (),
        tuple(each for checked, each in boxes if each.command or not checked),
        bool(boxes) and all(checked for checked, _ in boxes),
    )


def _comments(text: str) -> Iterator[str]:
    place = 0
    while (begin := text.find("<!--", place)) >= 0 and (end := text.find("-->", begin)) >= 0:
        yield text[begin + 4 : end]
        place = end


def _criterion(words: str, prose: str = ASSUMPTION) -> Criterion:
    """Return the criterion of a check box; without a command its type is `prose`.

    The command is the text in backticks at the end of the box, or before words such as "exits with 0".
    """
    text = words.removesuffix(")").rstrip(" \t")
    end = text.rfind("`")
    begin = text.rfind("`", 0, max(end, 0))
    command, rest = text[begin + 1 : end].strip(), text[end + 1 :].strip()
    if begin < 0 or not command or (rest and not _EXITS.fullmatch(rest)):
        return Criterion(words, prose)
    name = words[:begin].rstrip(" \t").rstrip("(:—–-").strip()
    if not name or name.lower() in ("run", "running", "the command"):
        name = words.replace("`", "").strip()
    return Criterion(name, EXECUTION, command)


def _ordered(tasks: list[Task]) -> list[Task]:
    """Sort tasks topologically, otherwise in their order; omit tasks with a missing blocker or in a cycle."""
    found: dict[Task, None] = {}  # an ordered set
    waiting: dict[str, list[int]] = {}
    open_ = [len({*task.after}) for task in tasks]
    for place, task in enumerate(tasks):
        for name in {*task.after}:
            waiting.setdefault(name, []).append(place)
    ready = [place for place, count in enumerate(open_) if not count]
    while ready:
        task = tasks[heappop(ready)]
        found[task] = None
        for place in waiting.pop(task.name, ()):
            open_[place] -= 1
            if not open_[place]:
                heappush(ready, place)
    return list(found)
