"""The resume table row by row, and the parsers of what agents and users write."""

import pytest

from rooda.base.yaml import front_matter, lenient, quoted, read, scalar
from rooda.loops.flow.boundaries import Boundary, NodeRecord, Position, position
from rooda.loops.flow.contract import Broken, action, decision, reading, section, unfenced
from rooda.loops.flow.model import Decision, NodeState, Reading


def closed(label: str, status: str = "running", path: str = "a/b") -> Boundary:
    return Boundary(path, label, NodeState(int(label.rpartition(".")[2]), status))


ZERO, ONE = closed("1.0"), closed("1.1")
OPEN = NodeRecord("1", (ZERO,), 1, "running", True)
DONE = ("OPEN", "CONTROL", "ACT", "LOOP", "CHILD")
TABLE = {
    "P0 nothing is there": (NodeRecord("1"), (None, ())),
    "P1 ended, not committed": (OPEN._replace(status="complete", step="commit"), (ZERO.state, (*DONE, "SENSORS"))),
    "P2 ended": (
        NodeRecord("1", (ZERO, closed("1.1", "complete")), 1, "complete"),
        (closed("1.1", "complete").state, ()),
    ),
    "P3 top, not measured": (NodeRecord("", (), 0, "running", True), (None, ())),
    "P4 top, measured": (NodeRecord("", (), 0, "running", True, "", ("SENSORS",)), (None, ("ENTER", "MEASURE"))),
    "P4 top, noted": (NodeRecord("", (), 0, "running", True, "commit", ("SENSORS",)), (None, ("ENTER", "MEASURE"))),
    "P4 inner: entered anew": (NodeRecord("1", (), 0, "running", True, "", ("SENSORS",)), (None, ())),
    "P5 committed": (OPEN._replace(boundaries=(ZERO, ONE), step="commit"), (ONE.state, ())),
    "P6 no decision": (OPEN, (ZERO.state, ("OPEN",))),
    "P6 being made": (OPEN._replace(step="controller"), (ZERO.state, ("OPEN",))),
    "P7 P8 decided": (OPEN._replace(fresh=("CONTROL",)), (ZERO.state, ("OPEN", "CONTROL"))),
    "P8 decided, noted": (OPEN._replace(step="controller", fresh=("CONTROL",)), (ZERO.state, ("OPEN", "CONTROL"))),
    "P8 acting": (OPEN._replace(step="actuator", fresh=("CONTROL",)), (ZERO.state, ("OPEN", "CONTROL"))),
    "P9 acted": (OPEN._replace(fresh=("CONTROL", "ACT", "SENSORS")), (ZERO.state, DONE)),
    "P9 acted, noted": (OPEN._replace(step="actuator", fresh=("CONTROL", "ACT")), (ZERO.state, DONE[:4])),
    "P9 measuring": (OPEN._replace(step="sensors", fresh=("CONTROL", "ACT")), (ZERO.state, DONE)),
    "P9 measured": (OPEN._replace(step="sensors", fresh=("SENSORS",)), (ZERO.state, (*DONE, "SENSORS"))),
    "P10 P11 child": (OPEN._replace(step="child", fresh=("CONTROL",)), (ZERO.state, ("OPEN", "CONTROL", "CHILD"))),
    "P1 by hand, ended, without commits": (
        NodeRecord("1", (), 2, "complete", True, "child", ("CONTROL",)),
        (NodeState(1), ("OPEN", "CONTROL", "CHILD")),
    ),
    "P10 entered anew, a former entry's files": (
        NodeRecord("2", (ZERO,), 2, "complete", True, "measure", ("CONTROL",)),
        (None, ()),
    ),
    "P13 of a former entry": (NodeRecord("2", (ZERO, ONE), 1, "complete"), (None, ())),
    "by hand, without commits": (
        NodeRecord("", (), 2, "running", True, "", ("CONTROL",)),
        (NodeState(1), ("OPEN", "CONTROL")),
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_F_172_F_173_F_174_F_175_F_176_the_resume_table(name: str) -> None:
    """Each row: what is found, the state after the last boundary, and the steps done since."""
    found, (state, done) = TABLE[name]
    answer = position(found)
    assert answer.state == state
    assert set(answer.done) == set(done)
    assert isinstance(answer, Position)


SECTIONS = {
    "## Action Plan\n\nx\n": "x",
    "## action plan (setpoint for inner loop)\nx\n\n## Hints\ny": "x",
    "# Controller\n## Gap\ng\n## ACTION PLAN\n\n\n  x\n\n# End": "  x",
    "```\n## Action Plan\nno\n```\n## Action Plan\nyes": "yes",
    "~~~~\n## Action Plan\n~~~\n~~~~\n## Action Plan\nyes\n```\n## a\n```": "yes\n```\n## a\n```",
    "### Action Plan\nno\n": "",
    "##Action Plan\nno\n": "",
    "## Action Plan\n": "",
    "": "",
    "## Action Plan\r\n\r\nx\r\n": "x",
    "## Action Plan\nx\x0b## y\x0cz\u2028## w": "x\x0b## y\x0cz\u2028## w",
}


@pytest.mark.parametrize("text", SECTIONS, ids=ascii)
def test_F_106_the_plan_is_found(text: str) -> None:
    """A section starts at a level-2 heading and ends at the next heading of level 1 or 2; fences hide headings."""
    assert section(text, "action plan") == SECTIONS[text]


def test_F_088_decisions() -> None:
    """A decision needs a boolean, and a plan if the actuator is a loop."""
    assert decision("---\ntarget-met: true\n---\n", True) == Decision(True, "")
    assert decision("\ufeff\n---\ntarget-met: false\n---\n## Action Plan\nx", True) == Decision(False, "x")
    for text in (
        "",
        "target-met: true",
        "---\ntarget-met: 'true'\n---\n",
        "---\ntarget-met: 1\n---\n",
        "---\n- x\n---\n",
    ):
        with pytest.raises(Broken):
            decision(text, False)
    with pytest.raises(Broken):
        decision("---\ntarget-met: false\n---\n", True)


def test_F_078_readings() -> None:
    """A reading is pass or fail, of the sensor that was called."""
    assert reading("---\nsensor: a\nstatus: pass\n---\n", "a") == Reading("a", "pass")
    assert reading("---\nstatus: fail\n---\n", "a") == Reading("a", "fail")  # whose file it is its name says as well
    assert reading("---\nsensor: 7\nstatus: fail\n---\n", "7") == Reading("7", "fail")
    for text in (
        "",
        "---\nstatus: ok\n---\n",
        "---\nsensor: b\nstatus: pass\n---\n",
        "---\nsensor:\nstatus: pass\n---\n",
        "---\nstatus: pass\nstatus: fail\n---\n",
    ):
        with pytest.raises(Broken):
            reading(text, "a")


def test_reports() -> None:
    """Any text is a report; one fence around a whole answer is removed."""
    assert action("words. more").text == "words."
    with pytest.raises(Broken):
        action("---\nx: y\n---\n\n")
    assert unfenced("```md\nx\ny\n```\n") == "x\ny\n"
    assert unfenced("x\n```\ny\n```\n") == "x\n```\ny\n```\n"


def test_yaml_as_rooda_takes_it() -> None:
    """YAML has the line of every key, faults for duplicates and recursion, and plain texts for dates."""
    document = read("a: 1\nb:\n  - x\n  - {c: 2024-01-01}\n")
    assert document.value == {"a": 1, "b": ["x", {"c": "2024-01-01"}]}
    assert (document.lines[("b",)], document.lines[("b", 1, "c")]) == (2, 4)
    assert [fault.line for fault in read("a: 1\nb: 2\na: 3\n").faults] == [3]
    assert "contains itself" in read("a: &x\n  b: *x\n").faults[0].text
    (tab,) = read("a:\n\tb: 1\n").faults
    assert tab.line == 2 and tab.text.endswith("; indent with spaces, not with tabs")
    assert "tab" not in read("a: [\n").faults[0].text
    assert read("a: &x [1]\nb: *x\n").value == {"a": [1], "b": [1]}
    bomb = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
    assert [fault.text for fault in read(bomb).faults] == ["its aliases expand to too many values"]
    assert read("a: [\n").faults and read("!!python/object:os.system x").value == "x"


def test_front_matter_of_people() -> None:
    """Invalid front matter is read key by key; without front matter there are no keys."""
    assert lenient("---\ndescription: use it: often\nmodel: opus\n---\nx") == {
        "description": "use it: often",
        "model": "opus",
    }
    assert lenient("no front matter") == {} and front_matter("---\nx\n")[0] is None
    assert front_matter("---\r\na: 1\r\n---\r\nbody\r\n") == ({"a": 1}, "body\r\n")


@pytest.mark.parametrize(
    "text", ["true", "1", "1.5", "null", "a: b", "#x", "- x", "", " x", "ü", "1_0", "0x1", "~", "*a"]
)
def test_scalars_survive(text: str) -> None:
    """A written text parses back to itself."""
    assert read(f"k: {scalar(text)}").value == {"k": text}
    assert read(f"k: {quoted(text)}").value == {"k": text}
