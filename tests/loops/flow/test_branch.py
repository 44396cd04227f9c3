"""Rows F-030 to F-045: the run's branch, its id, its folder and its state file."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from rooda.loops.flow.model import next_run_id, numbered, slug
from tests.kit.flow import Flow

Ran = Callable[[str], Any]


def test_F_030_F_034_the_branch_at_the_start_is_the_base(flow: Flow) -> None:
    """A run started on `dev` records it as the base branch, and names its own branch."""
    flow.scenario("S1")
    flow.ws.git("checkout", "-qb", "dev")
    assert flow.run("Fix It").code == 0
    assert (flow.state["base-branch"], flow.state["branch"]) == ("dev", "ai-loop/fix-it")


TASKS = {
    "Fix the login bug!": "fix-the-login-bug",
    "Über die Brücke": "uber-die-brucke",
    "   --a--b--  ": "a-b",
    "日本語": "task",
    "a" * 80: "a" * 50,
    "word " * 40: "word-word-word-word-word-word-word-word-word-word",
    "x\ny": "x-y",
}


@pytest.mark.parametrize("task", TASKS)
def test_F_031_the_slug_of_a_task(task: str) -> None:
    """A slug has lower-case letters, digits and single hyphens, at most 50 characters, and is never empty."""
    assert slug(task) == TASKS[task]
    assert len(slug(task)) <= 50
    for number in (1, 2, 10, 999):
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", numbered(slug(task), number))
        assert len(numbered(slug(task), number)) <= 50


def test_F_031_F_032_a_taken_name_gets_a_number(flow: Flow) -> None:
    """The branch starts at the commit that was checked out; if the name is taken, it ends in -2 or -3."""
    flow.scenario("S1")
    for name in ("ai-loop/" + slug("long " * 60), "ai-loop/other"):
        flow.ws.git("branch", name)
    before = flow.ws.git("rev-parse", "HEAD")
    assert flow.run("long " * 60).code == 0
    branch = flow.ws.git("rev-parse", "--abbrev-ref", "HEAD").strip()
    assert branch == flow.state["branch"]
    assert branch.endswith("-2") and len(branch) <= len("ai-loop/") + 50
    assert flow.ws.git("merge-base", "main", "HEAD") == before


def test_F_032_the_branch_is_checked_out_during_the_run(flow: Flow) -> None:
    """An agent finds the run's branch checked out."""
    flow.scenario("S1")
    shell = f"git rev-parse --abbrev-ref HEAD > {flow.ws.fake}/branch"
    flow.say("sensor-unit", f"!sh {shell}\n---\nsensor: unit\nstatus: pass\n---\n")
    assert flow.run().code == 0
    with open(f"{flow.ws.fake}/branch") as file:
        assert file.read().strip() == "ai-loop/do-it"


@pytest.mark.parametrize("name", ["S2", "S5"])
def test_F_033_all_commits_are_on_one_linear_branch(ran: Ran, name: str) -> None:
    """The branch has no merges, and the base branch does not move."""
    flow, _ = ran(name)
    assert flow.ws.git("rev-list", "--merges", "main..HEAD") == ""
    assert len(flow.ws.git("rev-list", "main").split()) <= 2
    assert flow.state["branch"] == flow.ws.git("rev-parse", "--abbrev-ref", "HEAD").strip()


def test_F_040_F_041_the_next_number_of_the_day(flow: Flow) -> None:
    """The first id ends in 001, the next one is the highest plus one, and the run's folder exists."""
    import time

    flow.scenario("S1")
    today = time.strftime("%Y%m%d")
    assert flow.run().code == 0
    assert flow.run_id == f"run_{today}_001"
    flow.ws.write(f".ai-loop/runs/run_{today}_007/note.txt", "x")
    flow.ws.write(".ai-loop/runs/run_19990101_500/note.txt", "x")
    flow.commit("folders")
    assert flow.run("again").code == 0
    assert flow.ws.exists(f".ai-loop/runs/run_{today}_008/run-state.md")


def test_F_040_runs_of_other_branches_count(flow: Flow) -> None:
    """The number of a run that exists only on its own branch is not used again."""
    flow.scenario("S1")
    assert flow.run().code == 0
    flow.ws.git("checkout", "-q", "main")
    assert not flow.ws.exists(".ai-loop/runs/run_*")
    assert flow.run("again").code == 0
    assert flow.run_id.endswith("_002")


def test_F_040_more_than_999() -> None:
    """After 999 the number has four digits; runs of other days do not count."""
    assert next_run_id("20260225", ["run_20260225_999", "run_20260224_1200"]) == "run_20260225_1000"
    assert next_run_id("20260225", ["run_20260225_1000", "run_20260225_x", "notes"]) == "run_20260225_1001"
    assert next_run_id("20260225", []) == "run_20260225_001"


def test_F_042_F_044_the_state_at_the_first_call(ran: Ran) -> None:
    """At the root's first sensor call run-state.md has its keys, and each node has its folder."""
    flow, _ = ran("S5")
    first = flow.calls[0]
    text = first["texts"][flow.rd("run-state.md")]
    state = yaml.safe_load(text.split("---\n")[1])
    keys = ["run-id", "status", "active-node-path", "execution-stack", "branch", "base-branch", "task"]
    assert [key for key in state if key in keys] == keys
    assert (state["status"], state["active-node-path"], state["execution-stack"]) == ("running", "a", ["a"])
    assert 'task: "do it"\n' in text
    folders = [folder for folder in first["folders"] if "/nodes/" in folder]
    assert sorted(folders) == [flow.rd(f"nodes/{path}") for path in ("a", "a/b", "a/b/c")]


STRANGE = [
    'say "hi"',
    "a: b # c",
    "two\nlines\n\nand more",
    "---\nx: y\n---",
    "tab\tand \x07",
    "\u2028 \x85 \ufeff",
    "{a: [b",
    "'",
    "äöü 🙂 \\n",
    "- x",
    "!!x",
    "@",
    "null",
    "1",
]


@pytest.mark.parametrize("task", STRANGE, ids=ascii)
def test_F_043_any_task_stays_the_same_text(flow: Flow, task: str) -> None:
    """The task in run-state.md and in the setpoint equals the typed one."""
    flow.scenario("S1")
    flow.controller("main", True)
    assert flow.run("--", task).code == 0
    text = flow.ws.read(flow.rd("run-state.md"))
    assert yaml.safe_load(text.split("\n---\n")[0].removeprefix("---\n"))["task"] == task
    assert f"\n# Task (setpoint)\n\n{task}\n" in flow.ws.read(flow.ap("main", "orchestrator-output.md"))
    status = flow.ws.rooda("flow", "status", "--json")
    import json

    assert json.loads(status.out)[0]["details"]["task"] == task


def test_F_031_a_branch_below_the_name_takes_it(flow: Flow) -> None:
    """If `ai-loop/do-it/more` exists, the branch can't be `ai-loop/do-it`, and the next name is used."""
    flow.scenario("S1")
    flow.ws.git("branch", "ai-loop/do-it/more")
    assert flow.run().code == 0
    assert flow.state["branch"] == "ai-loop/do-it-2"


def test_F_030_another_runs_branch_as_the_base(flow: Flow) -> None:
    """A run started on the branch of an ended run has it as its base, with a warning."""
    flow.scenario("S1")
    assert flow.run().code == 0
    second = flow.run("more")
    assert second.code == 0 and "branch of another run" in second.err
    assert flow.state["base-branch"] == "ai-loop/do-it"
    assert "Commits: 2" in second.out or "Commits: 3" in second.out
