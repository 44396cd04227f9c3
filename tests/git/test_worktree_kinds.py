"""`--worktree` for reflex loops, flows and goals."""

import os
import re

import pytest

from tests.kit.flow import Flow
from tests.kit.goal import Goals
from tests.kit.reflex import ALIAS, Kit
from tests.kit.workspace import FAKE_AI, Ran, Workspace


def near(ws: Workspace, model: str = "") -> tuple[str, str]:
    """Options for an agent whose path is relative to the workspace, and means nothing in a worktree."""
    ws.write("../agent", f'#!/bin/sh\nexec {FAKE_AI} "$@"\n', 0o755)
    return "--ai-cmd", f"../agent{model}"


def folder_of(ws: Workspace, ran: Ran, name: str) -> str:
    found = re.search(r"Worktree: (\S+) on the new branch (\S+)", ran.err)
    assert found, ran.both
    assert (found[1], found[2]) == (ws.file(f".rooda/worktrees/{name}-1"), f"rooda/{name}-1")
    return found[1]


def test_a_reflex_loop_in_its_own_worktree(kit: Kit) -> None:
    """Files appear only in the worktree, and uncommitted ones keep it from being pruned."""
    done = kit.new(4, "--worktree", *near(kit.ws))
    assert done.code == 0, done.both
    folder = folder_of(kit.ws, done, "reflex")
    assert os.path.exists(f"{folder}/.ai-factory/evolution/{ALIAS}/artifact.md") and not kit.home.exists()
    kept = kit.ws.rooda("prune", "reflex")
    assert "has uncommitted changes" in kept.out and os.path.isdir(folder)


@pytest.mark.long
def test_two_reflex_loops_at_once(kit: Kit) -> None:
    """A loop that is active here does not block one in a worktree."""
    kit.kill_in("PLAN.1", "x")
    kit.answer("PLAN.1", '{"plan": ["a", "b", "c"]}')
    assert kit.new(4).code == 3
    kit.again()
    done = kit.new(4, "--worktree")
    assert done.code == 0 and os.path.isdir(f"{folder_of(kit.ws, done, 'reflex')}/.ai-factory")


def test_a_flow_in_its_own_worktree(flow: Flow) -> None:
    """The flow's branch is checked out in the worktree; prune removes it once merged. The user's branch stays."""
    ws = flow.scenario("S1").ws
    ws.write("mine", "not committed\n")
    done = flow.run("do it", "--worktree", *near(ws, " --model {model}"))
    assert done.code == 0, done.both
    folder = folder_of(ws, done, "flow")
    assert ws.git("branch", "--show-current").strip() == "main" and ws.read("src.txt") == "zero\n"
    assert "git merge ai-loop/do-it" in done.err
    ws.git("merge", "-q", "ai-loop/do-it")
    assert ws.read("src.txt") == "one\n"
    assert f"Removed the worktree {folder}" in ws.rooda("prune").out
    assert not os.path.exists(folder)


def test_a_flow_that_is_not_committed(flow: Flow) -> None:
    """Uncommitted flow files would be missing in a worktree: exit 2, and none is made."""
    flow.scenario("S1")
    flow.ws.git("rm", "-rq", "--cached", ".ai-loop")
    flow.ws.git("commit", "-qm", "without the flow")
    done = flow.run("do it", "--worktree")
    assert done.code == 2 and "not committed" in done.err and not flow.ws.exists(".rooda/worktrees")
    assert flow.run("--resume", "--worktree").code == 2


def test_a_goal_in_its_own_worktree(g: Goals) -> None:
    """A goal's state and files are in the worktree; an interrupted goal waits there, and prune keeps it."""
    g.side("step-1", 'mkdir "$FAKE/once" && kill -INT $PPID && { sleep 30 & wait; }')
    done = g.run("--worktree", *near(g))
    assert done.code == 130, done.both
    folder = folder_of(g, done, "goal")
    assert os.path.exists(f"{folder}/.loop/state.json") and not g.exists(".loop") and not g.exists("a.ok")
    assert "a run can be resumed in it" in g.rooda("prune").out
    said = re.search(r"  next        rooda (.*)$", done.err, re.MULTILINE)
    assert said, done.err
    g.succeeds()
    assert g.rooda(*said[1].split()).code == 0
    assert {call.cwd for call in g.calls[1:]} == {folder}
