"""Running and landing at once, and conflicts that are foreseen: T-20, T-21 and T-24 of the page on tasks."""

import json
import re
from pathlib import Path

from rooda.tasks.model import LANDED, PARKED, Task
from rooda.tasks.run_summary import summary
from rooda.views.summary import WIDTH
from tests.kit.completed import commit_of, complete
from tests.kit.workspace import Workspace, until, waiting


def states(repo: Workspace) -> list[str]:
    return [task["state"] for task in json.loads(repo.rooda("tasks", "--json").out)]


def test_T_20_run_lands_what_is_completed_and_starts_what_waits_for_it(repo: Workspace) -> None:
    """Task 3 starts from the landed work of task 1; task 2 conflicts, resolves it, and lands; exit 0."""
    repo.rooda("tasks", "add", "One", "-n", "1", "--gate", "true")
    repo.rooda("tasks", "add", "Two", "-n", "1", "--gate", "true")
    repo.rooda("tasks", "add", "Three", "-n", "1", "--gate", "true", "--after", "1")
    commit, landed = "git add -A; git commit -qm", f"git -C {repo.path} cat-file -e main:one"
    script = f"""case "$(basename $PWD)" in
        1) {waiting(f"{repo.fake}/two")} touch one; echo 1 > a.txt; {commit} one;;
        2) if [ -e "$FAKE/two" ]; then git merge -q rooda/target; echo both > a.txt
           else touch "$FAKE/two"; until {landed} 2> /dev/null; do sleep 0.05; done; echo two > a.txt; fi
           {commit} two;;
        3) cp one three; {commit} three;;
        esac"""
    for call in range(1, 5):
        repo.side(call, script)
    done = repo.rooda("tasks", "run", "-j", "2", "--land", timeout=90)
    assert done.code == 0, done
    assert states(repo) == ["landed"] * 3
    assert repo.read("a.txt") == "both\n" and repo.exists("three") and len(repo.calls) == 4
    assert done.err.startswith("tasks: 3 landed (1 after it was sent back), 0 sent back, 0 open in "), done.err
    assert "Task 1 landed on main: One" in done.out and repo.git("status", "--porcelain") == ""


def test_T_21_the_run_ends_with_what_landed_and_what_did_not(repo: Workspace) -> None:
    """Task 1 landed, 2 was sent back twice, changed nothing and was parked, 3 failed; and what to type next."""
    for text in ("left\n", "right\n"):
        complete(repo, {"a.txt": text})
    repo.rooda("tasks", "add", "Three", "-n", "1", "--gate", "false")
    done = repo.rooda("tasks", "run", "-j", "1", "--retries", "0", "--land", timeout=90)
    head, *rows = done.err.splitlines()
    assert done.code == 1 and re.fullmatch(r"tasks: 1 landed, 1 sent back, 1 open in \d+s", head), done
    assert rows == [
        "  landed      1",
        "  sent back   2 (parked: conflicts with main in a.txt)",
        "  open        3 (failed: max-iterations)",
        "  next        rooda tasks retry 2",
    ]
    calls = len(repo.calls)
    assert done.out.count("Task 2 goes on") == 2
    again = repo.rooda("tasks", "run", "--land", timeout=90)
    assert again.err.startswith("tasks: 0 landed, 0 sent back, 2 open in ") and "  landed" not in again.err
    assert len(repo.calls) == calls


def test_the_summary_is_short() -> None:
    """Many tasks fit into the rows of a summary: the states without their reasons, and cut at its width."""
    every = {n: Task(n, "t", "t", "main", PARKED, reason="it waits for you", cost=0.5) for n in range(1, 40)}
    every[40] = Task(40, "t", "t", "main", LANDED)
    lines = summary({}, every, 90.0)
    assert max(map(len, lines)) <= WIDTH and lines[0] == "tasks: 1 landed, 0 sent back, 39 open in 1m30s"
    assert lines[1:] == [
        "  landed      40",
        "  open        1 (parked), 2 (parked), 3 (parked), 4 (parked), 5 (pa…",
        "  cost        $19.50",
        "  next        rooda tasks retry 1",
    ]


def test_T_24_conflicts_are_foreseen_on_the_board(repo: Workspace) -> None:
    """Two of three completed tasks change the same line; the comparison is remembered."""
    for files in ({"a.txt": "left\n"}, {"a.txt": "right\n"}, {"b.txt": "b\n"}):
        complete(repo, files)
    found = [task["details"]["conflicts"] for task in json.loads(repo.rooda("tasks", "--json").out)]
    assert found == [[2], [1], []]
    assert "conflicts with task 2" in repo.rooda("tasks").out
    assert repo.exists(".git/rooda/tasks/conflicts.json")


def test_T_24_what_conflicts_with_a_running_task_starts_last(repo: Workspace) -> None:
    """Task 2 was begun before and conflicts with task 1, which runs: task 3 of equal priority is first."""
    from rooda.tasks.store import Store, place_of

    for title in ("One", "Two", "Three"):
        repo.rooda("tasks", "add", title, "-n", "1")
    for number, text in ((1, "left\n"), (2, "right\n")):
        head = commit_of(repo, {"a.txt": text}, "main")
        Store(place_of(repo.path)).change(number, lambda task, head=head: task._replace(head=head), "begun")  # type: ignore[misc]
    repo.rooda("tasks", "edit", "1", "--priority", "high")
    for call in (1, 2, 3):
        repo.side(call, waiting(f"{repo.fake}/go") if call < 3 else "")
    running = repo.start("tasks", "run", "-j", "2")
    until(lambda: "Task 3 started" in running.out, what="the third task")
    assert "Task 2" not in running.out
    repo.write("../fake/go", "")
    assert running.finish(60) == 0


def test_the_list_of_this_machine_beside_a_fleet(repo: Workspace) -> None:
    """With `default = true` in [fleet], --local means this machine's list, also for what `tasks run` itself starts."""
    settings = Path(repo.home, ".config", "rooda", "rooda.toml")
    settings.parent.mkdir(parents=True)
    settings.write_text('[fleet]\naddress = "temporal://127.0.0.1:1/default"\ndefault = true\n')
    repo.side(1, "echo b > b.txt; git add -A; git commit -qm work")
    assert repo.rooda("tasks", "--local", "add", "Task 1", "-n", "1", "--gate", "true").code == 0
    done = repo.rooda("tasks", "run", "--local", "--land", "-j", "1", timeout=60)
    assert done.code == 0, done
    assert "landed" in repo.rooda("tasks", "--local").out
    assert repo.read("b.txt") == "b\n"
    assert repo.rooda("tasks", "add", "--", "--local").code != 0  # a text, and the fleet does not answer
