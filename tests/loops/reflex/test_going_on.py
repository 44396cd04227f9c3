"""L-13: a loop goes on after its limit or stagnation, begins with an existing artifact, or insists on its threshold."""

import json

import pytest

from tests.kit.reflex import ALIAS, DESCR, ENDPOINTS, Kit, issue, issues, words
from tests.kit.reflex_scenarios import T, by_iteration, play
from tests.kit.workspace import Ran


@pytest.mark.parametrize("name, more", [("T3", 3), ("T5", 5)])
def test_L_13_R_240_a_resume_with_a_limit_goes_on(kit: Kit, name: str, more: int) -> None:
    """After the limit and after stagnation; the next iterations count from there, and the history can rebuild it."""
    by_iteration(kit, name)
    assert kit.new(T[name].maximum).code == 4
    number = kit.run["iteration"]
    ran = kit.reflex("resume", ALIAS)
    assert ran.code == 3 and f"rooda reflex resume {ALIAS} -n" in ran.err and "reflex new" in ran.err
    assert kit.reflex("resume", ALIAS, "-n", str(number)).code == 2
    kit.answer(f"PRODUCE.i{number + 1}.1", words("ENAD"))
    ran = kit.reflex("resume", "-n", str(number + more))
    assert (ran.code, kit.run["iteration"], kit.run["max_iterations"]) == (0, number + 1, number + more), ran.both
    assert kit.run["stop"]["reason"] == "threshold_reached" and kit.counts()["CRITIQUE"] == number
    assert kit.ev.count("run_started") == 2 and kit.ev[-1] == "stopped"
    before = kit.run
    kit.path("run.json").unlink()
    kit.reflex("resume", ALIAS)
    assert {**kit.run, "updated_at": ""} == {**before, "updated_at": ""}


def test_L_13_a_killed_loop_takes_a_new_limit(kit: Kit) -> None:
    """`resume -n` of an interrupted loop sets its limit; a limit below its iteration is refused."""
    by_iteration(kit, "T3")
    kit.kill_in("PLAN.i2.1", kit.said("PLAN.1"), 4)
    assert kit.reflex("resume", "-n", "1").code == 2
    assert kit.reflex("resume", "-n", "2").code == 4
    assert (kit.run["max_iterations"], kit.run["stop"]["reason"]) == (2, "iteration_limit")


def test_L_13_a_loop_begins_with_an_existing_artifact(kit: Kit) -> None:
    """The file is judged first: no PLAN, no PRODUCE; then it is refined like any other."""
    by_iteration(kit, "T2")
    kit.ws.write("draft.md", words("EN"))
    kit.answer("REFINE.i1.1", words("ENAD"))
    kit.answer("CRITIQUE.1", issues(issue("b.completeness.auth")))
    ran = kit.ws.rooda("reflex", "run", *kit.arguments(4)[2:], "--from", "draft.md", stdin=b"y\ny\n")
    assert ran.code == 0, ran.both
    assert kit.ev[:4] == ["run_started", "checks_prepared", "evaluation_done", "phase_switched"]
    assert kit.counts() == {"PREPARE": 3, "CRITIQUE": 1, "REFINE": 1, "PLAN": 1, "PRODUCE": 1}
    assert words("EN") in kit.prompt("CRITIQUE") and kit.artifact == words("ENAD")
    assert "Plan: none" in ran.out and kit.ws.read("draft.md") == words("EN")


@pytest.mark.parametrize("text", [None, " \n"])
def test_L_13_a_file_that_can_not_be_used(kit: Kit, text: str | None) -> None:
    """It is named, and nothing is started."""
    if text is not None:
        kit.ws.write("draft.md", text)
    ran = kit.new(4, "--from", "draft.md")
    assert ran.code == 2 and "--from draft.md" in ran.err and not kit.home.exists()


def test_L_13_strict_goes_on_while_only_warnings_remain(kit: Kit) -> None:
    """What ends as no_major_issues else goes on to the threshold; without progress it stagnates."""
    by_iteration(kit, "T4")
    kit.answer("CRITIQUE.1", issues(issue(DESCR)))
    kit.answer("PRODUCE.i2.1", words("ENAD"))
    ran = kit.new(4, "--strict")
    assert (ran.code, kit.run["stop"]["reason"], kit.run["iteration"]) == (0, "threshold_reached", 2), ran.both
    assert kit.run["criteria"]["strict"] is True and "Strict:" in ran.out
    kit.answer("PRODUCE.i2.1", words("ENA"))
    assert (
        _second(kit, "--strict").code == 4
        and "strict" in json.loads((kit.home / "two" / "run.json").read_text())["criteria"]
    )


def _second(kit: Kit, *more: str) -> Ran:
    kit.again()
    return kit.new(6, "--alias", "two", *more)


def test_L_13_without_strict_nothing_changes(kit: Kit) -> None:
    """T4 ends as no_major_issues, and its criteria have no further key."""
    play(kit, "T4")
    assert kit.run["stop"]["reason"] == "no_major_issues" and [*kit.run["criteria"]][-1] == "rules"
    assert ENDPOINTS in json.dumps(kit.run["criteria"])
