"""What is adapted of what this loop descends from: fit, SHAPE.md by a command, lists of tasks; and why."""

import json

import pytest
from kit import SPEC, A, B, Goals

from rooda.policy import goal_fit, goal_prd, goal_shape, goal_shape_text
from rooda.policy.goal_fit import Fit
from rooda.policy.goal_plan import MustNot, Plan
from rooda.policy.goal_types import Criterion


@pytest.mark.parametrize(
    "fit, shape",
    [
        ((10, 10, 10, 5, 5), "Tool"),
        ((9, 4, 9, 9, 9), "Colleague"),
        ((8, 8, 5, 5, 5), "Tool with review"),
        ((5, 5, 5, 5, 5), "Colleague"),
        ((5, 5, 5, 5, 4), "not to be delegated"),
        ((5, None, 5, 5, 5), ""),
    ],
)
def test_CU_21_C_016_fit_by_its_sum(fit: tuple[int | None, ...], shape: str) -> None:
    """The borders of the second score; with a part unknown there is no verdict."""
    assert goal_fit.verdict(Fit(*fit)) == shape


def test_CU_21_C_016_fit_is_a_report_only(g: Goals) -> None:
    """Shown by status, as far as it is known; the shape follows the ten points."""
    g.planned(9, fit={"hidden_coupling": 1, "shape_confidence": 0, "reversibility": 0})
    g.run("-n", "1")
    assert "| Fit: 30/50 (Tool with review)" in g.rooda("goal", "status").out
    status = json.loads(g.rooda("goal", "status", "--json").out)
    assert (status["shape"], status["fit"]["total"], status["fit"]["spec_clarity"]) == ("Tool", 30, 9)


def test_CU_26_a_shape_that_is_written_is_read_back() -> None:
    """Names, types, commands with pipes, expectations, holdouts and both sorts of mustNot survive the way."""
    criteria = (
        Criterion("tests pass", "execution output", "pytest -q | tail"),
        Criterion("fast: p95", "measurement", './b "x"', "< 0.1"),
        Criterion('shows "hi"', "execution output", "echo hi", "^hi$"),
        Criterion("UI", "observation", note="look at it"),
        Criterion("secret", "execution output", "true", holdout=True),
        Criterion("hope", "assumption"),
    )
    must_not = (MustNot("no deps", "! git diff --quiet (x)"), MustNot("plain words: really"))
    shape = goal_shape.read(goal_shape_text.text(Plan(criteria=criteria, must_not=must_not), 7, Fit()))
    assert (shape.criteria, shape.must_not) == (criteria, must_not)


def test_CU_26_shape_is_a_command(g: Goals) -> None:
    """One plan call writes the file, which is never overwritten unasked; the next run uses it."""
    ran = g.rooda("goal", "shape", SPEC)
    assert ran.code == 0 and ran.out == "[SHAPE] Generated .loop/shape/SHAPE.md | 2 criteria | 0 mustNot\n"
    assert g.kinds == ["plan"] and not g.exists(".loop/state.json")
    text = g.read(".loop/shape/SHAPE.md")
    assert g.rooda("goal", "shape", SPEC).code == 3 and g.read(".loop/shape/SHAPE.md") == text
    g.planned(4)
    assert g.rooda("goal", "shape", SPEC, "--fresh").code == 3 and g.read(".loop/shape/SHAPE.md") == text
    g.planned(9)
    g.run("-n", "1")
    assert g.public["criteriaStatus"][A] == {"met": False, "verification": "execution output"}


TASKS = """\
# Product

### T-010: Show the page
<!-- task id: T-010, blockedBy: [T-002], parallel: false -->
- [ ] page is there `test -f page`
- [x] looks well

### T-002: Set up
<!-- id: T-002, blockedBy: [], parallel: true -->
- [ ] configured (`test -f conf`)
"""


def test_CU_36_a_list_of_tasks_is_a_plan(g: Goals) -> None:
    """Steps in the order of what blocks them, boxes as criteria; scores by the words, or as they are given."""
    g.write("tasks.md", TASKS.replace("- [x] looks well\n", ""))
    g.side("step-1", "touch conf")
    g.side("step-2", "touch page")
    g.claims(True)
    ran = g.run("--plan", "tasks.md", "--score", "2,2,2,2,2", "--evidence", "this or that")
    assert ran.code == 0 and g.kinds == ["step", "step"], ran.both
    assert g.public["steps"] == ["T-002: Set up", "T-010: Show the page"]
    assert g.public["criteria"] == ["configured", "page is there"]
    by_words = g.run("--plan", "tasks.md", "--shape", "tool", "--evidence", "this or that", "-n", "1")
    assert "offline rubric" in by_words.out


def test_CU_36_tasks_that_wait_for_ever_are_unclear(g: Goals) -> None:
    """A task that is not there, or a circle: named, and not started."""
    g.write("tasks.md", TASKS.replace("[]", "[T-010]"))
    ran = g.run("--plan", "tasks.md", "--score", "2,2,2,2,2", "--evidence", "this or that")
    assert ran.code == 3 and "T-010, T-002: blocked by" in ran.err and not g.calls
    assert goal_prd.read(TASKS).criteria[-1] == Criterion("looks well", "assumption")


def test_the_reasons_of_a_goal(g: Goals) -> None:
    """Which criterion failed and where its output is, what the agent claimed, and why it ended."""
    g.claims(True)
    g.run("-n", "1")
    rows = json.loads(g.rooda("why", "--json").out)
    found = [(row["decision"], row["rule"], row["evidence"].removeprefix(f"{g.path}/")) for row in rows]
    assert ("failed", f"criterion {A}: not met", f".loop/evidence/1-{A}.txt") in found
    rule = f"step step1 not accepted; it claimed completion, which was not admitted; unmet: {A}, {B}"
    assert ("failed", rule) in [row[:2] for row in found]
    end = "Paused: iteration limit: 1; the iteration limit is tested before each iteration (exit 4)"
    assert found[-1][:2] == ("ended", end)


def test_evidence_of_two_criteria_never_shares_a_file(g: Goals) -> None:
    """Names that differ only in what a file name can't have keep their evidence apart."""
    pairs = [{"name": name, "command": f"echo {number}; false"} for number, name in enumerate(("a/b", "a_b"))]
    g.planned(criteria=pairs, steps=["one"])
    g.run("-n", "1")
    rows = json.loads(g.rooda("goal", "status", "--json").out)["criteria"]
    assert [g.read(row["evidence"]).splitlines()[-1] for row in rows] == ["0", "1"]
    assert len({*g.evidence()}) == 4


@pytest.mark.parametrize(
    "value, wanted",
    [
        ("`./t`", ("execution output", "./t", "")),
        ('"execution output: `./t`"', ("execution output", "./t", "")),
        ("'Execution Output (`./t -x`)'", ("execution output", "./t -x", "")),
        ("measurement: `./t` < 0.1", ("measurement", "./t", "< 0.1")),
        ("`./t` < 0.1s", ("measurement", "./t", "< 0.1s")),
        ("observation — look", ("observation — look", "", "")),
        ('"code review"', ("code review", "", "")),
    ],
)
@pytest.mark.parametrize("form", ["{0}: {1}", "  - {0}: {1}", '"{0}": {1}'])
def test_C_020_the_map_may_hold_commands(form: str, value: str, wanted: tuple[str, str, str]) -> None:
    """Type and command, or the command alone, quoted or not."""
    line = form.format("answers with 200", value)
    shape = goal_shape.read(f"criteria:\n- answers with 200\nverification:\n{line}\n")
    assert [(each.verification, each.command, each.expect) for each in shape.criteria] == [wanted]


FORMS = {
    "inline": "criteria: [one, \"two, more\"]\nmustNot: ['no three']\nverification:\n  one: observation\n",
    "fenced": "```yaml\ncriteria:\n  - 'one'\n\n  - \"two, more\"\nmustNot:\n- no three\n```\n"
    "verification:\n- one: Observation\n",
    "table": "## Criteria\n* one\n* two, more\n## Must-NOT Constraints\n1. no three\n\n"
    "| Criterion | Verification Type | Command/Method |\n|:--|--|--|\n| one | OBSERVATION | look |\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_C_017_C_018_C_020_every_form_of_a_shape_file_says_the_same(form: str) -> None:
    """Lists in one line, in a fence or below headings; types in any spelling."""
    shape = goal_shape.read(FORMS[form])
    assert [(each.name, each.verification) for each in shape.criteria] == [("one", "observation"), ("two, more", "")]
    assert shape.must_not == (MustNot("no three"),)
