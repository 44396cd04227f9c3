"""The list of tasks: T-01 and T-03 of the page on tasks."""

import json

import pytest

from tests.kit.workspace import Workspace


def test_T_01_a_task_is_added_with_its_options(repo: Workspace) -> None:
    """`add` stores text, gates, limits and order; the target is the branch checked out; ids count from 1."""
    repo.rooda("tasks", "add", "First\nthing", "--gate", "true", "--gate", "test -f a.txt", "-n", "3")
    done = repo.rooda("tasks", "add", "--after", "1", "--priority", "high", "--max-cost", "2.5", stdin=b"From a pipe\n")
    assert (done.code, done.out) == (0, "Added task 2: From a pipe\n")
    first, second = json.loads(repo.rooda("tasks", "--json").out)
    assert (first["name"], first["state"], first["max_iterations"]) == ("1", "waiting", 3)
    assert first["details"]["gates"] == ["true", "test -f a.txt"] and first["details"]["target"] == "main"
    assert second["details"]["after"] == [1] and second["details"]["priority"] == "high"
    assert second["next"] == "task 1 to land"


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
