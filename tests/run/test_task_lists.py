"""Lists of tasks as people and other tools write them: id, title, done, conditions, what comes first."""

import json
from collections.abc import Mapping
from typing import NamedTuple

import pytest

from rooda.run import task_lists
from rooda.run.task_lists import Check, Item


class Wanted(NamedTuple):
    """What a list means: tasks as `id|title`, done ones after `x `; conditions, order and lines by place."""

    tasks: list[str]
    checks: Mapping[int, list[str]] = {}
    after: Mapping[int, list[str]] = {}
    lines: Mapping[int, int] = {}


def prd(*stories: dict[str, object], **more: object) -> str:
    return json.dumps({"project": "P", **more, "userStories": list(stories)}, indent=2)


PHASES = """\
# Tasks: export
- not a task
## Phase 1: Setup
- [x] T001 Create the project
- [ ] T002 [P] Configure linting in pyproject.toml
## Phase 2: User Story 1
- [ ] T003 [P] [US1] Model in src/model.py
- [ ] T004 [P] [US1] Test in tests/test_model.py
- [ ] T005 [US1] Service in src/service.py (depends on T003)
- [ ] T006 [US1] Endpoint, needs T005
## Dependencies
- T003 before T005
"""

LISTS: dict[str, tuple[str, Wanted]] = {
    "boxes": ("- [ ] one\n- [x] two\n* [X] three\n", Wanted(["|one", "x |two", "x |three"], lines={2: 3})),
    "numbered boxes": ("1. [ ] one\n2) [ ] two\n", Wanted(["|one", "|two"])),
    "nested boxes": (
        "- [ ] Add login\n  - [ ] form\n  - [x] token `make t`\n    - [ ] deep\n- [ ] Next\n",
        Wanted(["|Add login", "|Next"], {0: ["form", "x token = make t", "deep"]}, lines={1: 5}),
    ),
    "done with open ones below": ("- [x] a\n  - [ ] b\n", Wanted(["x |a"], {0: ["b"]})),
    "all below done": ("- [ ] a\n  - [x] b\n", Wanted(["|a"], {0: ["x b"]})),
    "boxes with tabs": ("-\t[ ] a\n\t- [ ] b\n-\t[ ] c\n", Wanted(["|a", "|c"], {0: ["b"]})),
    "Windows lines": ("- [ ] a\r\n- [x] b\r\n", Wanted(["|a", "x |b"])),
    "a command": ("- [ ] Tests pass: `pytest -q`\n", Wanted(["|Tests pass"], {0: ["Tests pass = pytest -q"]})),
    "a sentence over two lines": (
        "- [ ] Write the page\n  about limits\n\n  More.\n",
        Wanted(["|Write the page about limits"]),
    ),
    "boxes below bullets": ("- Backend\n  - [ ] a\n  - [ ] b\n- Other\n  - [ ] c\n", Wanted(["|a", "|b", "|c"])),
    "in a fence": ("```\n- [ ] an example\n```\n- [ ] real\n", Wanted(["|real"], lines={0: 4})),
    "in a comment": ("<!--\n- [ ] template\n-->\n- [ ] real\n", Wanted(["|real"])),
    "out of scope": ("## Now\n- [ ] a\n## Out of scope\n- [ ] b\n## Later\n- [ ] c\n", Wanted(["|a", "|c"])),
    "struck out": ("- [ ] ~~dropped~~\n- [ ] kept\n", Wanted(["x |~~dropped~~", "|kept"])),
    "in progress": ("- [~] half\n- [/] half\n- [-] begun\n", Wanted(["|half", "|half", "|begun"])),
    "numbers": (
        "## 1. Schema\n- [x] 1.1 Create it\n- [ ] 1.2 Migrate\n## 2. API\n- [ ] 2.1 Endpoint\n",
        Wanted(["x 1.1|Create it", "1.2|Migrate", "2.1|Endpoint"]),
    ),
    "kiro": (
        "# Implementation\n- [ ] 1. Set up\n  - [ ] 1.1 Folders\n    - _Requirements: 1.1_\n- [ ]* 2. Unit tests\n",
        Wanted(["|1. Set up", "|2. Unit tests"], {0: ["1.1 Folders"]}),
    ),
    "subtasks of a story": (
        "## Tasks / Subtasks\n- [ ] Task 1 (AC: 1, 2)\n  - [x] Subtask 1.1\n- [ ] Task 2 (AC: 3)\n",
        Wanted(["|Task 1 (AC: 1, 2)", "|Task 2 (AC: 3)"], {0: ["x Subtask 1.1"]}),
    ),
    "fix plan with boxes": (
        "# Fix Plan\n## High Priority\n- [ ] Parser\n## Completed\n- [x] Set up\n## Notes\n- Look at specs/\n",
        Wanted(["|Parser", "x |Set up"]),
    ),
    "fix plan without boxes": (
        "# Fix plan\n1. Parser of dates\n   - leap years\n2. ✅ Scaffold\n## Completed\n- Set up\n## Notes\n- no\n",
        Wanted(["|Parser of dates", "x |✅ Scaffold", "x |Set up"]),
    ),
    "to do": ("TODO\n# To do\n- buy\n- ~~sell~~\n- DONE: rent\n", Wanted(["|buy", "x |~~sell~~", "x |DONE: rent"])),
    "headings": (
        "### Task 1: Old\n- [x] nice\n### Task 2: First\n- [ ] a `make a` → exits 0\n- [x] b\n### Task 3\nWords.\n",
        Wanted(["x Task 1|Old", "Task 2|First", "Task 3|"], {0: ["x nice"], 1: ["a = make a", "x b"]}, lines={2: 6}),
    ),
    "headings with steps": (
        "# Plan\n## Task 1: Parser\n**Files:** src/p.py\n- [ ] **Step 1: Write the test**\n```python\n- [ ] x\n```\n"
        "- [ ] **Step 2: Run it**\n## Task 2 - Writer\n### Notes\n- [ ] noted\n# Appendix\n- [ ] no\n",
        Wanted(
            ["Task 1|Parser", "Task 2|Writer"],
            {0: ["**Step 1: Write the test**", "**Step 2: Run it**"], 1: ["noted"]},
        ),
    ),
    "headings with marks": (
        "### ✅ Task 1: a\n### [x] Task 2: b\n### Task 3: c (done)\n### [ ] Task 4: d\n",
        Wanted(["x Task 1|a", "x Task 2|b", "x Task 3|c", "Task 4|d"]),
    ),
    "headings with ids": (
        "### T-010: Page\n<!-- blockedBy: [T-002] -->\n- [ ] there\n### T-002: Set up\n",
        Wanted(["T-010|Page", "T-002|Set up"], {0: ["there"]}, {0: ["T-002"]}),
    ),
    "headings with needs": (
        "### Task 1: a\n**Depends on:** nothing, UTF-8\n### Task 2: b\n- Depends on: task 1\n",
        Wanted(["Task 1|a", "Task 2|b"], after={1: ["Task 1"]}),
    ),
    "spec-kit": (
        PHASES,
        Wanted(
            ["x T001|Create the project", "T002|Configure linting in pyproject.toml", "T003|Model in src/model.py",
             "T004|Test in tests/test_model.py", "T005|Service in src/service.py (depends on T003)",
             "T006|Endpoint, needs T005"],
            after={2: ["T001", "T002"], 3: ["T001", "T002"], 4: ["T003", "T004"], 5: ["T005"]},
            lines={0: 4, 5: 10},
        ),
    ),
    "spec-kit with ranges": (
        "- [ ] T01 a\n- [ ] T02 [P] b\n- [ ] T03 [P] c\n- [ ] **T09** [P] d (depends on T01-T03)\n",
        Wanted(["T01|a", "T02|b", "T03|c", "T09|d (depends on T01-T03)"], after={3: ["T01", "T02", "T03"]}),
    ),
    "prd.json": (
        prd(
            {"id": "US-002", "title": "Later", "priority": 2, "acceptanceCriteria": ["Reads well"]},
            {"id": "US-001", "title": "First", "priority": 1, "acceptanceCriteria": ["Run `true` → exits 0"]},
            {"id": "US-000", "title": "Old", "priority": 3, "passes": True},
        ),
        Wanted(["US-001|First", "US-002|Later", "x US-000|Old"], {0: ["Run true → exits 0 = true"], 1: ["Reads well"]},
               lines={1: 5}),
    ),
    "prd.json with needs": (
        prd({"id": 1, "description": "As a user I wait"}, {"id": 2, "title": "b", "dependsOn": [1], "status": "done"}),
        Wanted(["1|As a user I wait", "x 2|b"], after={1: ["1"]}),
    ),
    "features with steps": (
        json.dumps([{"category": "ui", "description": "Opens", "steps": ["Click"], "passes": False}]),
        Wanted(["|Opens"], {0: ["Click"]}, lines={0: 1}),
    ),
}  # fmt: skip
NO_LISTS = {
    "prose": "Some prose.",
    "bullets": "# Architecture\n- a room\n- a door\n",
    "notes of a plan": "# Plan\n\n1. We think.\n2. We act.\n",
    "empty": "",
    "no stories": '{"tasks": []}',
    "an empty prd": '{"userStories": []}',
    "an array": "[1]",
    "objects": '[{"name": "a"}]',
    "broken JSON": '{"userStories": [',
    "boxes in a fence": "```\n- [ ] a\n```\n",
    "a link": "[x] is no box\n",
}


def shown(item: Item) -> str:
    return f"{'x ' if item.done else ''}{item.id}|{item.title}"


def check(each: Check) -> str:
    return f"{'x ' if each.done else ''}{each.name}{each.command and f' = {each.command}'}"


def found(text: str) -> Wanted:
    items = task_lists.read(text).items
    checks = [[check(each) for each in item.acceptance] for item in items]
    return Wanted(
        [shown(item) for item in items],
        {place: each for place, each in enumerate(checks) if each},
        {place: [*item.after] for place, item in enumerate(items) if item.after},
        {place: item.line for place, item in enumerate(items)},
    )


def agrees(read: Wanted, wanted: Wanted) -> bool:
    """True if all is as wanted. Where conditions, order or lines are not named, they are not compared."""
    return (
        read.tasks == wanted.tasks
        and (not wanted.checks or read.checks == wanted.checks)
        and (not wanted.after or wanted.after.items() <= read.after.items())
        and wanted.lines.items() <= read.lines.items()
    )


@pytest.mark.parametrize("name", LISTS)
def test_I_42_a_list_is_read(name: str) -> None:
    """Ids, titles, what is done, conditions with their commands, order and lines."""
    text, wanted = LISTS[name]
    assert agrees(found(text), wanted), found(text)


@pytest.mark.parametrize("name", NO_LISTS)
def test_I_42_no_list_is_named(name: str) -> None:
    """What is no list of tasks is refused in words about the file, not about the parser."""
    with pytest.raises(task_lists.UnknownForm, match=r"^it (is|has) ") as problem:
        task_lists.read(NO_LISTS[name])
    assert "Expecting" not in str(problem.value)


def test_I_42_the_text_of_a_task() -> None:
    """All that the list says about it, without the indentation that makes it a part."""
    item = task_lists.read("## Now\n- [ ] Add login\n  - [ ] form\n\n  Some words.\n- [ ] b\n").items[0]
    assert item.text == "Add login\n- [ ] form\n\nSome words." and item.section == "Now"
    assert task_lists.read("- fix it\n", "docs/fix_plan.md").form == task_lists.BULLETS


def main() -> None:
    """Print how many lists of the collection are read as they are meant."""
    wrong = [name for name, (text, wanted) in LISTS.items() if not agrees(found(text), wanted)]
    taken = [name for name, text in NO_LISTS.items() if task_lists.markdown(text)]
    print(f"task lists read     {len(LISTS) - len(wrong):3} of {len(LISTS)}", *wrong)
    print(f"no task list, taken {len(taken):3} of {len(NO_LISTS)}", *taken)


if __name__ == "__main__":
    main()
