"""Reads lists of tasks that users and other tools write: check boxes, `### Task n`, spec-kit, prd.json. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from rooda.base import json

HEADINGS, BOXES, SPEC_KIT, BULLETS, STORIES = "headings", "check boxes", "spec-kit", "bullets", "user stories"
FORMS = (
    "a list of `- [ ]` boxes, headings `### Task 1: …` or `### T-001: …`, a tasks.md of spec-kit, a prd.json with "
    "`userStories`, or a fix_plan.md or TODO.md with a bullet for each task"
)


LONGEST = 10_000  # characters of a line; the rest is ignored


class UnknownForm(ValueError):
    """Raised for a text without any known task. Its message continues a sentence that begins with the file's name."""


class Check(NamedTuple):
    """An acceptance condition of a task: its text, and the command to check it if the text has one."""

    name: str
    command: str = ""
    done: bool = False


class Item(NamedTuple):
    """One task of a list."""

    id: str  # as the list writes it: `T-010`, `Task 2`, `US-001`, `1.2`; "" if it has none
    title: str
    text: str  # everything that the list says about the task, sub-items included
    done: bool = False
    acceptance: tuple[Check, ...] = ()
    after: tuple[str, ...] = ()  # ids of the tasks that must be done first
    line: int = 0  # in the file, from 1; 0 if unknown
    section: str = ""  # the heading above it

    @property
    def commands(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(check.command for check in self.acceptance if check.command))


class TaskList(NamedTuple):
    """The tasks of a file, and the form of the list (one of the constants above)."""

    form: str
    items: tuple[Item, ...]


def read(text: str, name: str = "") -> TaskList:
    """Read a list of tasks. Raises UnknownForm if it has no tasks. `name`: the file's name, such as TODO.md."""
    if re.match(r"\ufeff?\s*(?:\{|\[\s*\{)", text):
        return _json_list(text)
    if found := markdown(text, name):
        return found
    raise UnknownForm("it has no check boxes and no headings of tasks")


def markdown(text: str, name: str = "") -> TaskList | None:
    """Read a list in Markdown; None if it has no task."""
    lines = list(_lines(text))
    if items := _heading_items(lines):
        return TaskList(HEADINGS, items)
    if boxes := list(_box_items(lines, _BOX)):
        if any(_SPEC_KIT.match(box.words) for box in boxes):
            return TaskList(SPEC_KIT, _spec_kit_items(boxes))
        return TaskList(BOXES, tuple(_numbered([box.item() for box in boxes])))
    if _is_plain_list(lines, name) and (boxes := list(_box_items(lines, _BULLET))):
        return TaskList(BULLETS, tuple(box.item() for box in boxes))
    return None


class _Line(NamedTuple):
    number: int
    text: str
    indent: int
    code: bool = False  # in a code fence or a comment


_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_MARK = r"(?:[-*+]|\d{1,9}[.)])"
_BOX = re.compile(rf"[ \t]*{_MARK}[ \t]+\[(?P<mark>[ xX~/>-])\]\*?[ \t]+(?P<words>\S.*)$")
_BULLET = re.compile(rf"(?P<mark>)[ \t]*{_MARK}[ \t]+(?P<words>\S.*)$")
_LIST = re.compile(rf"\s*{_MARK}\s")
_TITLE = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)$")
_TASK = re.compile(
    r"(?:\[(?P<mark>[ xX])\][ \t]+)?(?P<sign>✅|☑️?|✔️?)?[ \t]*"
    r"(?P<id>[A-Za-z]+-\d+(?=[ \t]*[:.][ \t]*\S)|(?i:task)[ \t]+\d+(?:\.\d+)*)[ \t]*(?:[:.)]|[—–-](?=[ \t]))?[ \t]*"
    r"(?P<title>.*)$"
)
_ENDED = re.compile(r"[ \t]*(?:✅|☑️?|✔️?|[\[(](?:done|completed?|finished)[\])])[ \t]*$", re.I)
_SKIPPED = re.compile(r"\bout[ -]of[ -]scope\b|\bwon['’]?t (?:do|fix)\b|\bnon[- ]goals?\b", re.I)
_PLAIN = re.compile(r"\W*(?:\w+ )?(?:fix[ _-]?plan|to[- ]?do(?:s| list)?|tasks?|task list|backlog)\W*$", re.I)
_PLAIN_NAME = re.compile(r"@?(?:fix[_-]?plan|to-?do)\b.*", re.I)
_DONE_SECTION = re.compile(r"\W*(?:completed?|done|finished)\b", re.I)
_NOT_TASKS = re.compile(r"\W*(?:notes?|context|background|legend|references?|links?|learnings?)\b", re.I)
_BULLET_DONE = re.compile(r"(?:✅|☑️?|✔️?|\*{0,2}(?:DONE|COMPLETED?)\b\*{0,2}:?[ \t])")


def _lines(text: str) -> Iterator[_Line]:
    """Yield the lines; `code` marks those in code fences and comments."""
    fence, comment = "", False
    for number, line in enumerate(text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n"), 1):
        line = line[:LONGEST]
        wide = line.expandtabs(4)
        mark = _FENCE.match(line)
        code = bool(fence) or comment
        if comment or (not fence and line.lstrip().startswith("<!--")):
            comment, code = "-->" not in line, True
        elif mark and (not fence or (mark[1].startswith(fence) and not line.strip(" \t`~"))):
            fence, code = ("" if fence else mark[1]), True
        yield _Line(number, line, len(wide) - len(wide.lstrip()), code)


# Headings of tasks: each is a task, with all lines up to the next heading of a task or of its level


def _heading_items(lines: list[_Line]) -> tuple[Item, ...]:
    heads = [(place, *head) for place, line in enumerate(lines) if (head := _heading(line))]
    tasks = [(place, level, _TASK.match(words) if 2 <= level <= 4 else None) for place, level, words in heads]
    items = []
    for number, (place, level, task) in enumerate(tasks):
        if task:
            later = (tasks[at] for at in range(number + 1, len(tasks)))
            end = next((at for at, other, following in later if other <= level or following), len(lines))
            items.append(_heading_item(task, lines[place], lines[place + 1 : end]))
    known = {item.id.lower(): item.id for item in items}
    return tuple(item._replace(after=_known_only(item, known)) for item in items)


def _heading(line: _Line) -> tuple[int, str] | None:
    found = None if line.code else _TITLE.match(line.text)
    return (len(found[1]), found[2].rstrip(" \t#")) if found else None


def _heading_item(task: "re.Match[str]", head: _Line, body: list[_Line]) -> Item:
    boxes = [found for line in body if not line.code and (found := _BOX.match(line.text))]
    checks = tuple(check_of(found["words"].rstrip(), _is_done(found["mark"])) for found in boxes)
    title = " ".join(_ENDED.sub("", task["title"]).split())
    marked = (task["mark"] or " ") != " " or bool(task["sign"]) or bool(_ENDED.search(task["title"]))
    text = "\n".join(line.text.rstrip() for line in body).strip("\n")
    done = marked or (bool(checks) and all(check.done for check in checks))
    return Item(task["id"], title, text, done, checks, (*_blockers(text), *_written_needs(body)), head.number)


_BLOCKED = re.compile(r"blocked[_ ]?by[\"']?\s*[:=]\s*(\[[^\]]*\]|[^,;]*(?:,\s*[A-Za-z]+-\d+)*)", re.I)
_NEEDS = re.compile(r"\W*(?:depends on|depend(?:s|encies|ency)|blocked by|requires|after)\W*:\W*(.*)", re.I)
_ID = re.compile(r"[A-Za-z]+-\d+|\b(?i:task)[ \t]+\d+(?:\.\d+)*")


def _blockers(text: str) -> list[str]:
    """Return the ids after `blockedBy` in the comments of a task."""
    blocked = _BLOCKED.search(" ".join(_comments(text)))
    return re.findall(r"[A-Za-z]+-\d+", blocked[1]) if blocked else []


def _comments(text: str) -> Iterator[str]:
    place = 0
    while (begin := text.find("<!--", place)) >= 0 and (end := text.find("-->", begin)) >= 0:
        yield text[begin + 4 : end]
        place = end


def _written_needs(body: list[_Line]) -> list[str]:
    """Return the ids in lines such as `**Depends on:** Task 1`, marked with `?`: they may not be ids of tasks."""
    lines = [_NEEDS.match(line.text) for line in body if not line.code]
    return [f"?{found[0]}" for line in lines if line for found in _ID.finditer(line[1])]


def _known_only(item: Item, known: Mapping[str, str]) -> tuple[str, ...]:
    """Return the ids that the task waits for. An id in prose counts only if another task of the list has it."""
    ids = [known.get(name[1:].lower(), "") if name.startswith("?") else name for name in item.after]
    return tuple(dict.fromkeys(name for name in ids if name and name != item.id))


# Check boxes: each box is a task, and those below it are its conditions


class _Box(NamedTuple):
    """A box or bullet of the outermost level, with the lines and boxes that belong to it."""

    words: str
    mark: str
    line: _Line
    below: tuple[_Line, ...]
    section: str = ""
    phase: str = ""
    done: bool = False

    def checks(self, own: str) -> tuple[Check, ...]:
        """Return the task's conditions: its own text (`own`) if that has a command, and the boxes below it."""
        first = check_of(own, self.done)
        found = [each for line in self.below if not line.code and (each := _BOX.match(line.text))]
        inner = (check_of(each["words"].rstrip(), _is_done(each["mark"])) for each in found)
        return (*((first,) if first.command else ()), *inner)

    def item(self, words: str = "") -> Item:
        """Return the box as a task. `words`: its text without id and labels; by default, its text as written."""
        words = words or self.words
        title = check_of(words).name
        return Item("", title, self._text(words), self.done, self.checks(words), (), self.line.number, self.section)

    def _text(self, words: str) -> str:
        indents = [line.indent for line in self.below if line.text.strip()]
        cut = min(indents, default=0)
        rows = [line.text.expandtabs(4)[cut:].rstrip() for line in self.below]
        return "\n".join([words, *rows]).rstrip()


def _is_done(mark: str) -> bool:
    return mark in ("x", "X")


def _box_items(lines: list[_Line], pattern: "re.Pattern[str]") -> Iterator[_Box]:
    """Yield the outermost check boxes or bullets, each with the more deeply indented lines below it."""
    section, phase, place, skipped = "", "", 0, False
    while place < len(lines):
        line = lines[place]
        place += 1
        if heading := _heading(line):
            section = heading[1]
            phase = section if re.match(r"\W*phase\b", section, re.I) else phase
            skipped = bool(_SKIPPED.search(section)) or (pattern is _BULLET and bool(_NOT_TASKS.match(section)))
        found = None if line.code else pattern.match(line.text)
        if not found:
            continue
        end = _end_of(lines, place, line.indent)
        if not skipped:
            words, below = _joined(found["words"].rstrip(), lines[place:end])
            box = _Box(words, found["mark"], line, tuple(below), section, phase)
            yield box._replace(done=_box_done(box, pattern))
        place = end


def _box_done(box: _Box, pattern: "re.Pattern[str]") -> bool:
    struck = box.words.startswith("~~") and box.words.rstrip(" .").endswith("~~")
    if pattern is _BOX:
        return _is_done(box.mark) or struck
    return struck or bool(_BULLET_DONE.match(box.words) or _DONE_SECTION.match(box.section))


def _end_of(lines: list[_Line], place: int, indent: int) -> int:
    """Return the index after the last nonblank line of a list item; `indent` is the item's own indentation."""
    end = place
    for at in range(place, len(lines)):
        line = lines[at]
        if line.text.strip() and (line.indent <= indent or _heading(line)):
            break
        end = at + 1 if line.text.strip() else end
    return end


def _joined(words: str, below: list[_Line]) -> tuple[str, list[_Line]]:
    """Join an item's first line with the lines that continue its sentence; return the text and the other lines."""
    count = 0
    for line in below:
        if line.code or not re.match(r"\s+[a-z`(]", line.text) or _LIST.match(line.text):
            break
        count += 1
    return " ".join([words, *(line.text.strip() for line in below[:count])]), below[count:]


_NUMBER = re.compile(r"(\d+(?:\.\d+)+)\.?[ \t]+(\S.*)$")


def _numbered(items: list[Item]) -> list[Item]:
    """Move numbers such as `1.2` from the titles to the ids, unless two tasks have the same number."""
    found = [_NUMBER.match(item.title) for item in items]
    numbers = [each[1] for each in found if each]
    if len(numbers) != len(set(numbers)):
        return items
    return [item._replace(id=each[1], title=each[2]) if each else item for item, each in zip(items, found, strict=True)]


def _is_plain_list(lines: list[_Line], name: str) -> bool:
    """True if the file's name or first heading, such as TODO, says that its bullets are tasks."""
    first = next((head[1] for line in lines if (head := _heading(line))), "")
    return bool(_PLAIN_NAME.match(name.rpartition("/")[2]) or _PLAIN.match(first))


# spec-kit: `- [ ] T012 [P] [US1] Create src/x.py (depends on T003)`, below headings `## Phase 3: …`

_SPEC_KIT = re.compile(r"\**(T\d{2,}[a-z]?)\b\**:?[ \t]+(.*)$")
_LABELS = re.compile(r"(?:\[(?:P|US\d+|Story\d*)\][ \t]*)+")
_DEPENDS = re.compile(r"\(?\b(?:depends on|blocked by|requires|needs)[ \t:]+([^().]*?\bT\d{2,}[^().]*)\)?", re.I)
_RANGE = re.compile(r"\bT(\d{2,})([a-z]?)(?:[ \t]*(?:[-–—]|to|through)[ \t]*T(\d{2,}))?")


def _spec_kit_items(boxes: list[_Box]) -> tuple[Item, ...]:
    """Return the tasks of a spec-kit list.

    A task without [P] waits for all earlier tasks of its phase; each phase waits for the previous phase.
    """
    items: list[Item] = []
    phase, before, ahead = None, list[str](), list[str]()  # last ids of the earlier phases, and of this phase
    for box in boxes:
        if not (found := _SPEC_KIT.match(box.words)):
            items.append(box.item())
            continue
        if box.phase != phase:
            phase, before, ahead = box.phase, (ahead or before), []
        labels = _LABELS.match(found[2])
        own, parallel = found[2][labels.end() if labels else 0 :], bool(labels and "[P]" in labels[0])
        after = (before if parallel else ahead or before) + list(_named(own))
        items.append(box.item(own)._replace(id=found[1], after=_others(after, found[1]), section=box.phase))
        ahead = [*ahead, found[1]] if parallel else [found[1]]
    return tuple(items)


def _others(ids: Iterable[str], own: str) -> tuple[str, ...]:
    return tuple(name for name in dict.fromkeys(ids) if name != own)


def _named(words: str) -> Iterator[str]:
    """Yield the ids in words such as `(depends on T001, T003-T005)`."""
    for part in _DEPENDS.findall(words):
        for first, letter, last in _RANGE.findall(part):
            numbers = range(int(first), min(int(last or first), int(first) + 100) + 1)
            yield from (f"T{number:0{len(first)}}{letter}" for number in numbers)


# prd.json


def _json_list(text: str) -> TaskList:
    try:
        value = json.loads(text.removeprefix("\ufeff"))
    except ValueError as problem:
        raise UnknownForm(invalid(problem)) from None
    items = stories(value, text)
    if not items:
        raise UnknownForm("it is JSON without `userStories`" if items is None else "it has no user story")
    return TaskList(STORIES, items)


def invalid(problem: ValueError) -> str:
    """Return why a file is not valid JSON, as the end of a sentence about the file."""
    line = getattr(problem, "lineno", 0)
    return f"it is not valid JSON (line {line})" if line else "it is not valid JSON"


def stories(value: Any, text: str = "") -> tuple[Item, ...] | None:
    """Return the stories of a prd.json by priority; None if it has no list of stories.

    `text` is the content of the file, in which the line numbers are looked up.
    """
    found = _first(value, "userStories", "user_stories") if isinstance(value, Mapping) else value
    if not isinstance(found, list):
        return None
    given = [each for each in found if isinstance(each, Mapping)]
    if found is value and not (given and all("passes" in each for each in given)):
        return None
    lines = _lines_of(text)
    return tuple(_story(each, _line_of(each, lines)) for each in sorted(given, key=_priority))


def _first(given: Mapping[str, Any], *keys: str) -> Any:
    return next((given[key] for key in keys if given.get(key) is not None), None)


def _priority(story: Mapping[str, Any]) -> float:
    number = story.get("priority")
    return number if isinstance(number, int | float) else float("inf")


def _story(given: Mapping[str, Any], line: int) -> Item:
    wanted = _strings(_first(given, "acceptanceCriteria", "acceptance_criteria", "steps"))
    name, about = _string(given.get("id")), _string(_first(given, "description", "story"))
    title = _string(given.get("title")) or about
    done = given.get("passes") is True or str(given.get("status")).lower() in ("done", "completed", "complete")
    after = _strings(_first(given, "dependsOn", "depends_on", "dependencies", "blockedBy"))
    parts = [title, about if about != title else "", *(f"- {each}" for each in wanted), _string(given.get("notes"))]
    checks = tuple(check_of(each, done) for each in wanted)
    whole = "\n".join(filter(None, parts))
    return Item(name, title, whole, done, checks, _others(after, name), line)


_NAMED = re.compile(r'"(id|title|description)"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)')


def _lines_of(text: str) -> dict[tuple[str, str], int]:
    """Return the line number of each id, title and description in a JSON file, keyed by key and value."""
    found: dict[tuple[str, str], int] = {}
    line, place = 1, 0
    for each in _NAMED.finditer(text):
        line, place = line + text.count("\n", place, each.start()), each.start()
        found.setdefault((each[1], each[2].strip('"')), line)
    return found


def _line_of(given: Mapping[str, Any], lines: Mapping[tuple[str, str], int]) -> int:
    """Return the line of a story in its file; 0 if it is not found."""
    keys = ((key, str(given.get(key))) for key in ("id", "title", "description"))
    return next((lines[key] for key in keys if key in lines), 0)


def _string(value: Any) -> str:
    return " ".join(str(value).split()) if isinstance(value, str | int | float) and value is not True else ""


def _strings(value: Any) -> list[str]:
    return list(filter(None, map(_string, value if isinstance(value, list) else [])))


# The command in the text of a condition

_EXITS = re.compile(
    r"(?:→|->|=>|[:,—–-])?\s*+(?:(?:exits?|returns?|ends?)\b(?: with)?(?: code| status)?\s*+0\b.*|passes|succeeds)\.?",
    re.IGNORECASE,
)


def check_of(words: str, done: bool = False) -> Check:
    """Return the condition that a text describes.

    Its command is in backticks at the end of the text, or before words such as "exits with 0".
    """
    text = words.removesuffix(")").rstrip(" \t")
    end = text.rfind("`")
    begin = text.rfind("`", 0, max(end, 0))
    command, rest = text[begin + 1 : end].strip(), text[end + 1 :].strip()
    if begin < 0 or not command or (rest and not _EXITS.fullmatch(rest)):
        return Check(words, "", done)
    name = words[:begin].rstrip(" \t").rstrip("(:—–-").strip()
    if not name or name.lower() in ("run", "running", "the command"):
        name = words.replace("`", "").strip()
    return Check(name, command, done)
