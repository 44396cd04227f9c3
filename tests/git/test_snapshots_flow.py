"""Snapshots of a flow, around each cycle of its top node; after an undo the run resumes from there."""

import pytest

from tests.kit.flow import Flow
from tests.kit.snapshots import moments, tree_of
from tests.kit.workspace import until

SAFE = ("--safety", "snapshot")


def worked(flow: Flow) -> str:
    """Run two cycles with an actuator and a third that meets the target; return the run's ID."""
    flow.scenario("S1")
    flow.sensor("unit", "fail", "fail", "pass")
    flow.controller("main", False, False, True)
    flow.actuator("main", "one", "two")
    done = flow.run("do it", *SAFE)
    assert done.code == 0, done.both
    return flow.run_id


def cut_off(flow: Flow, scenario: str, node: str) -> None:
    """End the run by a signal when this node's actuator runs for the first time."""
    flow.scenario(scenario)
    once = '!edit src.txt one\n!sh mkdir "$FAKE/once" && touch here && sleep 30\n'
    flow.say(f"actuator-{node}", f"{once}# Actuator Output\n\n## What Was Done\n\none\n")
    run = flow.ws.start("flow", "run", "do it", *SAFE)
    until(lambda: flow.ws.exists("here"))
    run.signal(15)
    assert run.finish() == 143


def test_each_cycle_has_its_snapshots(flow: Flow) -> None:
    """Cycle 0 is the first measurement; each other one has its actuator's changes, and the commits are unaffected."""
    run = worked(flow)
    assert moments(flow.ws) == [f"{number}-{moment}" for number in range(4) for moment in ("after", "before")]
    assert [tree_of(flow.ws, f"{number}-after")["src.txt"] for number in range(4)] == [
        *("zero\n", "one\n", "two\n", "two\n"),
    ]
    assert flow.labels() == ["0", "1", "2", "3"] and flow.clean()
    assert "+two" in flow.ws.rooda("diff", run, "2").out
    started = next(each for each in flow.ws.events() if each["event"] == "run.started")
    assert started["number"] == 0


def test_a_resume_after_an_undo_continues_from_there(flow: Flow) -> None:
    """An undo restores project and run files; HEAD moves when a resume drops undone commits from the branch."""
    run = worked(flow)
    head = flow.ws.git("rev-parse", "HEAD")
    undone = flow.ws.rooda("undo", "2", "--yes")
    assert undone.code == 0, undone.both
    assert flow.ws.read("src.txt") == "one\n" and flow.ws.git("rev-parse", "HEAD") == head
    assert flow.state["status"] == "running"
    assert run in flow.ws.rooda("status").out
    flow.controller("main", False, False, False, False, True)
    flow.actuator("main", "one", "two", "another")
    resumed = flow.ws.rooda("resume", run)
    assert resumed.code == 0, resumed.both
    assert "was undone: removed 2 commits from" in resumed.err and head.strip() in resumed.err
    assert flow.labels()[:3] == ["0", "1", "2"] and len(set(flow.labels())) == len(flow.labels())
    assert flow.shown("2", "src.txt") == "another\n"
    assert flow.clean()
    assert flow.ws.git("cat-file", "-t", head.strip()).strip() == "commit"


def test_a_run_undone_as_a_whole_can_be_resumed(flow: Flow) -> None:
    """Before cycle 0 nothing is measured: a resume starts at the entry, and the undo can be reverted."""
    run = worked(flow)
    before = {name: flow.ws.read(name) for name in flow.ws.git("ls-files").split()}
    assert flow.ws.rooda("undo", "0", "--yes").code == 0
    assert flow.ws.read("src.txt") == "zero\n"
    assert flow.ws.rooda("undo", "--redo", "--yes").code == 0
    assert {name: flow.ws.read(name) for name in flow.ws.git("ls-files").split()} == before and flow.clean()
    assert flow.ws.rooda("undo", "0", run, "--yes").code == 0
    flow.controller("main", *[False] * 3, True)
    resumed = flow.resume(run)
    assert resumed.code == 0 and "removed 4 commits from" in resumed.err, resumed.both
    assert flow.labels() == ["0", "1"]


def test_on_another_branch_nothing_is_undone(flow: Flow) -> None:
    """An undo on another branch exits with 3 and prints the command to switch."""
    worked(flow)
    flow.ws.git("checkout", "-q", "main")
    refused = flow.ws.rooda("undo", "--yes")
    assert refused.code == 3 and "git checkout ai-loop/do-it" in refused.err
    assert flow.ws.read("src.txt") == "zero\n"


def test_commits_of_the_user_are_not_removed(flow: Flow) -> None:
    """With the user's commit on top of an undone cycle, the resume is refused and nothing moves."""
    run = worked(flow)
    assert flow.ws.rooda("undo", "2", "--yes").code == 0
    flow.ws.git("commit", "-q", "--allow-empty", "-m", "mine")
    head = flow.ws.git("rev-parse", "HEAD")
    refused = flow.resume(run)
    assert refused.code == 2 and "has other commits since then" in refused.err
    assert flow.ws.git("rev-parse", "HEAD") == head


def test_a_cut_off_cycle_of_nested_nodes(flow: Flow) -> None:
    """In a cycle that was cut off, inner steps are undone with it, and the resume repeats the cycle."""
    cut_off(flow, "S2", "impl")
    assert moments(flow.ws)[-2:] == ["1-after", "1-before"]
    undone = flow.ws.rooda("undo", "1", "--yes")
    assert undone.code == 0, undone.both
    assert flow.ws.read("src.txt") == "zero\n" and not flow.ws.exists("here")
    flow.controller("impl", False, False, True)  # the first calls were before the undo
    flow.controller("delivery", False, False, True, plan="outer plan")
    resumed = flow.resume()
    assert resumed.code == 0, resumed.both
    assert flow.ws.read("src.txt") == "one\n"
    assert flow.labels() == ["0", "1.0", "1.1", "1.2", "1", "2"]


def test_a_resumed_cycle_is_undone_as_a_whole(flow: Flow) -> None:
    """A cycle that a later run continued is undone as a whole, whichever run is the newest."""
    cut_off(flow, "S1", "main")
    flow.controller("main", False, True)
    assert flow.resume("--safety", "snapshot").code == 0
    assert "here" in flow.ws.rooda("diff", "1", "--name-only").out
    assert flow.ws.rooda("undo", "1", "--yes").code == 0
    assert flow.ws.read("src.txt") == "zero\n" and not flow.ws.exists("here")


@pytest.mark.long
def test_the_setting_in_the_flow_table(flow: Flow) -> None:
    """[flow] overrides [loop]."""
    flow.scenario("S1")
    flow.ws.write("rooda.toml", flow.ws.read("rooda.toml") + '\n[flow]\nsafety = "snapshot"\n')
    flow.commit("settings")
    assert flow.run().code == 0 and moments(flow.ws)
