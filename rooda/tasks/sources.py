"""Turns task lists and issues into drafts of tasks, and compares them with the tasks that were imported. Pure."""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rooda.run import task_lists
from rooda.run.task_lists import BULLETS, HEADINGS, STORIES, Item, TaskList
from rooda.tasks import model
from rooda.tasks.model import Source, Task

GH, GLAB, FILE = "gh", "glab", "file"
FORGES = (GH, GLAB)
KNOWN = f"{task_lists.FORMS}; or gh or glab for issues"


class Draft(NamedTuple):
    """A task as its source describes it."""

    key: str  # the item's identity at the source
    title: str
    text: str
    place: str  # file, or the issue's URL
    after: tuple[str, ...] = ()  # keys of the drafts that must land first
    commands: tuple[str, ...] = ()
    line: int = 0
    done: bool = False
    author: str = ""  # who opened the issue

    @property
    def digest(self) -> str:
        """Return a hash of the text without its check marks. If the hash differs later, the text has been edited."""
        plain = re.sub(r"\[[ xX~/-]\]", "[]", self.text)
        return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class Known(NamedTuple):
    """A task that an earlier import added, and the draft that its source has now."""

    task: Task
    draft: Draft

    @property
    def is_edited(self) -> bool:
        return bool(self.task.source.digest) and self.task.source.digest != self.draft.digest


class Plan(NamedTuple):
    """Result of comparing a source with its tasks: new drafts, known drafts and tasks that the source now lacks."""

    new: tuple[Draft, ...] = ()
    known: tuple[Known, ...] = ()
    gone: tuple[Task, ...] = ()


def of_list(found: TaskList, place: str) -> list[Draft]:
    """Return the drafts in a list from a file. An item without an id has its first line as its key."""
    ids = [item.id for item in found.items if item.id]
    unique = {name for name in ids if ids.count(name) == 1}
    keys = [f"id:{item.id}" if item.id in unique else f"text:{_title(item)}" for item in found.items]
    keys = [_numbered(key, keys[:at].count(key)) for at, key in enumerate(keys)]
    return [_draft(item, key, place) for item, key in zip(found.items, keys, strict=True)]


def _numbered(key: str, earlier: int) -> str:
    return f"{key} ({earlier + 1})" if earlier else key


def _title(item: Item) -> str:
    return item.title or item.id


def _draft(item: Item, key: str, place: str) -> Draft:
    head = "" if item.title and item.text.startswith(item.title) else f"{_title(item)}\n\n"
    source = f"This is {model.clean(item.id)} of {place}." if item.id else f"This is an item of {place}."
    text = model.clean(f"{head}{item.text}").strip()
    after = tuple(f"id:{name}" for name in item.after)
    commands = tuple(map(model.clean, item.commands))
    return Draft(key, model.clean(_title(item)), f"{text}\n\n{source}", place, after, commands, item.line, item.done)


def of_github(said: Any) -> list[Draft]:
    """Return the drafts from the output of `gh issue list --json number,title,body,url,author`."""
    return [_issue(each, "number", "body", "url", "login") for each in _objects(said, "number")]


def of_gitlab(said: Any) -> list[Draft]:
    """Return the drafts from the output of `glab issue list --output json`."""
    return [_issue(each, "iid", "description", "web_url", "id") for each in _objects(said, "iid")]


def _objects(said: Any, number: str) -> list[Mapping[str, Any]]:
    """Return the objects in the JSON list `said` whose value for the key `number`, the issue number, is an integer."""
    rows = said if isinstance(said, list) else []
    return [each for each in rows if isinstance(each, Mapping) and isinstance(each.get(number), int)]


def _issue(said: Mapping[str, Any], number: str, body: str, url: str, author: str) -> Draft:
    place, words = str(said.get(url) or ""), model.clean(str(said.get(body) or "")).replace("\r\n", "\n").strip()
    title = " ".join(model.clean(str(said.get("title") or "")).split()) or f"Issue {said.get(number)}"
    who = said.get("author")
    text = "\n\n".join(part for part in (title, words, f"This is issue #{said.get(number)}: {place}") if part)
    found = task_lists.markdown(words)
    commands = dict.fromkeys(command for item in found.items for command in item.commands) if found else {}
    key = f"issue:{said.get(number)}"
    name = str(who.get(author) or "") if isinstance(who, Mapping) else ""
    return Draft(key, title, text, place, (), tuple(commands), author=name)


def plan(drafts: Sequence[Draft], tasks: Iterable[Task], kind: str, place: str) -> Plan:
    """Compare the drafts of a source with the tasks that earlier imports took from it.

    `place`: the file, or the common prefix of the issues' URLs.
    """
    mine = {task.source.key: task for task in tasks if _is_from(task, kind, place)}
    known = tuple(Known(mine[draft.key], draft) for draft in drafts if draft.key in mine)
    new = [draft for draft in drafts if draft.key not in mine and not draft.done]
    there = {draft.key for draft in drafts}
    gone = tuple(task for key, task in mine.items() if key not in there and not task.is_over)
    return Plan(tuple(in_order(new)), known, gone)


def _is_from(task: Task, kind: str, place: str) -> bool:
    source = task.source
    return source.kind == kind and (source.place.startswith(place) if kind in FORGES else source.place == place)


def in_order(drafts: Sequence[Draft]) -> list[Draft]:
    """Return the drafts in order, but each after those that it waits for. The caller must have excluded cycles."""
    by_key = {draft.key: draft for draft in drafts}
    found: dict[str, Draft] = {}
    stack = [draft.key for draft in reversed(drafts)]
    opened: set[str] = set()
    while stack:
        key = stack[-1]
        missing = [each for each in by_key[key].after if each in by_key and each not in found and each not in opened]
        if key in found or not missing:
            found.setdefault(stack.pop(), by_key[key])
        else:
            opened.add(key)
            stack += reversed(missing)
    return [*found.values()]


def circle(drafts: Sequence[Draft]) -> list[str]:
    """Return the keys of drafts that wait for each other in a cycle; [] if there is none."""
    open_ = {draft.key: set(draft.after) for draft in drafts if not draft.done}
    open_ = {key: {each for each in after if each in open_} for key, after in open_.items()}
    while free := [key for key, after in open_.items() if not after]:
        for key in free:
            del open_[key]
        for after in open_.values():
            after.difference_update(free)
    if not open_:
        return []
    path = [min(open_)]
    while (following := min(open_[path[-1]])) not in path:
        path.append(following)
    return path[path.index(following) :]


def name_of(key: str) -> str:
    """Return a key without its prefix, such as `id:`, for use in a message."""
    return key.partition(":")[2]


def source_of(draft: Draft, kind: str, sync: bool) -> Source:
    return Source(kind, draft.key, draft.place, draft.line, sync, digest=draft.digest)


def after_of(draft: Draft, ids: Mapping[str, int], more: Collection[int] = ()) -> tuple[int, ...]:
    """Return the ids of the tasks that a draft waits for. Keys that `ids` lacks (those of done items) are left out."""
    return tuple(dict.fromkeys([*(ids[key] for key in draft.after if key in ids), *more]))


# Ticking


def ticked(text: str, source: Source) -> str:
    """Return a list's text with one item marked as done; unchanged if the item was removed or is done already."""
    try:
        found = task_lists.read(text, source.place)
    except task_lists.UnknownForm:
        return text
    drafts = of_list(found, source.place)
    place = next((at for at, each in enumerate(drafts) if each.key == source.key), -1)
    if place < 0 or drafts[place].done:
        return text
    if found.form == STORIES:
        return _passed(text, found.items[place])
    rows = text.split("\n")
    end = next((each.line - 1 for each in found.items[place + 1 :]), len(rows))
    at = found.items[place].line - 1
    rows[at] = _tick_line(rows[at], found.form)
    if found.form == HEADINGS:
        rows[at + 1 : end] = [re.sub(r"^(\s*[-*+]\s+)\[ \]", r"\1[x]", row) for row in rows[at + 1 : end]]
    return "\n".join(rows)


def _tick_line(row: str, form: str) -> str:
    if form == BULLETS:
        return re.sub(r"^(\s*(?:[-*+]|\d{1,9}[.)])\s+)", r"\1✅ ", row, count=1)
    changed = re.sub(r"\[[ ~/-]\]", "[x]", row, count=1)
    ending = "\r" if row.endswith("\r") else ""
    return f"{row.rstrip()} (done){ending}" if changed == row and form == HEADINGS else changed


def _passed(text: str, item: Item) -> str:
    """Return the text of a prd.json with one story marked as passed; the indentation is kept."""
    value = json.loads(text.removeprefix("\ufeff"))
    for story in _stories(value):
        if str(story.get("id")) == item.id or (not item.id and story.get("title") == item.title):
            story["passes"] = True
    step = re.search(r"\n([ \t]+)", text)
    made = json.dumps(value, indent=step[1] if step else None, ensure_ascii=False)
    return made + ("\n" if text.endswith("\n") else "")


def _stories(value: Any) -> list[dict[str, Any]]:
    found = value
    if isinstance(value, dict):
        found = value.get("userStories") or value.get("user_stories")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def title_of(draft: Draft) -> str:
    return model.title_of(draft.title) or draft.title[: model.LONGEST_TITLE]
