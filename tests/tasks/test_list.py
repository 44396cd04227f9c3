"""The list of tasks: T-01 and T-03 of the page on tasks."""

import json
import os
from pathlib import Path

import pytest

from rooda.base.text import width
from rooda.tasks.model import PARKED, Task
from rooda.tasks.view import board
from tests.kit.workspace import Workspace, until


def test_T_01_a_task_is_added_with_its_options(repo: Workspace) -> None:
    """`add` stores text, gates, limits and order; the target is the branch checked out; ids count from 1."""
    repo.rooda("tasks", "add", "First\nthing", "--gate", "true", "--gate", "test -f a.txt", "-n", "3")
    done = repo.rooda("tasks", "add", "--after", "1", "--priority", "high", "--max-cost", "2.5", stdin=b"From a pipe\n")
    assert (done.code, done.out) == (0, "Added task 2: From a pipe\n")
    first, second = json.loads(repo.rooda("tasks", "--json").out)
    assert (first["name"], first["state"], first["max_iterations"]) == ("1", "waiting", 3)
    assert first["details"]["gates"] == ["true", "test -f a.txt"] and first["details"]["target"] == "main"
    assert second["details"]["after"] == [1] and second["details"]["priority"] == "high"
    assert (second["waits_for"], second["next"]) == ("task 1 to land", "rooda tasks run")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["x", "--after", "7"], "There is no task 7 here."),
        (["x", "--kind", "procedure", "nonsense"], "there is no such kind or procedure"),
        (["x", "--agent", "nobody"], "There is no agent 'nobody'."),
        (["  \n"], "The task's text is empty."),
        (["x", "--priority", "urgent"], "'urgent' is not one of"),
    ],
)
def test_T_01_bad_options_add_nothing(repo: Workspace, words: list[str], said: str) -> None:
    done = repo.rooda("tasks", "add", *words)
    assert done.code == 2 and said in done.err
    assert repo.rooda("tasks", "--json").out == "[]\n"


def test_T_01_the_list_survives_a_clean_and_is_shared_by_worktrees(repo: Workspace) -> None:
    repo.rooda("tasks", "add", "Stay")
    repo.git("clean", "-fdxq")
    repo.git("worktree", "add", "-q", "../other")
    assert "Stay" in repo.rooda("tasks", cwd=f"{repo.root}/other").out


def test_T_01_tasks_cannot_wait_for_each_other(repo: Workspace) -> None:
    """A circle is refused by name; a task that does not exist, too."""
    for _ in range(3):
        repo.rooda("tasks", "add", "x")
    repo.rooda("tasks", "edit", "2", "--after", "1")
    repo.rooda("tasks", "edit", "3", "--after", "2")
    done = repo.rooda("tasks", "edit", "1", "--after", "3")
    assert done.code == 2 and "Tasks would wait for each other: 1 after 3 after 2 after 1." in done.err
    assert repo.rooda("tasks", "edit", "1", "--after", "1").code == 2
    assert repo.rooda("tasks", "edit", "1", "--after", "9").code == 2
    assert [task["details"]["after"] for task in json.loads(repo.rooda("tasks", "--json").out)] == [[], [1], [2]]


def test_T_01_the_target_is_the_branch_checked_out(repo: Workspace) -> None:
    """Also one without a commit; a detached HEAD has none, so `add` asks for --target; the settings come before."""
    repo.git("checkout", "-q", "--orphan", "fresh")
    repo.rooda("tasks", "add", "On a branch without a commit")
    repo.git("checkout", "-qf", "main")
    repo.git("checkout", "-q", "--detach")
    done = repo.rooda("tasks", "add", "x")
    assert done.code == 2 and "No branch is checked out" in done.err and "--target main" in done.err
    repo.rooda("tasks", "add", "x", "--target", "main")
    repo.sections["tasks"] = '[tasks]\ntarget = "develop"\n'
    repo.procedure()
    repo.rooda("tasks", "add", "x")
    targets = [task["details"]["target"] for task in json.loads(repo.rooda("tasks", "--json").out)]
    assert targets == ["fresh", "main", "develop"]


def test_T_01_several_processes_add_at_once(repo: Workspace) -> None:
    """No task is lost, and no id is given twice."""
    running = [repo.start("tasks", "add", f"Task {number}") for number in range(6)]
    assert [each.finish(60) for each in running] == [0] * 6
    found = json.loads(repo.rooda("tasks", "--json").out)
    assert [task["name"] for task in found] == [*"123456"] and len({task["details"]["title"] for task in found}) == 6


def test_T_03_the_objects_have_the_shape_of_status(repo: Workspace) -> None:
    """The same keys of the same types, in the same order; null where nothing is known."""
    repo.rooda("tasks", "add", "One", "-n", "1")
    repo.rooda("build", "-n", "9", "--ai-cmd", "false")
    (status,) = json.loads(repo.rooda("status", "--json").out)
    (task,) = json.loads(repo.rooda("tasks", "--json").out)
    assert [*task] == [*status] and task["v"] == 2 and task["loop"] == "task"
    assert (task["state"], task["next"], task["cost"], task["started_at"]) == ("waiting", "rooda tasks run", None, None)
    repo.rooda("tasks", "run", timeout=60)
    (done,) = json.loads(repo.rooda("tasks", "--json").out)
    assert done == json.loads(repo.rooda("tasks", "show", "1", "--json").out)
    assert (done["state"], done["iteration"], done["calls"], done["next"]) == ("completed", 1, 1, "rooda tasks land")
    wanted = {"id", "title", "branch", "after", "until", "question", "conflicts"}
    assert wanted <= {*done["details"]} and done["details"]["branch"] == "rooda/1-one"


def test_T_03_the_board_fits_80_columns(repo: Workspace) -> None:
    """Also with long titles and one that waits for many; a terminal's width is used."""
    repo.rooda("tasks", "add", "Wide 漢字 and long " * 6, "--priority", "low")
    repo.rooda("tasks", "add", "Second", "--after", "1")
    out = repo.rooda("tasks").out
    assert all(width(line) <= 80 for line in out.splitlines()), out
    assert out.splitlines()[0].split() == ["ID", "STATE", "ITER", "ELAPSED", "COST", "TASK", "WAITS", "FOR"]
    assert "task 1 to land" in out
    parked = Task(1, "t", "t", "main", PARKED, branch=f"rooda/1-{'long-' * 8}", reason="conflicts with master")
    rows = board([parked], {1: parked}, 80)
    assert rows[1].endswith("you: conflicts with master") and "rooda/1-long" in rows[1]


def test_T_03_a_damaged_task_does_not_hide_the_others(repo: Workspace) -> None:
    """It is on the board with its path and what is wrong; the others are shown and can be worked on."""
    for text in ("One", "Two"):
        repo.rooda("tasks", "add", text, "-n", "1")
    repo.write(".git/rooda/tasks/1.json", '{"v": 1, "id"')
    done = repo.rooda("tasks")
    assert done.code == 0 and "damaged" in done.out.splitlines()[1] and "Two" in done.out
    first, second = json.loads(repo.rooda("tasks", "--json").out)
    assert first["state"] == "damaged" and "1.json: not JSON" in first["reason"] and second["state"] == "waiting"
    assert repo.rooda("tasks", "show", "1").code == 2
    assert repo.rooda("tasks", "run", timeout=60).code == 0


def test_T_03_edit_changes_a_task(repo: Workspace) -> None:
    """With options, or in $EDITOR; what can't be read changes nothing."""
    repo.rooda("tasks", "add", "Old", "--gate", "false", "-n", "1")
    repo.rooda("tasks", "edit", "1", "--gate", "true", "--gate", "test -f a.txt", "--priority", "high", "-n", "4")
    editor = repo.write(
        "editor", "#!/bin/sh\nsed -i 's/^Old$/New text/; s/^after:.*/after: /; /^gate: true/d' \"$1\"\n", 0o755
    )
    done = repo.rooda("tasks", "edit", "1", env={"EDITOR": editor})
    assert (done.code, done.out) == (0, "Changed task 1: New text\n")
    (task,) = json.loads(repo.rooda("tasks", "--json").out)
    assert task["details"]["gates"] == ["test -f a.txt"] and task["details"]["text"] == "New text"
    assert task["details"]["priority"] == "high" and task["max_iterations"] == 4
    broken = repo.write("editor", '#!/bin/sh\necho nonsense > "$1"\n', 0o755)
    assert repo.rooda("tasks", "edit", "1", env={"EDITOR": broken}).code == 2
    assert repo.rooda("tasks", "edit", "1").code == 2
    assert json.loads(repo.rooda("tasks", "--json").out) == [task]


def test_T_03_a_running_task_gets_the_change_in_its_next_iteration(repo: Workspace) -> None:
    """Its text as a note, its limits as the loop's own; the live board shows the iteration."""
    repo.rooda("tasks", "add", "Old", "-n", "2")
    repo.side(1, "touch $FAKE/waiting; until [ -e $FAKE/go ]; do sleep 0.05; done")
    running = repo.start("tasks", "run")
    until(lambda: os.path.exists(f"{repo.fake}/waiting"), what="the first iteration")
    watched = repo.start("tasks", "--watch", "--json")
    until(lambda: watched.out.count("\n") > 1, what="two refreshes")
    (seen,) = json.loads(watched.out.splitlines()[-1])
    assert (seen["state"], seen["running"], seen["phase"], seen["display"]) == ("running", True, "agent", 1)
    watched.stop()
    done = repo.rooda("tasks", "edit", "1", "--text", "New words", "--gate", "test -f a.txt", "-n", "3")
    assert done.code == 0 and "the change takes effect in its next iteration" in done.out
    Path(repo.fake, "go").touch()
    assert running.finish(60) == 0 and len(repo.calls) == 3
    assert "New words" in repo.calls[1].text and "test -f a.txt" in repo.calls[1].text


def test_T_03_TAB_completes_ids(repo: Workspace) -> None:
    """Of tasks that are not over."""
    for text in ("One", "Two"):
        repo.rooda("tasks", "add", text)
    repo.rooda("tasks", "cancel", "1")
    for word in ("show", "edit", "stop"):
        asked = {"_ROODA_COMPLETE": "bash_complete", "COMP_WORDS": f"rooda tasks {word} ", "COMP_CWORD": "3"}
        assert repo.rooda(env=asked).out == "plain,2\n"


def test_T_03_the_board_is_aligned_with_escaped_and_wide_characters(repo: Workspace) -> None:
    """What the terminal shows is measured, not what the title has."""
    for title in ("a\x1b[31mred", "\u202eevil", "plain"):
        repo.rooda("tasks", "add", title)
    rows = repo.rooda("tasks").lines
    assert len({len(row) for row in rows[1:]}) == 1 and rows[1].startswith(" 1  waiting"), rows
