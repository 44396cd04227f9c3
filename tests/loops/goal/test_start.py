"""Rows C-001 to C-040: the start checklist, reversibility, SHAPE.md, the rubric, the workflow."""

import json
import os
from typing import Any

import pytest

from rooda.loops.goal import scoring
from tests.kit.goal import SPEC, A, B, Goals, blocks, claim, plan

ATTACK = "".join(f"### Vulnerability: V{n}\nAmended: it must not be {n}\nNew criterion: x\n\n" for n in (1, 2, 3))
ORDER = ("Outcome:", "Total:", "Reversibility:", "Criteria:", "Steps:", "Writing state to", "[LOOP] Starting")


def test_C_001_C_102_it_runs_until_satisfied_or_the_limit(g: Goals) -> None:
    """With the claim on the last step it ends itself; without any claim it runs to the limit and pauses."""
    g.succeeds()
    done = g.run()
    assert done.code == 0 and g.kinds == ["plan", "step", "step", "step"], done.both
    g.claims(False, *(f"step-{number}" for number in range(1, 11)))
    limited = g.run("--fresh")
    assert limited.code == 4 and g.kinds[4:] == ["plan"] + ["step"] * 10
    assert "[LOOP] ⏸ Paused: iteration limit: 10" in limited.lines and "<loop-complete>" not in limited.out


def test_C_002_C_008_C_011_C_053_everything_is_written_before_the_first_step(g: Goals) -> None:
    """Scored, written and announced, in the checklist's order, before the first step call."""
    g.keeps_copies()
    ran = g.run("-n", "1")
    assert g.kinds == ["plan", "step"]
    assert g.copies[1]["iteration"] == 0 and g.copies[1]["criteria"] == [A, B]
    places = [next(n for n, line in enumerate(ran.lines) if line.startswith(word)) for word in ORDER]
    assert places == sorted(places)
    assert g.private["scores"]["outcome"]["score"] == 2 and g.private["total"] == 9
    started = [event["event"] for event in g.events()]
    wanted = ["goal.scored", "goal.planned", "goal.disclosed", "run.started", "iteration.started"]
    assert [event for event in started if event in wanted] == wanted


@pytest.mark.parametrize(
    "total, shape", [(8, "Tool (8/10)"), (7, "Colleague (7/10)"), (5, "Colleague (5/10)"), (4, None)]
)
def test_C_003_C_034_the_shape_follows_the_sum(g: Goals, total: int, shape: str | None) -> None:
    """The borders are exact, and what the plan itself says of its shape is ignored."""
    g.planned(total, shape="Tool", sum=10)
    ran = g.run()
    assert (f"Shape: {shape}" in ran.out) if shape else (ran.code == 3 and "Shape:" not in ran.out)
    assert "/hope" not in ran.both  # L-06


@pytest.mark.parametrize("given, wanted", [("2A", "2A"), ("2B", "2B"), ("1", "1"), ("who knows", "2B")])
def test_C_004_reversibility_is_classified(g: Goals, given: str, wanted: str) -> None:
    """The class is in run.json; an unknown class counts as 2B."""
    g.planned(reversibility=given)
    g.out("precheck", "1. first misreading\n2. it must not be read so\n3. and never so\n")
    g.run("-n", "1")
    assert g.private["reversibility"] == wanted


def test_C_005_C_056_criteria_come_from_plan_shape_and_options_in_order(g: Goals) -> None:
    """Plan, then SHAPE.md, then --criterion; each name once."""
    g.write(".loop/shape/SHAPE.md", f"criteria:\n- {A}\n- docs written\n")
    g.run("-n", "1", "--criterion", "last=true", "--criterion", f"{B}=true")
    assert g.public["criteria"] == [A, B, "docs written", "last"]


def test_C_006_C_007_steps_and_the_task(g: Goals) -> None:
    """The steps are the plan's, and the journal begins with the whole state."""
    ran = g.run("-n", "1")
    assert g.public["steps"] == ["step1", "step2", "step3"] and "| Steps: 3 |" in ran.out
    assert g.journal[0]["iteration"] == 0
    assert set(g.public) <= set(g.journal[0])


@pytest.mark.parametrize(
    "missing", [{"criteria": []}, {"steps": []}, {"scores": None}, {"reversibility": None}, {"workflow_gate": None}]
)
def test_C_010_what_is_unclear_stops_the_start(g: Goals, missing: dict[str, Any]) -> None:
    """A second plan is asked for; then the item is named, exit 3, no step, no state."""
    g.planned(**missing)
    ran = g.run(spec=f"Add: {SPEC}")
    word = {"scores": "score", "workflow_gate": "workflow gate"}.get(*missing, next(iter(missing)))
    assert ran.code == 3 and word in ran.err and g.kinds == ["plan", "plan"]
    assert not g.exists(".loop/state.json") and not g.exists(".loop/run.json")


@pytest.mark.parametrize("reply", ["", "no json here", '{"scores": 3}', "[1, 2]", '{"steps": [{"name": ""}]}'])
def test_C_010_an_unusable_reply_is_asked_for_once_more(g: Goals, reply: str) -> None:
    """Whatever the agent answered: one repetition, then a sentence with every item."""
    g.out("plan", reply)
    ran = g.run()
    assert ran.code == 3 and "Not started: " in ran.err and g.kinds == ["plan", "plan"]


def test_C_012_type_2A_costs_nothing(g: Goals) -> None:
    """No call and no checkpoint besides the iterations."""
    g.git("init", "-q")
    g.succeeds()
    assert g.run().code == 0 and g.kinds == ["plan", "step", "step", "step"]
    assert g.git("for-each-ref", "refs/rooda") == ""


def test_C_013_type_2B_checkpoints_each_step(g: Goals) -> None:
    """One ref before every step; neither branch nor index nor status change by them."""
    g.git("init", "-q")
    g.write("kept.txt", "as it was\n")
    g.git("add", "kept.txt")
    g.git("commit", "-qm", "first")
    head, index = g.git("rev-parse", "HEAD"), g.git("ls-files", "-s")
    g.planned(reversibility="2B")
    g.succeeds()
    assert g.run().code == 0
    refs = g.git("for-each-ref", "--format=%(refname)", "refs/rooda/checkpoint").split()
    assert [ref.rpartition("/")[2] for ref in refs] == ["1", "2", "3"]
    assert (g.git("rev-parse", "HEAD"), g.git("ls-files", "-s")) == (head, index)
    status = g.git("status", "--porcelain").splitlines()
    assert sorted(status) == ["?? a.ok", "?? b.ok", "?? rooda.toml"]


def test_C_014_type_1_is_attacked_first(g: Goals) -> None:
    """The second call is the pre-check; its amendments reach the steps; an empty one ends the start."""
    g.planned(reversibility="1")
    empty = g.run()
    assert empty.code == 3 and g.kinds == ["plan", "precheck"] and not g.exists(".loop/state.json")
    attack = "".join(f"### Vulnerability: V{n}\nAmended: amended words {n} must not be\n\n" for n in (1, 2, 3))
    g.out("precheck", attack)
    g.run("-n", "1")
    assert g.kinds[2:] == ["plan", "precheck", "step"]
    assert "amended words 2" in g.calls[-1].prompt.decode() and "amended words 2" in g.read(".loop/precheck.md")
    assert g.public["spec"] == SPEC


BLOCK = '### Vulnerability: V{0}\nSpec text: "it must not"\nMisinterpretation: it never would\nAmended: words {0}\n'
INVALID = {
    "two misreadings": "- it must not be\n- it must not be so\n",
    "nothing forbidden": "".join(BLOCK.format(number) for number in range(3)),
    "one thing forbidden": "- one\n- two\n- never three\n",
}


@pytest.mark.parametrize("answer", INVALID)
def test_C_014_no_start_without_a_valid_attack(g: Goals, answer: str) -> None:
    """Three misreadings and two things that must not be, the plan's own included; else nothing starts, exit 3."""
    g.planned(reversibility="1")
    g.out("precheck", INVALID[answer])
    ran = g.run()
    assert ran.code == 3 and g.kinds == ["plan", "precheck"] and not g.exists(".loop/state.json"), ran.both
    assert ".loop/precheck.md" in ran.err and g.exists(".loop/precheck.md")
    g.planned(reversibility="1", mustNot=["break it", "lose it"])
    assert g.run("-n", "1").code == (3 if answer == "two misreadings" else 4)


def test_C_014_of_more_misreadings_the_first_five_count(g: Goals) -> None:
    """They join the prompts; the rest is in the pre-check's file."""
    g.planned(reversibility="1")
    g.out("precheck", "".join(f"- it must not be {number}\n" for number in range(7)))
    g.run("-n", "1")
    assert len(g.private["amendments"]) == 5 and "it must not be 6" in g.read(".loop/precheck.md")


@pytest.mark.parametrize(
    "words, wanted",
    [
        ("a schema migration", "1"),
        ("the public API", "1"),
        ("a dependency", "2B"),
        ("drop\nthe  table", "1"),
        ("the public\n  API", "1"),
        ("refactor it", "2B"),
        ("rename x", "2A"),
    ],
)
def test_C_015_the_words_are_a_floor(words: str, wanted: str) -> None:
    """The stricter of the plan's class and the words' class counts."""
    spec = f"{SPEC} It is {words}."
    assert scoring.reversibility(spec, "2A") == wanted
    assert (scoring.reversibility(spec, "2B"), scoring.reversibility(spec, "1")) == (max(wanted, "2B", key=strict), "1")


def strict(reversibility: str) -> int:
    return ("2A", "2B", "1").index(reversibility)


def test_C_015_the_words_decide_a_start(g: Goals) -> None:
    """A plan that calls itself easy to undo is attacked first because of the specification's words."""
    g.out("precheck", "- one\n- it must not be two\n- never three\n")
    g.run("-n", "1", "--workflow", "A", spec=f"{SPEC} It is drop\nthe  table.")
    assert g.private["reversibility"] == "1" and g.kinds[:2] == ["plan", "precheck"]


def test_C_016_the_shape_follows_the_ten_points_only(g: Goals) -> None:
    """Other scores in the plan change nothing."""
    g.planned(9, fit={"spec_clarity": 1, "total": 5})
    g.run("-n", "1")
    status = json.loads(g.rooda("goal", "status", "--json").out)[0]["details"]
    assert (status["shape"], status["total"]) == ("Tool", 9)


SHAPE = """\
# SHAPE

## Implementation Criteria

criteria:
  - "tests pass"
  - "API returns 200"

  - UI renders

mustNot:
  - no bad file (violated_if: `test -f bad`)
  - no new dependencies

## Verification Plan

| Criterion | Verification Type | Command/Method |
|-----------|-------------------|----------------|
| tests pass | execution output | `test -f a.ok` |
| API returns 200 | execution output | `test -f api.ok` |
| UI renders | observation | look at it |
"""


def test_C_017_C_018_C_019_C_020_C_021_shape_file_is_read(g: Goals) -> None:
    """Its criteria, types and mustNot entries are there, in the object form of the specification's sample."""
    g.write(".loop/shape/SHAPE.md", SHAPE)
    g.planned(criteria=[], steps=[{"name": "step1", "criteria": [A]}])
    g.keeps_copies()
    g.run("-n", "1")
    assert g.copies[1]["criteriaStatus"] == {
        "tests pass": {"met": False, "verification": "execution output"},
        "API returns 200": {"met": False, "verification": "execution output"},
        "UI renders": {"met": False, "verification": "observation"},
    }
    shown = g.rooda("goal", "status").out
    assert "no bad file (test -f bad)" in shown and "no new dependencies (not machine-checked)" in shown
    assert g.private["criteria"][0]["command"] == "test -f a.ok"


def test_C_022_a_must_not_pauses_at_once(g: Goals) -> None:
    """The call that breaks it is the last one; nothing is verified any more, and the entry is named."""
    g.planned(mustNot=[{"text": "no bad file", "violated_if": "test -f bad"}])
    g.side("3", "touch bad")
    ran = g.run()
    assert ran.code == 4 and g.kinds == ["plan", "step", "step"]
    assert "[LOOP] ⏸ Paused: mustNot: no bad file" in ran.lines and g.public["status"] == "paused"
    assert g.private["reason"] == "mustNot: no bad file"
    again = g.go_on()
    assert again.code == 4 and len(g.calls) == 3, "what must not be is still true"


def judged_goal(g: Goals) -> None:
    """Everything is well in one step; a judge looks at what must not be, which is in plain words."""
    g.config(f"{g.read('rooda.toml')}must_not_judge = true\n")
    g.planned(mustNot=["Never touch prod", 'no  new "deps"'], steps=["step1"])
    g.side("step", "touch a.ok b.ok")
    g.claims(True)


NAMED = {
    '{"violated": ["never touch  PROD."]}': "Never touch prod",
    '{"violated": "Never touch prod"}': "Never touch prod",
    '{"violated": ["`No new \\"deps\\"`"]}': 'no new "deps"',
    '{"violated": ["the production\\nsettings"]}': "the production settings",
    '{"violated": true}': 'Never touch prod, no new "deps"',
}


@pytest.mark.parametrize("answer", NAMED)
def test_C_022_what_a_judge_names_pauses(g: Goals, answer: str) -> None:
    """In other capitals, in one word for all, or in words that are none of ours: at once, and named."""
    judged_goal(g)
    g.out("judge", answer)
    ran = g.run()
    assert ran.code == 4 and f"[LOOP] ⏸ Paused: mustNot: {NAMED[answer]}" in ran.lines, ran.both


@pytest.mark.parametrize("answer", ["", "I can't say.", '{"violated": null}', '{"violated": [1]}', '{"met": false}'])
def test_C_019_C_022_an_unusable_judge_never_clears_a_must_not(g: Goals, answer: str) -> None:
    """It is said, and at the end the user decides; a judge that answers in the next iteration is believed."""
    judged_goal(g)
    g.out("judge", answer)
    ran = g.run()
    assert ran.code == 4 and "<loop-complete>" not in ran.out and "gave no usable answer" in ran.err
    assert '[LOOP] ⏸ Paused: mustNot could not be checked: Never touch prod, no new "deps"' in ran.lines
    asked = ["plan", "step", "judge", "judge"]  # each judge twice (L-34)
    assert g.go_on().code == 4 and g.go_on("--no-gates").code == 4 and g.kinds == asked
    assert g.go_on("--yes").code == 0 and g.kinds == asked


@pytest.mark.parametrize("code, end", [(0, 0), (1, 4)])
def test_C_022_a_failed_judge_call_never_clears_a_must_not(g: Goals, code: int, end: int) -> None:
    """An empty list counts only with exit code 0."""
    judged_goal(g)
    g.out("judge", '{"violated": []}')
    g._script("judge", "exit", f"{code}\n")
    assert g.run().code == end


@pytest.mark.parametrize("command", ["no-such-command", "sleep 60", "kill -9 $$", "git -C /nowhere diff --quiet"])
def test_C_022_an_inconclusive_command_never_clears_a_must_not(g: Goals, command: str) -> None:
    """Not found, timed out, killed: said at the start and in each iteration, and at the end the user decides."""
    g.config(f"{g.read('rooda.toml')}verify_timeout = 0.5\nkill_grace = 0.1\n")
    g.planned(mustNot=[{"text": "no x", "violated_if": command}], steps=["step1"])
    g.side("step", "touch a.ok b.ok")
    g.claims(True)
    ran = g.run()
    assert ran.code == 4 and "[LOOP] ⏸ Paused: mustNot could not be checked: no x" in ran.lines, ran.both
    assert ran.err.count("mustNot: no x: its command was inconclusive") == 2
    assert g.go_on("--yes").code == 0


def test_C_023_an_assumption_keeps_the_exit_closed(g: Goals) -> None:
    """Everything else met and completion claimed: no exit, and the criterion is named."""
    g.planned(criteria=[*plan()["criteria"], {"name": "feels right", "verification": "assumption"}])
    g.succeeds()
    ran = g.run()
    assert ran.code == 4 and "<loop-complete>" not in ran.out
    assert "[LOOP] ⏸ Paused: needs observation: feels right" in ran.lines
    assert not any(signal for signal, *_ in blocks(ran.out)) and g.public["exit_signal"] is False


def test_C_024_without_shape_file_values_are_booleans(g: Goals) -> None:
    """All of that is simply absent."""
    g.run("-n", "1")
    assert g.public["criteriaStatus"] == {A: False, B: False}


@pytest.mark.parametrize("change", [{"outcome": {"score": 3, "quote": "Outcome two"}}, {"outcome": None}])
def test_C_025_scores_are_0_1_or_2(g: Goals, change: dict[str, Any]) -> None:
    """Anything else is asked for once more; then the offline rubric decides and it is said."""
    scores = {key: value for key, value in {**plan()["scores"], **change}.items() if value is not None}
    g.planned(scores=scores)
    ran = g.run("--shape", "tool", "-n", "1")
    assert g.kinds == ["plan", "plan", "step"] and "offline rubric" in ran.out
    assert g.private["scored_by"] == "offline"


CELLS = {
    "outcome": ("Make it better", "Improve performance", "p95 latency <100ms"),
    "scope": ("Fix the app", "Fix auth", "Fix /api/auth/token"),
    "constraints": ("Nothing said", "Use existing stack", "No new deps, <500 LOC"),
    "success": ("Nothing said", "Tests pass", "All tests + manual QA"),
    "done": ("Nothing said", "When it works", "PR merged to main"),
}


@pytest.mark.parametrize("dimension", CELLS)
def test_C_026_C_027_C_028_C_029_C_030_the_rubric_s_cells(dimension: str) -> None:
    """The offline rubric gives all fifteen cells their points."""
    found = [getattr(scoring.score_words(text), dimension).score for text in CELLS[dimension]]
    assert found == [0, 1, 2]


def test_C_026_score_is_a_command(g: Goals) -> None:
    """It prints the five scores and starts nothing; with an agent each point needs words of the specification."""
    shown = g.rooda("goal", "score", "p95 latency <100ms", "--offline")
    assert shown.code == 0 and shown.lines[0].startswith("Outcome: 2/2") and not g.calls
    g.planned(9)
    found = json.loads(g.rooda("goal", "score", "Outcome two and nothing more", "--json").out)
    assert found["total"] == 2 and found["scores"]["outcome"]["score"] == 2 and not g.exists(".loop/state.json")


def test_C_033_C_048_intent_is_required(g: Goals) -> None:
    """Below 5 nothing starts: exit 3, the gaps and the five questions in a template, no state."""
    g.planned(4)
    ran = g.run()
    assert ran.code == 3 and "intent" in ran.err.lower() and g.kinds == ["plan"]
    assert not g.exists(".loop/state.json")
    assert all(f"## {field}" in g.read(".loop/intent.md") for field in ("TASK", "STAKES IF WRONG", "WHO REVIEWS"))
    assert g.run("--shape", "colleague").code == 4, "a person may say otherwise"


@pytest.mark.parametrize(
    "words, letter",
    [
        ("Add a search box", "A"),
        ("Implementing it", "A"),
        ("A new feature", "A"),
        ("The login is broken", "B"),
        ("Fixes it", "B"),
        ("Debugging", "B"),
        ("failing now", "B"),
        ("Clean up the parser", "C"),
        ("Please clean\n  up the failing parser", "C"),
        ("A new\nfeature, no error", "A"),
        ("Refactor it", "C"),
        ("Reorganize", "C"),
        ("Migrated", "C"),
        ("add error handling", "A"),
        ("use the fixture address", "A"),
        ("", "A"),
    ],
)
def test_C_035_C_036_C_037_C_038_C_039_the_workflow_is_in_the_words(words: str, letter: str) -> None:
    """The earliest indicator wins."""
    assert scoring.workflow(f"{words} {SPEC}") == letter


@pytest.mark.parametrize("words, letter, thought", [("Implementing it", "A", "C"), ("Fixes it", "B", "A")])
def test_C_035_C_039_the_workflow_is_announced(g: Goals, words: str, letter: str, thought: str) -> None:
    """The words decide, whatever the agent thinks."""
    g.planned(workflow=thought)
    ran = g.run("-n", "1", "--score", "2,2,2,2,1", spec=f"{words} {SPEC}")
    assert f"| Workflow: {letter} |" in ran.out


def test_C_036_a_build_needs_its_library_search(g: Goals) -> None:
    """Without evidence there is no start; --evidence gives it."""
    g.planned(workflow_gate={"kind": "library_search", "evidence": " "})
    assert g.run().code == 3
    assert g.run("--evidence", "No library exists because it is two lines.", "-n", "1").code == 4


@pytest.mark.parametrize(
    "gate, why",
    [
        ({"kind": "root_cause", "evidence": "this or that"}, "its kind is root_cause, not library_search"),
        ({"kind": "library_search", "evidence": "click"}, "names fewer than two candidates: click"),
    ],
)
def test_L_36_weak_evidence_is_asked_for_again(g: Goals, gate: dict[str, str], why: str) -> None:
    """With the reason; it is never taken with a warning. Debugging starts without a root cause, and says so."""
    g.planned(workflow_gate=gate)
    ran = g.run()
    assert (
        ran.code == 3
        and g.kinds == ["plan", "plan"]
        and "Not started: unclear: workflow gate (" in ran.err
        and f"{why}; needed: a library search" in ran.err
    ), ran.both
    assert why in g.calls[1].prompt.decode() and why not in g.calls[0].prompt.decode()
    g.planned(workflow_gate={"kind": "library_search", "evidence": "this or that"})
    debugging = g.run("-n", "1", "--workflow", "B")
    assert debugging.code == 4 and "The root cause is not known yet; the goal starts" in debugging.err, debugging.both
    assert g.private["evidence"] == "" and g.kinds[2:] == ["plan", "plan", "step"]


def test_L_34_a_plan_that_is_not_JSON_is_called_that(g: Goals) -> None:
    """In the second request, and in the refusal: no item of the specification is called unclear."""
    g.out("plan", "Sure! First I would look at the tests, then write the files.")
    ran = g.run()
    assert ran.code == 3 and g.kinds == ["plan", "plan"] and "unclear" not in ran.both, ran.both
    assert "Not started: the answer is not JSON" in ran.err
    assert "the answer is not JSON" in g.calls[1].prompt.decode()


@pytest.mark.parametrize("letter, words", [("A", "library search"), ("B", "root cause"), ("C", "Delete before")])
def test_C_040_the_workflow_steers_the_steps(g: Goals, letter: str, words: str) -> None:
    """Each step's prompt says how this kind of work is done."""
    g.planned(workflow_gate={"kind": scoring.GATE_OF[letter], "evidence": "this or that"})
    g.run("-n", "1", "--workflow", letter)
    assert words in g.calls[-1].prompt.decode()


def test_C_031_C_041_a_tool_asks_nothing(g: Goals) -> None:
    """Stdin is never read; the start line contains the example's; the output ends with the completion."""
    g.succeeds()
    ran = g.run(stdin=b"n\nn\nn\n")
    assert ran.code == 0 and "[LOOP] Starting | Shape: Tool (9/10) | Workflow: A | Steps: 3" in ran.out
    assert "</loop-complete>" in ran.lines and ran.out.count("[Y/n]") == 1


def test_a_debug_goal_without_root_cause_gets_it_from_its_first_step(g: Goals) -> None:
    """Until the cause is said the first step is not accepted; then it is in the prompts."""
    g.planned(workflow_gate=None)
    g.side("step", "touch a.ok")
    g.out("step-2", claim(False, "ROOT_CAUSE: the cache is stale, seen in the log"))
    ran = g.run("-n", "3", "--workflow", "B")
    assert "✗ step1 not complete" in ran.out and "✓ step1 complete" in ran.out
    assert "the cache is stale" in g.calls[-1].prompt.decode()


def test_C_007_C_070_C_078_a_second_goal_has_a_journal_of_its_own(g: Goals) -> None:
    """After a longer goal, completed or still there: one line for each of its iterations, and no word of the other."""
    g.succeeds()
    assert g.run().code == 0 and len(g.journal) == 4
    os.remove(g.file("a.ok"))
    for arguments in ([], ["--fresh"]):
        ran = g.run("-n", "1", *arguments, spec=f"{SPEC} Once more {arguments}.")
        assert ran.code == 4 and [record["iteration"] for record in g.journal] == [0, 1], ran.both
        assert {record["spec"] for record in g.journal} == {g.public["spec"]}
    forged = g.read(".loop/run.json").replace("test -f a.ok", "true")
    g.write(".loop/run.json", forged)
    again = g.go_on("--iterations", "1")
    assert again.code == 4 and [record["iteration"] for record in g.journal] == [0, 1, 2], again.both
    assert g.private["criteria"][0]["command"] == "test -f a.ok"


REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "unclear": ("no plan", {}),
    "too vague": (json.dumps(plan(4)), {}),
    "violated": (json.dumps(plan(mustNot=[{"text": "no toml", "violated_if": "test -f rooda.toml"}])), {}),
    "no attack": (json.dumps(plan(reversibility="1")), {}),
}


@pytest.mark.parametrize("why", REFUSED)
def test_C_097_a_refused_start_leaves_the_goal_that_is_there(g: Goals, why: str) -> None:
    """Nothing was started, so nothing is lost: the paused goal continues where it was."""
    g.side("step-1", "touch a.ok")
    assert g.run("-n", "1").code == 4
    before = {name: g.read(f".loop/{name}") for name in ("state.json", "run.json", "iterations.jsonl", "summary.md")}
    g.out("plan", REFUSED[why][0])
    refused = g.run("--fresh", spec=f"{SPEC} Again.")
    assert refused.code == 3, refused.both
    assert {name: g.read(f".loop/{name}") for name in before} == before and g.exists(f".loop/evidence/1-{A}.txt")
    again = g.go_on("--iterations", "1")
    assert again.code == 4 and "Iteration 2/2 | Cost: $?/$25 | Step: step2" in again.out, again.both


def test_CA_19_a_completed_goal_is_kept_until_another_one_begins(g: Goals) -> None:
    """A start over it that is refused, or interrupted while it is planned, leaves its state and its summary."""
    g.succeeds()
    assert g.run().code == 0
    before = g.public, g.read(".loop/summary.md")
    g.out("plan", "no plan")
    assert g.run().code == 3 and (g.public, g.read(".loop/summary.md")) == before
    g.signal_at("plan")
    assert g.run().code == 130 and (g.public, g.read(".loop/summary.md")) == before


def test_CA_19_a_start_that_ends_in_its_baseline_has_not_begun(g: Goals) -> None:
    """A signal while the baseline is checked: a loop doesn't start on half a baseline."""
    g.succeeds()
    assert g.run().code == 0
    before = g.public, g.read(".loop/summary.md")
    checks = [{"name": "first", "command": "kill -INT $PPID; sleep 9"}, {"name": "second", "command": "touch looked"}]
    g.planned(criteria=checks, steps=["step1"])
    ran = g.run()
    assert ran.code == 130 and "[LOOP] Starting" not in ran.out and not g.exists("looked"), ran.both
    assert "nothing to resume" in ran.err
    assert (g.public, g.read(".loop/summary.md")) == before and g.go_on().code == 2


def test_of_an_earlier_goal_s_reports_nothing_is_left(g: Goals) -> None:
    """Evidence, summary and pre-check that the new goal has not written itself are gone once it has begun."""
    g.planned(reversibility="1")
    g.out("precheck", ATTACK)
    g.run("-n", "1")
    assert g.exists(".loop/precheck.md") and g.exists(f".loop/evidence/1-{A}.txt")
    g.planned(criteria=[{"name": "other", "command": "true"}], steps=["step1"])
    g.side("step-1", "test ! -e .loop/summary.md && touch cleared")
    g.run("--fresh", "-n", "1")
    assert g.exists("cleared") and not g.exists(".loop/precheck.md")
    assert g.evidence() == ["0-other.txt", "1-other.txt"]


def test_L_31_a_missing_root_cause_is_said(g: Goals) -> None:
    """On the screen, in status, in why and in the next prompt, also when the goal gives up; no criterion is blamed."""
    g.planned(workflow_gate=None, steps=[{"name": "find it"}, {"name": "fix it", "criteria": [A, B]}])
    ran = g.run("-n", "8", "--workflow", "B")
    said = "No root cause is known yet"
    assert ran.lines.count(f"{said}: the next step must name it, in a line ROOT_CAUSE: cause") == 7, ran.both
    assert "[LOOP] ⏸ Paused: no root cause 5x: find it" in ran.lines and "same criteria" not in ran.both
    assert "NEXT: Find the root cause" in ran.lines and said in g.calls[-1].prompt.decode()
    assert "  Root cause: not known yet" in g.rooda("goal", "status").lines
    assert "no root cause is known yet" in g.rooda("why", "goal").out


def test_C_037_CA_24_without_a_root_cause_nothing_is_complete(g: Goals) -> None:
    """All criteria hold and completion is claimed: not before the cause was said; the next prompt asks for it."""
    g.planned(workflow_gate=None)
    g.side("step-1", "touch a.ok b.ok")
    g.claims(True)
    ran = g.run("-n", "2", "--workflow", "B")
    assert ran.code == 4 and "<loop-complete>" not in ran.out and "✗ step1 not complete" in ran.out, ran.both
    assert "Say the root cause" in g.calls[-1].prompt.decode()
    g.out("step", claim(True, "ROOT_CAUSE: the cache is stale, seen in the log"))
    assert g.go_on("--iterations", "1").code == 0
