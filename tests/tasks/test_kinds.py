"""Tasks whose loop is a goal, a reflex loop or a flow: T-01, T-10 and T-15 of the page on tasks."""

import json
from pathlib import Path
from typing import Any

from tests.kit import kinds
from tests.kit.loops import CHECK, PAGE
from tests.kit.workspace import Workspace


def board(repo: Workspace) -> list[dict[str, Any]]:
    return [{**task, **task["details"]} for task in json.loads(repo.rooda("tasks", "--json").out)]


def small(repo: Workspace) -> None:
    """A goal of one step, and a reflex loop with one rule, both committed."""
    repo.write("plan.json", json.dumps(kinds.plan(1, 1)))
    repo.write("rules.json", kinds.rules())
    repo.git("add", "-A")
    repo.git("commit", "-qm", "plans")
    repo.out("plan", json.dumps(kinds.STEPS))
    repo.out("produce", PAGE)
    repo.out("prepare", json.dumps({"checks": [CHECK]}))
    repo.out("step", kinds.CLAIM)


def test_T_01_a_goal_and_a_reflex_loop_land_what_they_have_made(repo: Workspace) -> None:
    """Their options come with --with; nobody confirms; what their agents leave uncommitted is committed."""
    small(repo)
    repo.side("step-1", "touch made")
    gate = "test -e a.txt"
    repo.rooda("tasks", "add", kinds.SPEC, "--kind", "goal", "--gate", gate, "--with", "--plan plan.json")
    repo.rooda("tasks", "add", "A page", "--kind", "reflex", "--gate", gate)
    assert repo.rooda("tasks", "edit", "2", "--with", "--rules rules.json --alias page").code == 0
    done = repo.rooda("tasks", "run", timeout=90)
    assert done.code == 0, done
    assert repo.rooda("tasks", "land", timeout=60).code == 0
    assert repo.exists("made") and repo.read(".ai-factory/evolution/page/artifact.md") == PAGE
    assert not repo.exists(".loop/state.json") and repo.git("status", "--porcelain") == ""
    assert "Rooda-Task: 2" in repo.git("log", "-2", "--format=%b")


def test_T_15_the_agent_of_a_goal_asks(repo: Workspace) -> None:
    """The task is parked; after the answer, which the next prompt has, it goes on to its end."""
    small(repo)
    repo.out("step-1", "<question>Which?</question>\n" + kinds.CLAIM)
    repo.side("step-2", "touch made")
    words = ("--kind", "goal", "-n", "1", "--with", "--plan plan.json")
    repo.rooda("tasks", "add", kinds.SPEC, *words)
    assert repo.rooda("tasks", "run", timeout=60).code == 4
    task = board(repo)[0]
    assert (task["state"], task["question"], task["next"]) == ("parked", "Which?", 'rooda answer 1 "…"')
    assert repo.rooda("answer", "1", "This.").code == 0
    done = repo.rooda("tasks", "run", timeout=60)
    assert done.code == 0 and "The answer: This." in repo.calls[-1].text, done


def test_T_01_options_that_its_kind_does_not_know_are_refused(repo: Workspace) -> None:
    """Nothing is added; the message names the option and where to look."""
    for kind, words, said in (
        ("goal", "--tamplate docs", "No such option '--tamplate'"),
        ("reflex", "--worktree", "can't set --worktree"),
        ("procedure build", "--gate 'a", "No closing quotation"),
    ):
        done = repo.rooda("tasks", "add", "It", "--kind", kind, "--with", words)
        assert done.code == 2 and said in done.err and "--help" in done.err, done
    assert not list(Path(repo.path, ".git/rooda/tasks").glob("*.json"))


def test_T_13_a_parked_loop_that_the_user_has_completed_is_not_begun_again(repo: Workspace) -> None:
    """The goal waits for an observation; once the user has confirmed it in the clone, `retry` completes the task."""
    small(repo)
    plan = kinds.plan(1, 1)
    plan["criteria"].append({"name": "seen", "verification": "observation"})
    repo.write("plan.json", json.dumps(plan))
    repo.git("commit", "-qam", "to see")
    repo.side("step-1", "touch made")
    repo.rooda("tasks", "add", kinds.SPEC, "--kind", "goal", "--with", "--plan plan.json")
    assert repo.rooda("tasks", "run", timeout=60).code == 4
    clone = board(repo)[0]["clone"]
    assert repo.rooda("-C", clone, "goal", "verify", "seen", "--observed", "It is there.").code == 0
    done = repo.rooda("-C", clone, "goal", "continue", timeout=60)
    assert done.code == 0, done
    calls = len(repo.calls)
    assert repo.rooda("tasks", "retry", "1").out == "Task 1 is completed.\n"
    assert repo.git("ls-tree", "--name-only", "rooda/1-make-it", "made") == "made\n" and len(repo.calls) == calls
