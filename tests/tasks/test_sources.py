"""Where tasks come from: T-02 of the page on tasks."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from rooda.run import task_lists
from rooda.tasks import sources
from tests.kit.workspace import Ran, Workspace, until

LISTS = {
    "TODO.md": "- [x] done\n- [ ] Fix the login: `true`\n  - [ ] keep the session\n- [ ] Speed up\n",
    "prd.json": json.dumps({"userStories": [{"id": "US-1", "title": "First", "acceptanceCriteria": ["a"]},
                                            {"id": "US-2", "title": "Second", "passes": True}]}, indent=2) + "\n",
    "specs/tasks.md": "## Phase 1: Setup\n- [ ] T001 Create\n- [ ] T002 [P] Lint\n"
                      "## Phase 2: Story\n- [ ] T003 Model (depends on T001)\n- [X] T004 Old\n",
    "fix_plan.md": "# Fix plan\n- Parser\n- ✅ Scaffold\n",
    "PLAN.md": "### Task 1: Base\n- [ ] a `true`\n### Task 2: Top\nDepends on: Task 1\n",
}  # fmt: skip
FORGE = """#!/bin/sh
echo "$(basename "$0") $*" >> "$FAKE/asked"
case "$*" in
    "issue list"*) cat "$FAKE/issues" ;;
    *"collaborators/ann/permission") echo '{"permission": "write"}' ;;
    *"collaborators/"*"/permission") echo '{"permission": "read"}' ;;
    *"members/all/7") echo '{"access_level": 40}' ;;
    *"members/all/"*) echo '{"message": "404 Not found"}'; exit 1 ;;
esac
"""


def listed(repo: Workspace) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(repo.rooda("tasks", "--json").out)
    return found


def titles(repo: Workspace) -> list[str]:
    return [task["details"]["title"] for task in listed(repo)]


@pytest.mark.parametrize(
    ("name", "wanted", "after"),
    [
        ("TODO.md", ["Fix the login", "Speed up"], [[], []]),
        ("prd.json", ["First"], [[]]),
        ("specs/tasks.md", ["Create", "Lint", "Model (depends on T001)"], [[], [], [1, 2]]),
        ("fix_plan.md", ["Parser"], [[]]),
        ("PLAN.md", ["Base", "Top"], [[], [1]]),
    ],
)
def test_T_02_a_list_is_imported_once(repo: Workspace, name: str, wanted: list[str], after: list[list[int]]) -> None:
    """What is done is left out, order and place are kept, and a second import adds nothing."""
    repo.write(name, LISTS[name])
    done = repo.rooda("tasks", "add", "--from", name, "--yes", "--priority", "high")
    assert done.code == 0 and titles(repo) == wanted, done.both
    found = listed(repo)
    assert [sorted(task["details"]["after"]) for task in found] == [sorted(each) for each in after]
    assert {(task["details"]["source"], task["details"]["priority"]) for task in found} == {(name, "high")}
    again = repo.rooda("tasks", "add", "--from", name)
    assert (again.code, again.out) == (0, "No new tasks were found.\n") and listed(repo) == found


def test_T_02_what_changes_at_the_source_is_said(repo: Workspace) -> None:
    """A text below is edited, an item is renamed, one is ticked: nothing is taken, the new name is a new task."""
    repo.write("TODO.md", "- [ ] One\n  - [ ] part\n- [ ] Two\n- [ ] Three\n")
    repo.rooda("tasks", "add", "--from", "TODO.md")
    repo.write("TODO.md", "- [ ] One\n  - [x] part\n  - [ ] more\n- [ ] Two, renamed\n- [x] Three\n")
    done = repo.rooda("tasks", "add", "--from", "TODO.md")
    assert done.out.splitlines() == [
        "Added task 4: Two, renamed",
        "Task 1 was edited in TODO.md, but not here. Edit it here: rooda tasks edit 1",
        "Task 3 is done in TODO.md: Three. Cancel it: rooda tasks cancel 3",
        "Task 2 is no longer in TODO.md: Two. Cancel it: rooda tasks cancel 2",
    ]
    repo.write("TODO.md", "- [x] One\n  - [x] part\n- [ ] Two, renamed\n")
    assert "Task 1 is done in TODO.md" in repo.rooda("tasks", "add", "--from", "TODO.md").out


@pytest.mark.parametrize(("name", "text"), [("notes.md", "Prose.\n"), ("a.yaml", "tasks:\n"), ("prd.json", "{}")])
def test_T_02_an_unknown_form_is_named(repo: Workspace, name: str, text: str) -> None:
    repo.write(name, text)
    done = repo.rooda("tasks", "add", "--from", name)
    assert done.code == 2 and done.err.startswith(f"Error: {name}: it ") and "spec-kit" in done.err
    assert "can't be read" in repo.rooda("tasks", "add", "--from", "missing.md").err


def test_T_02_a_command_becomes_a_gate_only_after_a_yes(repo: Workspace) -> None:
    """Without a terminal they are listed, and are no gates; at one the user is asked; --yes says it beforehand."""
    repo.write("TODO.md", "- [ ] One: `make check`\n")
    done = repo.rooda("tasks", "add", "--from", "TODO.md")
    assert "  One: make check" in done.out and "They don't become gates without your consent." in done.out
    asked = repo.write("ASKED.md", "- [ ] Two: `make check`\n")
    terminal = repo.terminal("tasks", "add", "--from", asked)
    until(lambda: "[y/N]" in terminal.out, what="the question")
    terminal.type("y\r")
    assert terminal.finish(30) == 0
    repo.write("YES.md", "- [ ] Three: `make check`\n")
    repo.rooda("tasks", "add", "--from", "YES.md", "--yes", "--gate", "true")
    assert [task["details"]["gates"] for task in listed(repo)] == [[], ["make check"], ["true", "make check"]]


def test_T_02_tasks_of_a_list_that_wait_for_each_other_are_refused(repo: Workspace) -> None:
    repo.write("PLAN.md", "### Task 1: a\nDepends on: Task 2\n### Task 2: b\nDepends on: Task 1\n")
    done = repo.rooda("tasks", "add", "--from", "PLAN.md")
    assert done.code == 2 and "these tasks wait for each other: Task 1 after Task 2 after Task 1." in done.err
    assert listed(repo) == []


def forge(repo: Workspace, name: str, issues: list[dict[str, Any]], *words: str) -> Ran:
    """Run `tasks add --from NAME` with a scripted forge on PATH."""
    program = Path(repo.root, "bin", name)
    program.parent.mkdir(exist_ok=True)
    program.write_text(FORGE)
    program.chmod(0o755)
    Path(repo.fake, "issues").write_text(json.dumps(issues))
    return repo.rooda("tasks", "add", "--from", name, *words, env={"PATH": f"{program.parent}:{repo.env['PATH']}"})


def hub(number: int, title: str, author: str) -> dict[str, Any]:
    url = f"https://github.com/o/r/issues/{number}"
    return {"number": number, "title": title, "body": "Words.", "url": url, "author": {"login": author}}


def lab(number: int, title: str, author: int) -> dict[str, Any]:
    url = f"https://gitlab.com/o/r/-/issues/{number}"
    return {"iid": number, "title": title, "description": "Words.", "web_url": url, "author": {"id": author}}


@pytest.mark.parametrize(
    ("name", "issues", "asked"),
    [
        ("gh", [hub(4, "Mine", "ann"), hub(5, "Theirs", "eve")], "repos/{owner}/{repo}/collaborators/eve/permission"),
        ("glab", [lab(4, "Mine", 7), lab(5, "Theirs", 8)], "projects/:fullpath/members/all/8"),
    ],
)
def test_T_02_issues_of_a_forge(repo: Workspace, name: str, issues: list[dict[str, Any]], asked: str) -> None:
    """By label; texts of authors who can't write are listed and taken only if allowed; a closed one is said."""
    done = forge(repo, name, issues, "--label", "ready")
    assert done.code == 0 and titles(repo) == ["Mine"], done.both
    assert f"Not taken: {issues[1].get('url') or issues[1].get('web_url')} Theirs" in done.out
    said = Path(repo.fake, "asked").read_text()
    assert "--label ready" in said.splitlines()[0] and f"{name} api {asked}" in said
    (task,) = listed(repo)
    assert "Words.\n\nThis is issue #4: https://" in task["details"]["text"]
    assert task["details"]["source"].endswith("/issues/4")
    forge(repo, name, issues, "--label", "ready", "--allow-outside")
    assert titles(repo) == ["Mine", "Theirs"]
    done = forge(repo, name, issues[1:], "--label", "ready")
    assert "Task 1 is no longer among the open issues with these labels: Mine." in done.out
    assert titles(repo) == ["Mine", "Theirs"]


def test_T_02_a_forge_that_fails_is_named(repo: Workspace) -> None:
    done = repo.rooda("tasks", "add", "--from", "glab", env={"PATH": os.path.dirname(repo.env["PATH"].split(":")[0])})
    assert done.code == 2
    assert repo.rooda("tasks", "add", "text", "--label", "x").code == 2
    assert repo.rooda("tasks", "add", "text", "--from", "gh").code == 2


@pytest.mark.parametrize("name", LISTS)
def test_T_02_an_item_is_ticked_alone(name: str) -> None:
    """The item is done when the file is read again, all others are as before."""
    text = LISTS[name]
    drafts = sources.of_list(task_lists.read(text, name), name)
    for draft in drafts:
        after = sources.ticked(text, sources.source_of(draft, sources.FILE, True))
        now = sources.of_list(task_lists.read(after, name), name)
        wanted = {each.key: each.done or each.key == draft.key for each in drafts}
        assert [each.done for each in now] == [*wanted.values()], after
        assert draft.done == (after == text)
        if name != "prd.json":
            changed = [pair for pair in zip(text.split("\n"), after.split("\n"), strict=True) if pair[0] != pair[1]]
            assert len(changed) <= 2


def test_T_02_what_has_landed_is_carried_back(repo: Workspace) -> None:
    """A tracked file's box is ticked by the commit that lands, an untracked one in place, an issue is closed once."""
    repo.write("TODO.md", "- [ ] One\n- [ ] Two\n")
    repo.git("add", "-A")
    repo.git("commit", "-qm", "list")
    repo.write("NOTES.md", "- [ ] Three\n")
    repo.write(".git/info/exclude", "NOTES.md\n")
    for name in ("TODO.md", "NOTES.md"):
        repo.rooda("tasks", "add", "--from", name, "--sync", "-n", "1", "--gate", "true")
    forge(repo, "gh", [hub(4, "Mine", "ann")], "--sync", "-n", "1", "--gate", "true")
    for call in (1, 2, 3, 4):
        repo.side(call, f"echo x > made-{call}; git add -A; git commit -qm 'work {call}'")
    assert repo.rooda("tasks", "run", "-j", "1", timeout=60).code == 0
    env = {"PATH": f"{repo.root}/bin:{repo.env['PATH']}"}
    done = repo.rooda("tasks", "land", timeout=60, env=env)
    assert done.code == 0 and [task["state"] for task in listed(repo)] == ["landed"] * 4, done.both
    assert repo.read("TODO.md") == "- [x] One\n- [x] Two\n" and repo.git("status", "--porcelain") == ""
    assert repo.git("log", "--format=%s", "main").splitlines()[:4] == ["work 4", "work 3", "work 2", "work 1"]
    assert repo.git("show", "--format=", "--name-only", "main~3").split() == ["TODO.md", "made-1"]
    assert repo.read("NOTES.md") == "- [x] Three\n"
    repo.rooda("tasks", "land", timeout=60, env=env)
    closed = [line for line in Path(repo.fake, "asked").read_text().splitlines() if "issue close" in line]
    assert closed == ["gh issue close https://github.com/o/r/issues/4 --comment Landed on main."]


def test_T_02_what_no_program_takes_is_left_out(repo: Workspace) -> None:
    """A NUL in a text would end the start of its agent; an item without a number is no issue."""
    assert repo.rooda("tasks", "add", "-", stdin=b"One\0two\n").code == 0
    repo.write("TODO.md", b"- [ ] Three\0four\n")
    assert repo.rooda("tasks", "add", "--from", "TODO.md").code == 0
    repo.write("prd.json", r'{"userStories": [{"id": "\u0000", "title": "Five\u0000six"}, {"title": "Seven\ud800"}]}')
    assert repo.rooda("tasks", "add", "--from", "prd.json").code == 0
    assert titles(repo) == ["Onetwo", "Threefour", "Fivesix", "Seven"]
    assert not sources.of_github([{"number": None, "title": "No number"}, 7, {"title": "None"}])


def test_T_02_a_list_that_is_not_utf_8_is_imported(repo: Workspace) -> None:
    """The bytes stay as they are, and a second import knows the task."""
    repo.write("TODO.md", b"- [ ] Open the caf\xe9\n")
    assert repo.rooda("tasks", "add", "--from", "TODO.md", "-n", "1").code == 0
    assert repo.rooda("tasks", "add", "--from", "TODO.md").out == "No new tasks were found.\n"
    assert repo.rooda("tasks", "run", timeout=60).code == 0
    assert b"Open the caf\xe9" in repo.calls[0].prompt
