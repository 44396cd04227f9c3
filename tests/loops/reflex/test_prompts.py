"""L-10, L-14: what each phase's prompt says about the task and about the work of the phases before."""

from tests.kit.reflex import AUTH, ENDPOINTS, NAMING, TASK, Kit, checks, issue, issues, judged, words
from tests.kit.reflex_scenarios import by_iteration, script


def test_L_10_each_phase_knows_the_task_and_the_ideal_result(kit: Kit) -> None:
    """EVALUATE, CRITIQUE and REFINE get both; PRODUCE gets the active rules, and none of phase B in phase A."""
    script(kit, "T3")
    kit.answer("PREPARE.A.1", checks())
    kit.answer("EVALUATE.1", judged({ENDPOINTS: "fail", NAMING: "pass"}))
    kit.new(2, "--ideal-result", "A spec that a client can be made from")
    for phase in ("EVALUATE", "CRITIQUE", "REFINE"):
        task = f"## Task\n\n{TASK}\n\n## Ideal result\n\nA spec that a client can be made from\n"
        assert task in kit.prompt(phase), phase
    rules = kit.prompt("PRODUCE").partition("## Active rules")[2].partition("## Constraints")[0]
    assert ENDPOINTS in rules and NAMING in rules and AUTH not in rules


def test_L_14_the_second_plan_knows_what_refine_did(kit: Kit) -> None:
    """The issues of the last critique are listed as fixes, in iteration 1 none; a resumed PLAN gets the same input."""
    by_iteration(kit, "T2")
    kit.answer("CRITIQUE.1", issues(issue(ENDPOINTS, "Add GET /courses")))
    kit.kill_in("PLAN.i2.1", kit.said("PLAN.1"))
    assert kit.reflex("resume").code == 0
    first, second, again = (each["stdin"] for each in kit.started("PLAN"))
    assert "## Fixes already made" in first and "Add GET /courses" not in first and second == again
    fixes = second.partition("## Fixes already made")[2].partition("## Constraints")[0]
    assert ENDPOINTS in fixes and "Add GET /courses" in fixes
    assert kit.artifact == words("ENAD")
