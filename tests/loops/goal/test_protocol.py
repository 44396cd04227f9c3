"""Rows C-070 to C-090: the protocol of an iteration, its status block, the update of the state."""

import json
import os
import signal

import pytest

from tests.kit.goal import SPEC, A, B, Goals, blocks, claim, plan
from tests.kit.processes import until


def test_C_070_a_deleted_journal_begins_again_from_the_state(g: Goals) -> None:
    """Deleted in call 2: afterwards it has the state before and one line for each iteration since."""
    g.side("step-2", "rm .loop/iterations.jsonl")
    g.run("-n", "3")
    assert [record["iteration"] for record in g.journal] == [1, 2, 3]


@pytest.mark.parametrize("damage", ["", "rm .loop/state.json", ": >.loop/state.json", "echo '{' >.loop/run.json"])
def test_C_071_a_goal_continues_after_kill_9(g: Goals, damage: str) -> None:
    """Killed in iteration 2, files damaged or not: the second step again, and the dead call's edits are named."""
    g.succeeds()
    g.side("3", "echo x >half.txt; echo >started; sleep 60 & wait")
    running = g.start("goal", "run", SPEC)
    until(lambda: g.exists("started"), what="the second step")
    running.signal(signal.SIGKILL)
    running.finish()
    until(lambda: not g.leftovers(), what="nobody left")
    if damage:
        os.system(f"cd {g.path} && {damage}")
    ran = g.go_on()
    assert ran.code == 0, ran.both
    assert (
        ran.lines[0] == "[LOOP RESUME] Active loop detected"
        and "Iteration 2/10 | Cost: $?/$25 | Step: step2" in ran.out
    )
    assert [record["iteration"] for record in g.journal] == [0, 1, 2, 3]
    if not damage:
        assert "half.txt" in g.calls[3].prompt.decode()


def test_C_072_C_098_announced_before_the_call(g: Goals) -> None:
    """The line is on the screen when the call begins, with number, limit, cost, budget and step."""
    g.config(f"{g.read('rooda.toml')}cost_per_call = 0.5\n")
    g.side("step-1", "until [ -e go ]; do sleep 0.02; done")
    running = g.start("goal", "run", SPEC, "-n", "2")
    assert running.wait_line("Iteration 1/2") == "[LOOP] Iteration 1/2 | Cost: $0.50/$25 | Step: step1"
    g.write("go", "")
    assert running.finish() == 4
    assert "[LOOP] Iteration 2/2 | Cost: $1.00/$25 | Step: step1" in running.lines


def test_L_32_L_37_the_prompt_shows_the_whole_work(g: Goals) -> None:
    """All steps, the commands of the criteria that are open, never those of holdouts; and whose the state files are."""
    hidden = {"name": "unseen", "command": "test -f c.ok", "holdout": True}
    g.planned(criteria=[*plan()["criteria"], hidden])
    g.side("step-1", "touch a.ok")
    g.run("-n", "2")
    prompt = g.calls[2].prompt.decode()
    assert "1. (done) step1\n2. (this step) step2\n3. (later) step3\n" in prompt
    assert f"- [x] {A}\n- [ ] {B}: verified by `test -f b.ok`\n" in prompt and "c.ok" not in prompt
    assert "`.loop/state.json` and `.loop/run.json` are the loop's own files, read-only for you" in prompt


def test_C_073_the_prompt_carries_one_step(g: Goals) -> None:
    """One step is to be done, the later ones are only listed (L-32); the first line says which call it is."""
    g.run("-n", "1")
    prompt = g.calls[1].prompt.decode()
    assert "## Your step\n\nstep1\n" in prompt and "1. (this step) step1\n2. (later) step2\n3. (later) step3" in prompt
    assert [call.prompt.decode().splitlines()[0] for call in g.calls] == ["ROODA_CALL=plan", "ROODA_CALL=step"]
    env = g.calls[1].env
    assert (env["ROODA_ITERATION"], env["ROODA_LOOP"]) == ("1", "goal") and env["ROODA_RUN"]


def test_C_074_C_084_the_affected_criteria_are_verified(g: Goals) -> None:
    """Those of the step and those met before; all of them only at the end."""
    g.planned(
        criteria=[
            {"name": A, "verification": "execution output", "command": "echo a >>log; test -f a.ok"},
            {"name": B, "verification": "execution output", "command": "echo b >>log; test -f b.ok"},
        ]
    )
    g.side("step", 'echo "$ROODA_ITERATION" >>log')
    g.succeeds()
    assert g.run().code == 0
    assert g.read("log").split() == [*"ab", "1", "a", "2", "a", "3", *"ab", *"ab"]


def test_C_075_C_085_status_follows_the_real_results(g: Goals) -> None:
    """From fail to pass and back: the value follows, in state and block."""
    g.keeps_copies()
    g.side("step-1", "touch a.ok")
    g.side("step-2", "rm a.ok")
    ran = g.run("-n", "3")
    assert [copy["criteriaStatus"][A] for copy in g.copies.values()] == [False, True, False]
    assert [criteria[A] for _, criteria, _, _ in blocks(ran.out)] == [True, False, False]


EXPECTED = [
    ("echo took 0.05", "< 0.1", True),
    ("echo took 0.5", "< 0.1", False),
    ("echo 12 of 12 passed", r"(\d+) of \1", True),
    ("echo 3 of 12 passed", r"(\d+) of \1", False),
    ("echo none", "< 1", False),
    ("echo .25", "< 0.3", True),
    ("echo .25", "> 1", False),
    ("echo lines 10-20", "< 5", False),
    ("echo 0.5", "< 1e-3", False),
    ("echo 0.5", ">= .5", True),
    ("echo 50 MB/s", "> 40 MB/s", True),
    ("echo off by -7", "< 0", True),
    ("exit 1", "", False),
    ("true", "", True),
]


def test_C_085_pattern_and_number(g: Goals) -> None:
    """An expectation is a regular expression on the output, or a bound on its last number."""
    names = [f"{command} | {expect or 'nothing'}" for command, expect, _ in EXPECTED]
    rows = list(zip(names, EXPECTED, strict=True))
    criteria = [{"name": name, "command": command, "expect": expect} for name, (command, expect, _) in rows]
    g.planned(criteria=criteria, steps=["step1"])
    g.run("-n", "1")
    assert g.public["criteriaStatus"] == {name: met for name, (_, _, met) in rows}


def test_C_077_C_079_one_exact_block_per_iteration(g: Goals) -> None:
    """Six lines in order, for good and failed iterations alike."""
    g.exits(0, 0, 7)
    g.side("step-1", "touch a.ok")
    ran = g.run("-n", "3")
    assert len(blocks(ran.out)) == 3 and ran.out.count("---LOOP_STATUS---") == 3
    at = ran.lines.index("---LOOP_STATUS---")
    assert ran.lines[at : at + 6] == [
        "---LOOP_STATUS---",
        "EXIT_SIGNAL: false",
        'CRITERIA: {"tests pass": true, "lint clean": false}',
        "STUCK_COUNT: 0",
        "NEXT: step2",
        "---END_STATUS---",
    ]


def test_C_078_one_journal_line_per_iteration(g: Goals) -> None:
    """State, step, cost, evidence and the agent's claim in each; as many lines as iterations and one."""
    g.succeeds()
    ran = g.run()
    assert ran.code == 0 and len(g.journal) == 4
    assert [record["step"] for record in g.journal] == ["", "step1", "step2", "step3"]
    assert g.journal[3]["evidence"][B] == f".loop/evidence/3-{B}.txt" and g.journal[3]["claimed"] is True
    assert {key: g.journal[3][key] for key in g.public} == g.public
    assert g.evidence()[-2:] == [f"3-{B}.txt", f"3-{A}.txt"]
    assert "command: test -f b.ok" in g.read(f".loop/evidence/3-{B}.txt")


def test_C_080_C_081_C_082_C_090_the_block_is_the_file(g: Goals) -> None:
    """A reader that waits for the block finds the same in the file; true only at the good end."""
    g.keeps_copies()
    g.write(".loop/shape/SHAPE.md", f"criteria:\n- {A}\n")
    g.succeeds()
    ran = g.run()
    states = [*[g.copies[n] for n in (2, 3)], g.public]
    assert ran.code == 0 and len(blocks(ran.out)) == 3
    for (signal_, criteria, stuck, _), state in zip(blocks(ran.out), states, strict=True):
        assert criteria == {name: entry["met"] for name, entry in state["criteriaStatus"].items()}
        assert (signal_, stuck) == (state["exit_signal"], state["circuitBreaker"]["stuckCount"])
    order = [event["event"] for event in g.events() if event["event"] in ("state.saved", "iteration.ended")]
    assert order[-4:] == ["state.saved", "iteration.ended", "state.saved", "iteration.ended"]


def test_C_083_next_says_the_next_action(g: Goals) -> None:
    """The agent's word, the next step, the open criterion, none."""
    g.planned(steps=[{"name": "step1", "criteria": [A]}])
    g.side("step-1", "touch a.ok")
    g.out("step-1", claim(False, NEXT="look at beta"))
    g.side("step-3", "touch b.ok")
    g.out("step-3", claim(True))
    ran = g.run()
    assert ran.code == 0
    assert [word for *_, word in blocks(ran.out)] == ["look at beta", f"Satisfy: {B}", "none"]
    assert g.public["steps"] == ["step1", f"Satisfy: {B}"]


def test_C_087_another_set_restarts_the_count(g: Goals) -> None:
    """One criterion is met in iteration 3: 0, 1, 0."""
    g.side("step-3", "touch a.ok")
    assert [stuck for _, _, stuck, _ in blocks(g.run("-n", "3").out)] == [0, 1, 0]


def test_C_088_a_regression_in_the_final_sweep_keeps_it_open(g: Goals) -> None:
    """The last step breaks what the first one made: the signal stays false."""
    g.succeeds()
    g.side("step-3", "rm a.ok")
    ran = g.run("-n", "3")
    assert ran.code == 4 and g.public["exit_signal"] is False and g.public["criteriaStatus"] == {A: False, B: True}


def test_a_check_that_passes_once_only_does_not_pass_the_sweep(g: Goals) -> None:
    """All must be true in the same sweep."""
    once = "test -f a.ok && test $(wc -l <count || echo 0) -lt 2 ; r=$?; echo x >>count; exit $r"
    g.write("count", "")
    g.planned(criteria=[{"name": A, "command": once}], steps=[{"name": "step1", "criteria": [A]}])
    g.side("step-1", "touch a.ok")
    g.claims(True)
    ran = g.run("-n", "1")
    assert ran.code == 4 and "<loop-complete>" not in ran.out and g.public["criteriaStatus"] == {A: False}


def test_failing_evidence_reaches_the_next_prompt(g: Goals) -> None:
    """The end of the failing output of this step's own check, and of no other."""
    g.planned(
        criteria=[
            {"name": A, "command": "echo E   assert alpha == beta; exit 1"},
            {"name": B, "command": "printf 'other %s' words; exit 1"},
        ]
    )
    g.run("-n", "2")
    first, second = (call.prompt.decode() for call in g.calls[1:])
    assert "assert alpha == beta" in second and "other words" not in second
    assert "What failed the last time" not in first


def test_quotes_must_occur_in_the_spec(g: Goals) -> None:
    """Points whose words are not there are cut to nothing, whatever the agent thinks."""
    scores = {name: {"score": 2, "quote": "never said"} for name in plan()["scores"]}
    g.planned(scores=scores)
    ran = g.run()
    assert ran.code == 3 and "Total: 0/10 → Intent required" in ran.lines
    g.planned(scores={**scores, "scope": {"score": 2, "quote": "SCOPE\n two"}})
    assert "Total: 2/10" in g.run().out


def test_a_plan_file_needs_no_plan_call(g: Goals) -> None:
    """The same JSON by the user: the first call is the first step."""
    g.write("plan.json", json.dumps(plan(9)))
    g.succeeds()
    assert g.run("--plan", "plan.json").code == 0 and g.kinds == ["step"] * 3
