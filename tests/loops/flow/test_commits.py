"""Rows F-130 to F-164: the commit format, the result of a node, and what stays constant."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from rooda.loops.flow import boundaries
from rooda.loops.flow.boundaries import Boundary
from rooda.loops.flow.model import NodeState, Reading
from tests.kit.flow import FL1, Flow, front_matter, limited

Ran = Callable[[str], Any]
ALL = ["S1", "S2", "S3", "S4", "S5"]
KEYS = ["node-path", "level", "iteration", "status", "target-met", "sensors", "action"]


@pytest.mark.parametrize("name", ALL)
def test_F_130_F_131_F_132_F_133_F_134_F_135_F_136_F_137_F_138_the_format(ran: Ran, name: str) -> None:
    """Every message has the subject, a blank line, and seven lines in order, each with a valid value."""
    flow, _ = ran(name)
    assert flow.log()
    for commit in flow.log():
        found = re.fullmatch(r"ai-loop\[([^\]]+)\]: iteration (\d+(?:\.\d+)*) — (\S.*)", commit.subject)
        assert found, commit.subject
        assert commit.body[0] == "" and [re.match(r"\[([\w-]+)\] \S", row)[1] for row in commit.body[1:]] == KEYS
        fields = commit.fields
        assert fields["node-path"] == found[1].replace(" > ", "/")
        assert fields["level"] == str(fields["node-path"].count("/"))
        assert fields["iteration"] == found[2]
        assert fields["status"] in ("running", "complete", "max-iterations-reached")
        assert fields["target-met"] in ("true", "false")
        node = flow.levels[int(fields["level"])]
        assert re.fullmatch(", ".join(f"{sensor}: (pass|fail|pending)" for sensor in node.sensors), fields["sensors"])
        assert fields["action"].strip() and len(fields["action"]) <= 200
        assert len(found[3]) <= 72


@pytest.mark.parametrize("name", ALL)
def test_F_139_F_141_each_label_once_and_no_other_commits(ran: Ran, name: str) -> None:
    """Every commit of the branch is a boundary, and no node has a label twice."""
    flow, done = ran(name)
    pairs = [(commit.fields["node-path"], commit.label) for commit in flow.log()]
    assert len(pairs) == len(set(pairs))
    assert f"Commits: {len(pairs)}" in done.out


def test_F_140_the_log_alone_is_the_history(ran: Ran) -> None:
    """`git log --grep` finds the commits of each node."""
    flow, _ = ran("S2")

    def labels(pattern: str) -> list[str]:
        text = flow.ws.git("log", "--reverse", "--format=%s", f"--grep={pattern}", "main..HEAD")
        return re.findall(r"iteration (\S+)", text)

    assert labels(r"\[node-path\] delivery$") == ["0", "1", "2"]
    assert labels(r"\[node-path\] delivery/impl") == ["1.0", "1.1", "1.2"]


SAID = {
    "Made it. And more.": "Made it.",
    "- first bullet\n- second": "first bullet",
    "1. one thing\n   goes on\n2. other": "one thing goes on",
    "Changed src/calc.py, v1.2 only": "Changed src/calc.py, v1.2 only",
    "a\nwrapped\nsentence. Rest": "a wrapped sentence.",
    "### Parts\nDid the first.\n": "Did the first.",
    "x" * 300: "x" * 199 + "…",
    "tab\there \x07 bell": "tab here bell",
}


@pytest.mark.parametrize("said", SAID, ids=lambda said: ascii(said)[:20])
def test_F_123_F_138_the_action_is_one_line(said: str) -> None:
    """The summary is the first sentence under `What Was Done`, without control characters, cut if too long."""
    from rooda.loops.flow.contract import action

    found = action(f"# Actuator Output\n\n## What Was Done\n\n{said}\n\n## Files Changed\n\n- `x`\n")
    assert boundaries.one_line(found.text, boundaries.ACTION) == SAID[said]


def test_F_131_messages_are_read_back_as_they_were_made() -> None:
    """A commit message parses back to the state that was carried."""
    for state in (
        NodeState(3, "running", (Reading("a b", "pass"), Reading("c", "fail")), "did — it: x", "y, z"),
        NodeState(0, "complete", (), "target met", "target met"),
        NodeState(12, "error", (Reading("ü", "pending"),), "error: [x] y", "error: [iteration] 7", "[iteration] 7"),
    ):
        boundary = Boundary("a/b", f"1.{state.iteration}", state)
        assert boundaries.read(boundaries.message(boundary)) == boundary
    for foreign in ("", "fix", "ai-loop[a]: iteration 1 — x\n\nno fields", "Merge branch 'x'"):
        assert boundaries.read(foreign) is None


RESULTS = {
    ("S1", "main"): ("complete", True, "target-met", "main", "root", 2),
    ("S2", "delivery"): ("complete", True, "target-met", "delivery", "root", 2),
    ("S2", "delivery/impl"): ("complete", True, "target-met", "impl", "delivery", 2),
    ("S3", "main"): ("max-iterations-reached", False, "max-iterations", "main", "root", 2),
    ("S4", "delivery"): ("max-iterations-reached", False, "max-iterations", "delivery", "root", 1),
    ("S4", "delivery/impl"): ("max-iterations-reached", False, "max-iterations", "impl", "delivery", 2),
    ("S5", "a/b/c"): ("max-iterations-reached", False, "max-iterations", "c", "a/b", 1),
}


@pytest.mark.parametrize("key", RESULTS, ids=str)
def test_F_150_F_151_F_152_F_153_F_154_results(ran: Ran, key: tuple[str, str]) -> None:
    """Every ended node has a result file with these keys."""
    flow, _ = ran(key[0])
    status, met, reason, node, parent, count = RESULTS[key]
    assert list(flow.fm(flow.rd(f"nodes/{key[1]}/result-output.md")).items()) == [
        ("status", status),
        ("target-met", met),
        ("termination-reason", reason),
        ("run-id", flow.run_id),
        ("node-id", node),
        ("node-path", key[1]),
        ("parent-node-path", parent),
        ("iterations-executed", count),
    ]


@pytest.mark.parametrize(("name", "node"), RESULTS)
def test_F_155_the_body_of_a_result(ran: Ran, name: str, node: str) -> None:
    """The result has its headings in order, each with a text."""
    flow, _ = ran(name)
    body = flow.ws.read(flow.rd(f"nodes/{node}/result-output.md")).split("\n---\n", 1)[1]
    parts = re.split(r"^(#{1,2} .*)$", body, flags=re.MULTILINE)[1:]
    headings = ["## Summary", "## Metrics Delta", "## Key Observations for Parent Controller"]
    assert parts[0::2] == [f"# Result: {node.rpartition('/')[2]}", *headings]
    assert all(text.strip() for text in parts[3::2])


def test_F_156_a_result_shows_what_changed(ran: Ran) -> None:
    """The result shows first and last readings, the gap, the action, and what remains."""
    flow, _ = ran("S1")
    text = flow.ws.read(flow.ap("main", "result-output.md"))
    assert "| unit | fail | pass |" in text
    assert "> gap 2" in text and "Wrote one into src.txt." in text
    limit = ran("S3")[0]
    text = limit.ws.read(limit.ap("main", "result-output.md"))
    assert "| unit | fail | fail |" in text and "failing sensors: unit" in text
    assert "limit of 3 iterations, after 2 iterations" in text


def test_F_156_failing_sensors_last_words_and_stagnation(flow: Flow) -> None:
    """The result shows the last lines of failing sensors and the controller's notes to the parent."""
    flow.scenario("S3")
    flow.sensor("unit", "fail", more="\n## Output\n\n```\nline 1\nE: seven is not eight\n```\n")
    parts = ("## Gap Analysis\n\ng", "## Action Plan\n\n1. x", "## Stagnation Notes\n\nthe third time\n")
    flow.say("controller-main", "\n\n".join(("---\ntarget-met: false\n---", *parts)))
    assert flow.run().code == 4
    result = flow.ws.read(flow.ap("main", "result-output.md"))
    assert "> E: seven is not eight" in result and "> the third time" in result


def test_F_156_all_pass_at_the_limit(flow: Flow) -> None:
    """The last action was measured and never judged: result and report say so."""
    flow.scenario("S3")
    flow.sensor("unit", "fail", "fail", "pass")
    ran = flow.run()
    assert ran.code == 4
    assert "All sensors pass at the limit" in flow.ws.read(flow.ap("main", "result-output.md"))
    assert "limit 3: 2 full cycles" in ran.out and "all sensors pass" in ran.out


def test_F_157_the_result_is_rooda_s(flow: Flow) -> None:
    """rooda writes the result: agents that write nothing have one, and no other role is called."""
    flow.scenario("S1")
    flow.say("controller-main", "!nowrite\n", "!nowrite\n")
    assert flow.run().code == 1
    assert flow.ws.exists(flow.ap("main", "result-output.md"))
    assert {call["role"] for call in flow.calls} == {"sensor", "controller"}


@pytest.mark.parametrize(("name", "label", "node"), [("S1", "2", "main"), ("S2", "1.2", "impl"), ("S4", "1.3", "impl")])
def test_F_158_the_result_is_in_the_last_commit(ran: Ran, name: str, label: str, node: str) -> None:
    """The result is part of the commit that ends the node."""
    flow, _ = ran(name)
    names = flow.ws.git("show", "--name-only", "--format=", flow.at(label).sha).split()
    assert flow.ap(node, "result-output.md") in names


def test_F_163_the_nodes_file_does_not_grow(ran: Ran) -> None:
    """The node's file has as many lines in the last iteration as in the first."""
    flow, _ = ran("S3")
    path = flow.ap("main", "orchestrator-output.md")
    sizes = {flow.shown(label, path).count("\n") for label in ("0", "1", "2", "3")}
    assert len(sizes) == 1


def test_F_164_artifacts_hold_the_latest_only(flow: Flow) -> None:
    """The controller's file is that of the last iteration; the older ones are in the commits."""
    flow.scenario("S3")
    flow.put(limited(FL1, 4))
    flow.controller("main", False, False, False)
    flow.commit("limit")
    assert flow.run().code == 4
    path = flow.ap("main", "controller-output.md")
    assert [f"gap {n}" in flow.shown(str(n), path) for n in (1, 2, 3)] == [True] * 3
    assert "gap 3" in flow.ws.read(path) and "gap 1" not in flow.ws.read(path)


def test_F_150_F_152_F_135_an_error_is_written_everywhere(flow: Flow) -> None:
    """A failing child sets `error` in its own and its parent's result and commit and in the state; exit 1."""
    flow.scenario("S2")
    flow.say("actuator-impl", "!nowrite\n")
    ran = flow.run()
    assert ran.code == 1
    assert "ended with an error" in ran.both
    assert [commit.label for commit in flow.log()] == ["0", "1.0", "1.1", "1"]
    assert [commit.fields["status"] for commit in flow.log()][-2:] == ["error", "error"]
    for node, count in (("delivery", 1), ("delivery/impl", 1)):
        keys = flow.fm(flow.rd(f"nodes/{node}/result-output.md"))
        assert (keys["status"], keys["target-met"], keys["termination-reason"]) == ("error", False, "error")
        assert keys["iterations-executed"] == count
        own = front_matter(flow.ws.read(flow.rd(f"nodes/{node}/orchestrator-output.md")))
        assert own["status"] == "error"
    assert flow.state["status"] == "error"
    assert flow.clean()


def test_F_123_F_156_an_error_shows_no_reading_that_is_not_there(flow: Flow) -> None:
    """If the sensors fail after an action, message and result show the action and not the old reading."""
    flow.scenario("S1")
    flow.sensor("unit", "pass")
    flow.say("sensor-unit", flow.scripts["sensor-unit.1"], "!nowrite\n")
    ran = flow.run()
    assert ran.code == 1 and "WARNING: main: sensors of main failed: sensor-unit-output.md was not written" in ran.err
    last = flow.at("1")
    assert last.fields["sensors"] == "unit: pending" and "error: sensors of main failed" in last.subject
    result = flow.shown("1", flow.ap("main", "result-output.md"))
    assert "| unit | pass | pending |" in result and "not measured: unit" in result
    assert "- Done: Wrote one into src.txt." in result
    assert flow.shown("1", "src.txt") == "one\n"


def test_F_137_an_error_at_the_entry_names_the_sensors(flow: Flow) -> None:
    """A failed measurement is shown as pending, not as `none`, which means a node without sensors."""
    flow.scenario("S1")
    flow.say("sensor-unit", "!nowrite\n", "!nowrite\n")
    assert flow.run().code == 1
    assert flow.at("0").fields["sensors"] == "unit: pending"


def test_F_156_an_action_that_failed_is_not_denied(flow: Flow) -> None:
    """The commit has the files that the failed action left; valid readings still count."""
    flow.scenario("S1")
    flow.say("actuator-main", "!edit src.txt half\n!nowrite\n")
    assert flow.run().code == 1
    assert flow.at("1").fields["sensors"] == "unit: fail"
    result = flow.shown("1", flow.ap("main", "result-output.md"))
    assert "no action was finished; one that failed may have left" in result


def test_FQ_26_the_action_at_the_limit(ran: Ran) -> None:
    """Subject and action have the same text; the report has the number of cycles."""
    flow, done = ran("S3")
    assert flow.at("3").fields["action"] == "max iterations reached"
    assert flow.at("3").subject.endswith(" — max iterations reached")
    assert "limit 3: 2 full cycles" in done.out
