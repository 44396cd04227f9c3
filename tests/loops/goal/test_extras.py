"""What is adapted of what this loop descends from: SHAPE.md by a command, lists of tasks; and why."""

import json
import os

import pytest

from rooda.loops.goal import shape as goal_shape
from rooda.loops.goal import task_plan
from rooda.loops.goal.criteria import Criterion
from rooda.loops.goal.plan import MustNot, Plan
from rooda.run import task_lists
from tests.kit.goal import SPEC, A, B, Goals, claim, plan
from tests.kit.workspace import FAKE_AI


def test_CU_21_CA_52_delegation_is_not_scored(g: Goals) -> None:
    """A second score of 50 was dropped by decision: a plan that has one is taken, and nothing shows it."""
    g.planned(9, fit={"hidden_coupling": 1, "shape_confidence": 0})
    g.run("-n", "1")
    assert "Fit" not in g.rooda("goal", "status").out
    assert "fit" not in json.loads(g.rooda("goal", "status", "--json").out)[0]["details"]


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
    shape = goal_shape.read_shape(goal_shape.shape_text(Plan(criteria=criteria, must_not=must_not), 7))
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


PRD = {"project": "x", "userStories": [
    {"id": "US-002", "title": "Later", "priority": 2, "passes": False, "acceptanceCriteria": ["Reads well"]},
    {"id": "US-001", "title": "First", "priority": 1, "acceptanceCriteria": ["Run `test -f a.ok` → exits 0"]},
    {"id": "US-000", "title": "Old", "priority": 0, "passes": True, "acceptanceCriteria": ["It was nice"]},
]}  # fmt: skip
BOXES = """\
1. [x] Old
2. [ ] Run `test -f a.ok` → exits 0
- [ ] Reads well
"""
HEADINGS = """\
### Task 1: Old
- [x] It was nice
### Task 2: First
- [ ] Run `test -f a.ok` → exits 0
- [x] looks well
### Task 3
- [ ] Reads well
"""
RUNS, READS = Criterion("Run test -f a.ok → exits 0", "execution output", "test -f a.ok"), "Reads well"


@pytest.mark.parametrize(
    "text, steps, done",
    [
        (json.dumps(PRD), ["US-001: First", "US-002: Later"], "US-000: Old"),
        (BOXES, [RUNS.name, READS], "Old"),
        (HEADINGS, ["Task 2: First", "Task 3"], "Task 1: Old"),
    ],
    ids=["prd.json", "boxes", "headings"],
)
def test_L_35_I_42_a_plan_that_the_user_has(g: Goals, text: str, steps: list[str], done: str) -> None:
    """What is checked is done, commands are found in words, and no evidence of a library search is demanded."""
    g.write("plan", text)
    g.side("step-1", "touch a.ok")
    ran = g.run("--plan", "plan", "--score", "2,2,2,2,2", "-n", "1", "--criterion", "x=no-such-program --now")
    assert ran.code == 4 and g.kinds[0] == "step" and g.public["steps"] == steps, ran.both
    known = {each["name"]: (each["verification"], each["command"]) for each in g.private["criteria"]}
    assert known == {
        RUNS.name: (RUNS.verification, RUNS.command),
        READS: ("code review", ""),
        "x": ("execution output", "no-such-program --now"),
    }
    assert f"Marked as done in the plan, so left out: {done}" in ran.err
    assert "The program of 'x' was not found: no-such-program" in ran.err


@pytest.mark.parametrize("text", ["Some prose.", '{"tasks": []}', "[1]"])
def test_I_42_a_form_that_is_not_known_is_named(g: Goals, text: str) -> None:
    """With the forms that are known; nothing about the parser."""
    g.write("plan", text)
    ran = g.run("--plan", "plan")
    assert ran.code == 2 and " as a plan: " in ran.err and "`userStories`" in ran.err, ran.both
    assert "Expecting" not in ran.err and not g.calls


def test_CU_36_missing_and_circular_tasks_are_refused(g: Goals) -> None:
    """A task that is not there, or a circle: named, and not started."""
    g.write("tasks.md", TASKS.replace("[]", "[T-010]"))
    ran = g.run("--plan", "tasks.md", "--score", "2,2,2,2,2", "--evidence", "this or that")
    assert ran.code == 3 and "T-010, T-002: blocked by" in ran.err and not g.calls
    written = task_plan.read_tasks(task_lists.read(TASKS.replace("[x]", "[ ]"))).criteria
    assert written[-1] == Criterion("looks well", "assumption")


def test_CU_36_a_list_of_tasks_as_people_write_it(g: Goals) -> None:
    """Lines that end as in Windows, a box in two tasks, and sections that follow the last task."""
    text = TASKS.replace("- [x] looks well", "- [ ] configured") + "#### Notes\n- [ ] noted `test -f n`\n"
    g.write("tasks.md", (text + "\n## Out of scope\n- [ ] a second page\n").replace("\n", "\r\n"))
    ran = g.run("--plan", "tasks.md", "--score", "2,2,2,2,2", "--evidence", "this or that", "-n", "1")
    assert ran.code == 4 and g.public["steps"] == ["T-002: Set up", "T-010: Show the page"], ran.both
    commands = {each["name"]: each["command"] for each in g.private["criteria"]}
    assert commands == {"configured": "test -f conf", "noted": "test -f n", "page is there": "test -f page"}


@pytest.mark.parametrize(
    "before, after, unclear",
    [
        ("T-002: Set up", "T-010: Set up", "steps (twice: T-010)"),
        ("- [x] looks well", "- [ ] configured `false`", "criteria (twice: configured)"),
    ],
)
def test_C_010_C_006_tasks_and_boxes_that_are_there_twice_are_unclear(
    g: Goals, before: str, after: str, unclear: str
) -> None:
    """Two tasks of one name, or two commands for one box: named, and nothing is started."""
    g.write("tasks.md", TASKS.replace("[T-002]", "[]").replace(before, after))
    ran = g.run("--plan", "tasks.md", "--score", "2,2,2,2,2", "--evidence", "this or that")
    assert ran.code == 3 and unclear in ran.err and not g.calls, ran.both


def test_the_reasons_of_a_goal(g: Goals) -> None:
    """Which criterion failed and where its output is, what the agent claimed, and why it ended."""
    g.claims(True)
    g.run("-n", "1")
    rows = json.loads(g.rooda("why", "--json").out)
    found = [(row["decision"], row["rule"], row["evidence"].removeprefix(f"{g.path}/")) for row in rows]
    assert ("failed", f"criterion {A}: not met", f".loop/evidence/1-{A}.txt") in found
    rule = f"step step1 not accepted; the agent claimed completion, which was not accepted; unmet: {A}, {B}"
    assert ("failed", rule) in [row[:2] for row in found]
    end = "Paused: iteration limit: 1; the iteration limit is tested before each iteration (exit 4)"
    assert found[-1][:2] == ("ended", end)


def test_evidence_of_two_criteria_never_shares_a_file(g: Goals) -> None:
    """Names that differ only in what a file name can't have keep their evidence apart."""
    pairs = [{"name": name, "command": f"echo {number}; false"} for number, name in enumerate(("a/b", "a_b"))]
    g.planned(criteria=pairs, steps=["one"])
    g.run("-n", "1")
    rows = json.loads(g.rooda("goal", "status", "--json").out)[0]["details"]["criteria"]
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
        ("`./t` < 0.1s.", ("measurement", "./t", "< 0.1s")),
        ("`./t` < 1e-3", ("measurement", "./t", "< 1e-3")),
        ("`./t` > .5 of all", ("measurement", "./t", "> .5")),
        ("observation — look", ("observation — look", "", "")),
        ('"code review"', ("code review", "", "")),
    ],
)
@pytest.mark.parametrize("form", ["{0}: {1}", "  - {0}: {1}", '"{0}": {1}'])
def test_C_020_the_map_may_hold_commands(form: str, value: str, wanted: tuple[str, str, str]) -> None:
    """Type and command, or the command alone, quoted or not."""
    line = form.format("answers with 200", value)
    shape = goal_shape.read_shape(f"criteria:\n- answers with 200\nverification:\n{line}\n")
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
    shape = goal_shape.read_shape(FORMS[form])
    assert [(each.name, each.verification) for each in shape.criteria] == [("one", "observation"), ("two, more", "")]
    assert shape.must_not == (MustNot("no three"),)


def gemini(text: str) -> str:
    """Its one JSON object, on several lines as it prints it."""
    tokens = {"prompt": 1_100_000, "candidates": 60_000, "cached": 100_000, "thoughts": 40_000, "tool": 0}
    stats = {"models": {"gemini-x": {"api": {"totalRequests": 1}, "tokens": tokens}}, "tools": {}, "files": {}}
    return json.dumps({"session_id": "s", "response": text, "stats": stats}, indent=2) + "\n"


def test_C_094_gemini_s_single_object_has_token_counts(g: Goals) -> None:
    """A million fresh, a hundred thousand cached and as many written, by [prices]; the answer is read as well."""
    agent = f'[agents.g]\ncommand = "{FAKE_AI}"\noutput = "gemini"\n'
    prices = '[prices."gemini-x"]\ninput = 1.0\ncached = 0.5\noutput = 10.0\n'
    g.config(f'[goal]\nagent = "g"\n{agent}{prices}')
    g.out("plan", gemini(json.dumps(plan())))
    g.out("step", gemini(claim(False)))
    ran = g.run("-n", "1")
    assert ran.code == 4 and "[LOOP] Iteration 1/1 | Cost: $2.05/$25 | Step: step1" in ran.lines, ran.both


def test_C_078_an_unknown_cost_is_not_zero(g: Goals) -> None:
    """The journal says null; with a price per call it says that."""
    g.run("-n", "1")
    assert [record["cost"] for record in g.journal] == [None, None]
    g.config(f"{g.read('rooda.toml')}cost_per_call = 0.5\n")
    g.run("--fresh", "-n", "1")
    assert [record["cost"] for record in g.journal] == [0.5, 0.5]


def test_a_shape_file_with_invalid_utf_8(g: Goals) -> None:
    """It is read, and summary.md is UTF-8 all the same."""
    g.write(".loop/shape/SHAPE.md", b"criteria:\n- caf\xe9\n")
    g.run("-n", "1")
    assert "caf" in g.read(".loop/summary.md")


def test_CU_07_a_quotation_stays_on_its_line(g: Goals) -> None:
    """Whatever line breaks the specification has in it."""
    scores = {**plan()["scores"], "outcome": {"score": 2, "quote": "Outcome\n  two"}}
    g.planned(scores=scores)
    assert 'Outcome: 2/2 ("Outcome two")' in g.run("-n", "1").lines


def test_a_missing_run_file_is_reported(g: Goals) -> None:
    """With its backup gone too: exit 2 and a sentence that is true."""
    g.run("-n", "1")
    for name in ("run.json", "iterations.jsonl"):
        os.remove(g.file(f".loop/{name}"))
    ran = g.go_on()
    assert (
        ran.code == 2 and "run.json is damaged: it is missing, and .loop/iterations.jsonl, its backup, has" in ran.err
    )


@pytest.mark.parametrize(
    "typed, words",
    [
        (["--budget=80"], "--budget 80 makes 105 in all, which is over the limit of 100."),
        (["--iterations", "50"], "--iterations 50 makes 51 in all, which is over the limit of 50."),
    ],
)
def test_CU_06_the_limit_error_names_the_typed_number(g: Goals, typed: list[str], words: str) -> None:
    """At continue the sum counts, and both numbers are named."""
    g.run("-n", "1")
    ran = g.go_on(*typed)
    assert ran.code == 2 and words in ran.err, ran.both


@pytest.mark.parametrize("claims, gate", [(False, "G2"), (True, "G3")])
def test_a_yes_for_one_gate_is_not_spent_on_another(g: Goals, claims: bool, gate: str) -> None:
    """Given for a G3 whose sweep fails: one more iteration, and the gate behind that one waits for the user."""
    g.planned(6, steps=[{"name": "step1", "criteria": [A, B]}])
    g.side("step-1", "touch a.ok b.ok")
    g.claims(True, "step-1")
    g.claims(claims, "step-2")
    g.side("step-2", "touch a.ok" if claims else ":")
    assert "Paused: gate G1" in g.run().out and "Paused: gate G3" in g.go_on("--yes").out
    os.remove(g.file("a.ok"))
    ran = g.go_on("--yes")
    assert ran.code == 4 and f"[LOOP] ⏸ Paused: gate {gate}" in ran.lines and len(g.calls) == 3, ran.both


@pytest.mark.parametrize("how", [{}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}])
def test_C_081_C_106_names_beyond_ascii(g: Goals, how: dict[str, str]) -> None:
    """With --ascii the names are those of the file, escaped; a C locale's file names are no reason to fall."""
    g.planned(criteria=[{"name": "f\u00fcr ✓", "command": "test -f a.ok"}], steps=["step1"])
    g.side("step-1", "touch a.ok")
    g.claims(True)
    ran = g.run("--ascii", env=how)
    assert ran.code == 0 and "Traceback" not in ran.err, ran.both
    line = next(line for line in ran.lines if line.startswith("CRITERIA: "))
    assert line.isascii() and json.loads(line.removeprefix("CRITERIA: ")) == g.public["criteriaStatus"]


def test_C_085_C_106_commands_beyond_ascii_in_a_c_locale(g: Goals) -> None:
    """A locale that has only ASCII runs the same commands and keeps the same files; its screen gets what it can."""
    g.planned(criteria=[{"name": "f\u00fcr", "command": "test -f \u00fc.ok"}], steps=["\u00fcben"])
    g.side("step-1", "touch \u00fc.ok; env >seen.txt")
    g.claims(True)
    spec = f"{SPEC} Gr\u00fc\u00dfe"
    ran = g.run(spec=spec, env={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"})
    assert ran.code == 0 and "Traceback" not in ran.err and ran.out.isascii(), ran.both
    assert g.public["spec"] == spec and g.public["criteriaStatus"] == {"f\u00fcr": True}
    assert "1-f\u00fcr.txt" in g.evidence() and "_ROODA" not in g.read("seen.txt")


def test_CA_37_a_last_block_without_its_end_claims_nothing(g: Goals) -> None:
    """A whole block that claims, and behind it one that was cut off: the last one counts, and it is broken."""
    g.side("step", "touch a.ok b.ok")
    g.out("step", claim(True) + "---LOOP_STATUS---\nEXIT_SIGNAL: false\n")
    ran = g.run("-n", "2")
    assert ran.code == 4 and "<loop-complete>" not in ran.out, ran.both
    assert "its last status block has no end" in g.calls[2].prompt.decode()
