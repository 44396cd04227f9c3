"""Landing: T-20 and following of the page on tasks."""

import json

import pytest

from tests.kit.workspace import Workspace


def works(repo: Workspace, *texts: str, gates: tuple[str, ...] = ()) -> None:
    """Add and run tasks; call N runs the shell text N in its clone, and commits."""
    for number, text in enumerate(texts, 1):
        repo.side(number, f"{text}\ngit add -A; git commit -qm 'work {number}'")
        repo.rooda("tasks", "add", f"Task {number}", "-n", "1", *(word for gate in gates for word in ("--gate", gate)))
    done = repo.rooda("tasks", "run", "-j", "1", timeout=60)
    assert done.code == 0, done.text


def states(repo: Workspace) -> list[str]:
    return [task["state"] for task in json.loads(repo.rooda("tasks", "--json").out)]


def test_T_20_completed_tasks_land_one_after_the_other(repo: Workspace) -> None:
    """Each is rebased onto the target's tip and checked; the checkout follows, since it is clean."""
    works(repo, "echo b > b.txt", "echo c > c.txt", gates=("test -f a.txt",))
    done = repo.rooda("tasks", "land", timeout=60)
    assert done.code == 0, done.text
    assert states(repo) == ["landed", "landed"]
    assert repo.git("log", "--format=%s", "main") == "work 2\nwork 1\nfirst\n"
    assert repo.read("b.txt") == "b\n" and repo.read("c.txt") == "c\n" and repo.git("status", "--porcelain") == ""


def test_T_21_a_conflict_goes_back_to_its_agent(repo: Workspace) -> None:
    """The owning task reopens with the conflict in its prompt, resolves it, and lands."""
    works(repo, "echo left > a.txt", "echo right > a.txt", gates=("true",))
    done = repo.rooda("tasks", "land", timeout=60)
    assert done.code == 4 and states(repo) == ["landed", "waiting"], done.text
    resolve = "git merge -q rooda/target; echo both > a.txt; git add -A; git commit -qm resolved"
    repo.side(3, resolve)
    assert repo.rooda("tasks", "run", timeout=60).code == 0
    assert "conflicts with what has landed on main" in repo.calls[2].text and "right" in repo.calls[2].text
    assert repo.rooda("tasks", "land", timeout=60).code == 0 and states(repo) == ["landed", "landed"]
    assert repo.read("a.txt") == "both\n"
    parents = repo.git("log", "-1", "--format=%P", "main").split()
    assert len(parents) == 2 and repo.git("log", "-1", "--format=%s", parents[0]) == "work 1\n"


def test_T_21_a_gate_that_is_red_on_the_target_goes_back(repo: Workspace) -> None:
    works(repo, "echo b > b.txt", "echo c > c.txt", gates=("test ! -f b.txt -o ! -f c.txt",))
    assert repo.rooda("tasks", "land", timeout=60).code == 4
    assert states(repo) == ["landed", "waiting"] and not repo.exists("c.txt")
    for _ in range(2):  # it is attempted twice more, then a person decides
        repo.rooda("tasks", "run", timeout=60)
        repo.rooda("tasks", "land", timeout=60)
    assert states(repo) == ["landed", "parked"]


@pytest.mark.parametrize("dirt", ["echo mine >> a.txt", "echo mine > b.txt"])
def test_T_20_nothing_of_the_user_is_touched(repo: Workspace, dirt: str) -> None:
    """With changes or an untracked file in the way the result waits on rooda/next; the next `land` finishes it."""
    import subprocess

    works(repo, "echo b > b.txt", "echo c > c.txt", gates=("true",))
    subprocess.run(dirt, shell=True, cwd=repo.path, check=True)
    before = repo.git("rev-parse", "main")
    done = repo.rooda("tasks", "land", timeout=60)
    assert done.code == 4 and states(repo) == ["completed", "completed"], done.text
    assert repo.git("rev-parse", "main") == before
    assert done.lines[-1] == f"git -C {repo.path} merge --ff-only rooda/next"
    assert repo.git("log", "--format=%s", "rooda/next") == "work 2\nwork 1\nfirst\n"
    repo.git("stash", "-u", "-q")
    done = repo.rooda("tasks", "land", timeout=60)
    assert done.code == 0 and states(repo) == ["landed", "landed"] and repo.read("b.txt") == "b\n", done.text
    assert "rooda/next" not in repo.git("branch", "-a")


def test_T_20_a_branch_that_changes_gates_is_shown_and_asked_for(repo: Workspace) -> None:
    works(repo, "printf '## Quality Gates\\n\\n- tests: `true`\\n' > AGENTS.md", gates=("true",))
    done = repo.rooda("tasks", "land", timeout=60)
    assert done.code == 3 and "AGENTS.md" in done.out and states(repo) == ["completed"]
    assert repo.rooda("tasks", "land", "--yes", timeout=60).code == 0 and states(repo) == ["landed"]


def test_T_20_without_gates_nothing_lands_unless_told(repo: Workspace) -> None:
    works(repo, "echo b > b.txt")
    assert repo.rooda("tasks", "land", timeout=60).code == 3 and states(repo) == ["completed"]
    assert repo.rooda("tasks", "land", "--no-gates", timeout=60).code == 0 and states(repo) == ["landed"]
