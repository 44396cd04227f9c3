"""Row L-24: `rooda flow list` and `rooda flow merge`."""

import json

from tests.kit.flow import Flow


def test_L_24_merge_brings_the_work_without_the_runs_files(flow: Flow) -> None:
    """One commit on the base branch, with the work, the evidence, and no file of a run; a second merge adds nothing."""
    flow.scenario("S2")
    assert flow.run("repair the source").code == 0
    run, tip = flow.run_id, flow.ws.git("rev-parse", "HEAD").strip()
    merged = flow.ws.rooda("flow", "merge")
    assert merged.code == 0 and run in merged.out, merged.both
    assert flow.ws.git("rev-parse", "--abbrev-ref", "HEAD").strip() == "main"
    assert flow.ws.git("rev-list", "--count", "main~1..main").strip() == "1" and flow.clean()
    assert flow.ws.git("show", "--name-only", "--format=", "main").split() == ["src.txt"]
    message = flow.ws.git("log", "-1", "--format=%B")
    assert message.startswith("repair the source\n\n")
    for part in (run, "complete", "full: pass, cover: pass", "ai-loop[delivery > impl]: iteration 1.1"):
        assert part in message
    assert flow.ws.git("rev-parse", "ai-loop/repair-the-source").strip() == tip
    assert "nothing was committed" in flow.ws.rooda("flow", "merge", run).out


def test_L_24_a_conflict_changes_nothing(flow: Flow) -> None:
    """If the branches conflict: exit 3, the branch and the files as before."""
    flow.scenario("S1")
    assert flow.run().code == 0
    flow.ws.git("checkout", "-q", "main")
    flow.ws.write("src.txt", "another\n")
    flow.commit("another")
    flow.ws.git("checkout", "-q", "ai-loop/do-it")
    ran = flow.ws.rooda("flow", "merge")
    assert ran.code == 3 and "src.txt" in ran.err, ran.both
    assert flow.ws.git("rev-parse", "--abbrev-ref", "HEAD").strip() == "ai-loop/do-it" and flow.clean()
    assert flow.ws.git("show", "main:src.txt") == "another\n"
    flow.ws.write("new.txt", "mine\n")
    ran = flow.ws.rooda("flow", "merge")
    assert ran.code == 3 and "new.txt" in ran.err


def test_L_24_runs_are_listed(flow: Flow) -> None:
    """Newest first, with id, state, branch and task; as JSON too."""
    assert "No flow has run here." in flow.ws.rooda("flow", "list").out
    flow.scenario("S1")
    assert flow.run("one").code == flow.run("two").code == 0
    rows = flow.ws.rooda("flow", "list").lines
    assert [row.split()[2:] for row in rows] == [["ai-loop/two", "two"], ["ai-loop/one", "one"]]
    assert [row["task"] for row in json.loads(flow.ws.rooda("flow", "list", "--json").out)] == ["two", "one"]
