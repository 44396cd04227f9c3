"""Rows C-091 to C-097 and C-107: every breaker pauses with its reason, and continue continues."""

import json
import os

import pytest

from rooda.loops.goal.watched_files import Watch
from tests.kit.goal import SPEC, A, B, Goals, blocks, claim, plan
from tests.kit.workspace import FAKE_AI

PAUSE = "sleep 0.6"  # until rooda has looked, on a busy machine too


def paused(ran: object, reason: str) -> bool:
    return getattr(ran, "code", 0) == 4 and f"[LOOP] ⏸ Paused: {reason}" in getattr(ran, "lines", [])


def varied(g: Goals) -> None:
    """Never succeeds, with another error each time."""
    g.side("step", 'printf "Error: %s\\n" "$(echo $ROODA_ITERATION | tr 123456789 abcdefghi)" >&2; exit 1')


def test_C_091_C_097_same_criteria_unmet_five_times(g: Goals) -> None:
    """The sixth iteration with the same set opens the circuit; continue begins a new count at the same step."""
    varied(g)
    ran = g.run()
    assert paused(ran, "same criteria unmet 5x: tests pass, lint clean") and len(g.calls) == 7
    assert g.public["circuitBreaker"] == {"stuckCount": 5, "lastUnmet": A}
    assert json.loads(g.rooda("goal", "stop-check").out)["ok"] is True
    again = g.go_on("--iterations", "1")
    assert "Iteration 7/11 | Cost: $?/$25 | Step: step1" in again.out
    assert [stuck for _, _, stuck, _ in blocks(again.out)] == [1, 2, 3, 4, 5] and len(g.calls) == 12


def test_C_092_same_error_three_times(g: Goals) -> None:
    """The agent's last error line, three times in a row; the reason quotes it."""
    g.side("step", 'echo "Error: no such table (took $ROODA_ITERATION.5s)" >&2; exit 1')
    ran = g.run()
    assert paused(ran, "same error 3x: exit 1: Error: no such table (took 3.5s)") and len(g.calls) == 4
    assert g.go_on().code == 4 and len(g.calls) == 7


def test_C_092_with_one_exit_code_for_every_call(g: Goals) -> None:
    """Even the plan call ends badly, and its plan is a plan all the same."""
    g.side("step", "echo boom >&2")
    ran = g.run(env={"FAKE_EXIT": "1"})
    assert paused(ran, "same error 3x: exit 1: boom") and g.kinds == ["plan", "step", "step", "step"]


def test_C_092_checks_of_the_current_step_count_too(g: Goals) -> None:
    """The same failing output of this step's check; what later steps' checks say does not."""
    g.planned(criteria=[
        {"name": "tests pass", "command": "echo 'E   assert 1 == 2'; test -f a.ok"},
        {"name": "lint clean", "command": "echo 'Error: lint'; false"},
    ])  # fmt: skip
    assert paused(g.run(), "same error 3x: E   assert 1 == 2") and len(g.calls) == 4


@pytest.mark.parametrize("times", [4, 5])
def test_C_093_same_file_five_times(g: Goals, times: int) -> None:
    """Five writes of one file that rooda sees pause after the iteration, four do not; the start says how it counts."""
    loop = " ".join(map(str, range(times)))
    g.side("step-1", f"for i in {loop}; do echo $i >x.txt; echo $i >>y-$i.txt; {PAUSE}; done; touch a.ok")
    ran = g.run("-n", "2")
    assert "File edits are counted by: polling (at least)" in ran.lines
    if times == 5:
        assert paused(ran, "same file edits 5x: x.txt (at least 5x)") and len(g.calls) == 2
        assert g.go_on().code == 4 and "step2" in g.calls[2].prompt.decode()
    else:
        assert paused(ran, "iteration limit: 2")


def test_C_093_a_burst_counts_at_least_once(g: Goals) -> None:
    """What is written faster than rooda looks is counted less often, but it is counted."""
    g.side("step-1", "for i in 1 2 3 4 5; do echo $i >x.txt; done; mkdir -p new; echo 1 >new/y.txt")
    g.run("-n", "1")
    edits = next(event for event in g.events() if event["event"] == "iteration.ended")["edits"]
    assert 1 <= edits.pop("x.txt") <= 5 and edits == {"new/y.txt": 1}


def test_C_093_ignored_files_do_not_count(g: Goals) -> None:
    """What git ignores, locks, and what rooda keeps may be written as often as one likes."""
    g.git("init", "-q")
    g.write(".gitignore", "out/\n*.log\n")
    often = "for i in 1 2 3 4 5 6; do echo $i >run.log; echo $i >out/o; echo $i >x.lock; echo $i >.loop/junk;"
    often += " for f in package-lock.json pnpm-lock.yaml go.sum; do echo $i >$f; done; done"
    g.side("step-1", f"mkdir out; {often}")
    assert paused(g.run("-n", "1"), "iteration limit: 1")


def test_C_093_the_agent_s_stream_is_believed_first(g: Goals) -> None:
    """An agent whose output names its edits: they are counted, the process that wrote them."""
    g.config(f'[goal]\nagent = "c"\n[agents.c]\ncommand = "{FAKE_AI}"\noutput = "claude"\n')
    edit = {"type": "tool_use", "name": "Edit", "input": {"file_path": "src/app.py"}}
    lines = [json.dumps({"type": "assistant", "message": {"content": [edit]}})] * 5
    result = {"type": "result", "is_error": False, "result": claim(False), "total_cost_usd": 0.25}
    g.out("step", "\n".join([*lines, json.dumps(result), ""]))
    g.out("plan", json.dumps({**result, "result": json.dumps(plan(9))}))
    ran = g.run()
    assert paused(ran, "same file edits 5x: src/app.py (5x)")
    assert "File edits are counted by: the agent's event stream, else polling (at least)" in ran.lines
    assert "Iteration 1/10 | Cost: $0.25/$25" in ran.out and g.private["cost"] == 0.5


@pytest.mark.parametrize(
    "other, reason", [("../seen/src/app.py", "same file edits 5x: src/app.py (5x)"), (".loop/x", "iteration limit: 1")]
)
def test_C_093_the_stream_s_paths_are_those_of_the_workspace(g: Goals, other: str, reason: str) -> None:
    """Whole, short and through a link: one file. What is ours counts for nothing, the process that counted."""
    g.config(f'[goal]\nagent = "c"\n[agents.c]\ncommand = "{FAKE_AI}"\noutput = "claude"\n')
    os.symlink(g.path, g.file("../seen"))
    paths = [other, other, other, g.file(other), g.file("src/app.py" if "src" in other else other)]
    edits = [{"type": "tool_use", "name": "Edit", "input": {"file_path": path}} for path in paths]
    lines = [json.dumps({"type": "assistant", "message": {"content": [edit]}}) for edit in edits]
    result = {"type": "result", "is_error": False, "result": claim(False), "total_cost_usd": 0.25}
    g.out("step", "\n".join([*lines, json.dumps(result), ""]))
    g.out("plan", json.dumps({**result, "result": json.dumps(plan(9))}))
    assert paused(g.run("-n", "1"), reason)


def test_C_093_polling_is_a_lower_bound(tmp_path: object) -> None:
    """Writes between two looks count once."""
    watch = Watch(str(tmp_path))
    watch.begin()
    for number in range(6):
        with open(os.path.join(str(tmp_path), "x"), "w", encoding="ascii") as file:
            file.write("x" * number)
        if number % 2:
            assert watch.counts() == {"x": number // 2 + 1}


def envelope(text: str, cost: float) -> str:
    return json.dumps({"type": "result", "is_error": False, "result": text, "total_cost_usd": cost}) + "\n"


def test_C_094_the_budget(g: Goals) -> None:
    """Nine dollars a call: paused after the third, 27 of 25; an added amount continues, nothing else does."""
    g.out("plan", envelope(json.dumps(plan(9)), 9.0))
    g.out("step", envelope(claim(False), 9.0))
    ran = g.run()
    assert paused(ran, "budget exceeded: $27.00/$25") and len(g.calls) == 3
    assert "[LOOP] Iteration 2/10 | Cost: $18.00/$25 | Step: step1" in ran.lines
    assert "Resume: rooda goal continue --budget=25" in ran.lines
    assert g.go_on().code == 4 and len(g.calls) == 3
    more = g.go_on("--budget=25")
    assert "Budget: $50" in more.lines and paused(more, "budget exceeded: $54.00/$50") and len(g.calls) == 6
    assert g.go_on("--budget=60").code == 2, "more than 100 in all"


def test_C_094_a_plan_that_uses_up_the_budget(g: Goals) -> None:
    """The check comes after every call: no iteration is begun."""
    g.out("plan", envelope(json.dumps(plan(9)), 25.0))
    assert paused(g.run(), "budget exceeded: $25.00/$25") and g.kinds == ["plan"]


def test_C_095_C_097_the_iteration_limit(g: Goals) -> None:
    """Ten steps, then a pause; continue grants as many again."""
    g.side("step-1", "touch a.ok b.ok")
    ran = g.run()
    assert paused(ran, "iteration limit: 10") and g.kinds == ["plan"] + ["step"] * 10
    g.claims(True)
    again = g.go_on()
    assert again.code == 0 and "[LOOP] Iteration 11/20 | Cost: $?/$25 | Step: Confirm completion" in again.lines


def test_the_last_iteration_may_still_finish(g: Goals) -> None:
    """Limit and completion in the same iteration: it is complete."""
    g.succeeds()
    assert g.run("-n", "3").code == 0


@pytest.mark.parametrize(
    "arguments, code",
    [
        (["-n", "51"], 2),
        (["--budget", "101"], 2),
        (["--budget=nan"], 2),
        (["--budget=inf", "--force-limits"], 2),
        (["-n", "51", "--force-limits"], 4),
        (["--budget=0"], 2),
    ],
)
def test_C_107_limits_are_the_user_s(g: Goals, arguments: list[str], code: int) -> None:
    """Defaults are defaults; above 50 and 100 it must be meant."""
    varied(g)
    first = g.run(*arguments)
    assert first.code == code and "Traceback" not in first.err
    assert code == 4 or not g.exists(".loop/run.json")
    assert "-n" in arguments or g.go_on(*arguments).code == 2
    ran = g.run("--iterations=2", "--budget=12.5", "--fresh")
    assert (
        paused(ran, "iteration limit: 2")
        and "| Budget: $12.50" in ran.out
        and "Iteration 1/2 | Cost: $?/$12.50" in ran.out
    )


def test_C_107_limits_in_settings_and_environment(g: Goals) -> None:
    """[goal] and the variables, the typed one first."""
    g.config(f"{g.read('rooda.toml')}max_iterations = 3\nbudget = 7\n")
    varied(g)
    ran = g.run()
    assert paused(ran, "same error 3x") or paused(ran, "iteration limit: 3")
    assert "| Budget: $7" in ran.out
    assert "| Budget: $8" in g.run("--fresh", env={"LOOP_BUDGET": "8", "ROODA_GOAL_MAX_ITERATIONS": "1"}).out
    assert paused(g.run("--fresh", "-n", "2", env={"LOOP_MAX_ITERATIONS": "1"}), "iteration limit: 2")


def test_a_changed_shape_file_pauses(g: Goals) -> None:
    """If SHAPE.md changes during a call, the user decides; --reload-shape reads it again."""
    g.write(".loop/shape/SHAPE.md", f"criteria:\n- {A}\n")
    g.side("step-1", "touch a.ok; echo '- extra' >>.loop/shape/SHAPE.md")
    ran = g.run()
    assert paused(ran, "SHAPE.md changed") and "Resume: rooda goal continue --reload-shape" in ran.lines
    g.go_on("--reload-shape", "--iterations", "1")
    assert "extra" in g.public["criteria"]


def test_C_020_C_022_CU_28_a_shape_file_that_is_read_again_counts_before_anything_is_done(g: Goals) -> None:
    """Types are the file's at once; what must not be and is costs no call, one that was repaired holds no one up."""
    text = f"criteria:\n- {A}\n- seen\nmustNot:\n- no bad (violated_if: `test -f %s`)\nverification:\n  seen: %s\n"
    g.write(".loop/shape/SHAPE.md", text % ("bad", "observation"))
    g.run("-n", "1")
    assert g.public["criteriaStatus"]["seen"]["verification"] == "observation"
    g.write(".loop/shape/SHAPE.md", text % ("rooda.toml", "`test -f s`"))
    assert paused(g.go_on("--reload-shape"), "mustNot: no bad") and g.kinds == ["plan", "step"]
    assert g.public["criteriaStatus"]["seen"]["verification"] == "execution output"
    g.write(".loop/shape/SHAPE.md", text % ("bad", "`test -f s`"))
    assert paused(g.go_on("--reload-shape"), "iteration limit: 2") and g.kinds == ["plan", "step", "step"]


def test_C_020_CU_28_a_changed_verification_opens_the_criterion(g: Goals) -> None:
    """A criterion that was met by a command is open once the file has it observed."""
    g.write(".loop/shape/SHAPE.md", f"criteria:\n- {A}\n")
    g.side("step-1", "touch a.ok")
    g.run("-n", "1")
    assert g.public["criteriaStatus"][A] == {"met": True, "verification": "execution output"}
    g.write(".loop/shape/SHAPE.md", f"criteria:\n- {A}\nverification:\n  {A}: observation\n")
    g.go_on("--reload-shape", "--iterations", "1")
    assert g.public["criteriaStatus"][A] == {"met": False, "verification": "observation"}


def test_CU_11_CA_34_the_resume_names_the_step_that_comes(g: Goals) -> None:
    """All steps are done and a criterion is open: the step for it, not the confirmation."""
    g.planned(steps=["step1"])
    g.side("step-1", "touch a.ok")
    g.run("-n", "1")
    ran = g.go_on()
    assert f"Next: Satisfy: {B}" in ran.lines and f"Step: Satisfy: {B}" in ran.out


def test_CA_34_C_073_planned_names_that_look_generated(g: Goals) -> None:
    """A second step for `a` is not one for the criterion `a (2)`, and a planned step is prompted by its own name."""
    criteria = [{"name": "a", "command": "test -f a"}, {"name": "a (2)", "command": "true"}]
    g.planned(criteria=criteria, steps=["Satisfy: a", {"name": "Confirm completion", "criteria": ["a (2)"]}])
    ran = g.run("-n", "3")
    assert "[LOOP] ✗ Satisfy: a (3) not complete | Progress: 2/3 | Next: Satisfy: a (3)" in ran.lines, ran.out
    assert "\nConfirm completion\n" in g.calls[2].prompt.decode()


def test_an_agent_that_cannot_be_started_any_more_fails_the_goal(g: Goals) -> None:
    """Its program is gone after the first call: status failed, exit 1."""
    agent = g.write("agent.sh", f'#!/bin/sh\n"{FAKE_AI}"\n', mode=0o755)
    g.side("step-1", f"rm {agent}")
    ran = g.run("--ai-cmd", agent)
    assert ran.code == 1 and g.public["status"] == "failed" and "can't be run" in ran.out


def test_run_on_top_of_an_unfinished_goal_is_refused(g: Goals) -> None:
    """Exit 3 and the three ways on; --fresh starts over."""
    g.run("-n", "1")
    ran = g.run()
    assert ran.code == 3 and "rooda goal continue" in ran.err and len(g.calls) == 2
    assert g.run("--fresh", "-n", "1").code == 4


def test_two_goals_in_one_workspace_are_refused(g: Goals) -> None:
    """The lock of a live one."""
    g.side("step-1", "until [ -e go ]; do sleep 0.02; done")
    running = g.start("goal", "run", SPEC, "-n", "1")
    g.wait_calls(2)
    assert g.run().code == 3 and g.go_on().code == 3
    g.write("go", "")
    assert running.finish() == 4


def test_ctrl_c_pauses_and_the_step_is_repeated(g: Goals) -> None:
    """Not counted: exit 130, reason interrupted, the same step again."""
    g.signal_at(2)
    ran = g.run()
    assert ran.code == 130 and "[LOOP] ⏸ Paused: interrupted" in ran.lines
    assert "Resume: rooda goal continue" in ran.lines and g.public["iteration"] == 0
    assert (g.public["status"], g.private["reason"]) == ("paused", "interrupted")
    g.go_on("--iterations", "1")
    assert g.calls[2].env["ROODA_ITERATION"] == "1" and "step1" in g.calls[2].prompt.decode()


def test_a_hanging_check_counts_as_not_met(g: Goals) -> None:
    """Ended at its time limit, kept as evidence; the loop continues."""
    g.config(f"{g.read('rooda.toml')}verify_timeout = 0.2\nkill_grace = 0.1\n")
    g.planned(criteria=[{"name": "slow", "command": "sleep 60"}], steps=["step1"])
    assert paused(g.run("-n", "1"), "iteration limit: 1")
    assert "result: timeout" in g.read(".loop/evidence/1-slow.txt")
