"""R-160 to R-193: score, pass, flow, stops and stagnation, as the worked examples have them."""

import json
from fractions import Fraction
from typing import Any

import pytest

from rooda.loops.reflex.rules import active
from rooda.loops.reflex.scoring import (
    REFINE,
    STATUS_OF,
    SWITCH,
    Finding,
    Position,
    distance,
    evaluation,
    exact_score,
    hundredths,
    next_step,
)
from tests.kit.reflex import AUTH, DESCR, ENDPOINTS, NAMING, RS1, Kit, checks, checks_of, content, rule, traced, words
from tests.kit.reflex_scenarios import T, play, script


def judged(rules: list[dict[str, Any]], holding: set[str], threshold: float) -> dict[str, Any]:
    return evaluation(rules, {each["id"]: Finding(each["id"], each["id"] in holding, "d") for each in rules}, threshold)


A = active(RS1, "A")
E6 = [rule("a.x.f", "fail", 2), *(rule(f"a.x.w{n}", "warn", 1) for n in range(3))]
E7 = [rule("a.x.f", "fail", 2), *(rule(f"b.x.w{n}", "warn", 1) for n in range(20))]
E8 = [rule("a.x.i", "info", 0)]
E10 = [rule("a.x.f", "fail", 0.3), rule("a.x.g", "warn", 0.6), rule("a.x.h", "warn", 0.1)]
DOCS = [
    *(rule(f"a.x.{name}", severity) for name, severity in (("a", "fail"), ("b", "fail"), ("c", "warn"), ("d", "warn"))),
    *(rule(f"b.x.{name}", "warn") for name in "abcd"),
]
DOCS = [each | {"weight": {"fail": 2, "warn": 1}[each["severity"]]} for each in DOCS]
ALL = {each["id"] for each in (*RS1, *E6, *E7, *E8, *E10, *DOCS)}
EXAMPLES = {
    "e1": (A, {ENDPOINTS, NAMING}, 0.8, Fraction(1), True),
    "e2": (A, {ENDPOINTS}, 0.8, Fraction(2, 3), False),
    "e3": (A, {NAMING}, 0.8, Fraction(1, 3), False),
    "e4": (RS1, {ENDPOINTS, NAMING, AUTH}, 0.9, Fraction(5, 6), False),
    "e5": (RS1, {ENDPOINTS, NAMING, DESCR}, 0.9, Fraction(2, 3), False),
    "e6": (E6, ALL - {"a.x.w2"}, 0.8, Fraction(4, 5), True),
    "e7": (E7, ALL - {"a.x.f"}, 0.9, Fraction(20, 22), False),
    "e8": (E8, set(), 0.8, Fraction(1), True),
    "e9": (DOCS, ALL - {"b.x.a"}, 0.85, Fraction(9, 10), True),
    "e10": (E10, ALL - {"a.x.h"}, 0.9, Fraction(9, 10), True),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_R_162_R_163_R_164_R_165_R_168_worked_examples(name: str) -> None:
    """Score and pass, with exact fractions of the weights' texts."""
    rules, holding, threshold, score, passed = EXAMPLES[name]
    found = judged(rules, holding, threshold)
    assert (exact_score(rules, found), found["passed"]) == (score, passed)
    assert found["score"] == float(score)


def test_R_161_R_141_active_rules() -> None:
    """In A those of A, in B all."""
    assert [each["id"] for each in active(RS1, "A")] == [ENDPOINTS, NAMING] and active(RS1, "B") == RS1


def test_R_166_R_181_R_192_a_warning_does_not_block(kit: Kit) -> None:
    """T4 with max 1: completed by no_major_issues, not stopped by the limit."""
    assert play(kit, "T4", maximum=1).code == 0
    assert (kit.run["status"], kit.run["stop"]) == ("completed", {"passed": False, "reason": "no_major_issues"})


def test_R_167_info_is_tracked_only(kit: Kit) -> None:
    """A failing info rule changes neither score nor end; it is in the results as a warning of severity info."""
    kit.give_rules([*RS1, rule("a.note.info", "info", 0)])
    assert kit.new().code == 0
    found = kit.run["evaluation"]
    assert (found["score"], found["passed"]) == (1.0, True)
    assert {"id": "a.note.info", "severity": "info"}.items() <= found["warnings"][0].items()
    assert [each["verdict"] for each in found["rule_results"]][-1] == "warn"


def test_R_168_only_info_rules(kit: Kit) -> None:
    """No weight at all: the score is 1 and both phases pass."""
    kit.give_rules([rule("a.note.info", "info", 0)])
    assert kit.new().code == 0 and kit.run["last_score"] == 1.0


def test_R_165_R_214_blocked_over_the_threshold(kit: Kit) -> None:
    """20 of 22 with a failed fail rule: not passed, and the gap to 0.9 is 0."""
    kit.give_rules([rule("a.x.f", "fail", 2), *(rule(f"a.x.w{n}", "warn", 1) for n in range(20))])
    kit.answer("PRODUCE.1", " ".join(f"a.x.w{n}" for n in range(20)))
    ran = kit.new(1, "--threshold-a", "0.9")
    assert ran.code == 4 and "  gap to threshold: 0" in ran.lines
    assert "  failed rules that block: 1 (a.x.f)" in ran.lines
    assert "── Iteration 1/1 | Phase A | Score: 0.90 | FAIL ──" in ran.lines


def test_R_171_R_100_the_switch(kit: Kit) -> None:
    """PREPARE and EVALUATE again for B, on the same artifact; no PLAN, no PRODUCE."""
    play(kit, "T1")
    assert kit.counts() == {"PLAN": 1, "PRODUCE": 1, "PREPARE": 2}
    hashes = [e["payload"]["artifact_hash"] for e in kit.history if e["event"] == "evaluation_done"]
    assert len(hashes) == 2 and len(set(hashes)) == 1


def test_R_173_R_170_failed_in_B(kit: Kit) -> None:
    """T6: CRITIQUE and REFINE after the switch, then a whole iteration in B."""
    play(kit, "T6")
    assert traced(kit.ev) == T["T6"].trace
    assert kit.counts() == {"PLAN": 2, "PRODUCE": 2, "PREPARE": 3, "CRITIQUE": 1, "REFINE": 1}


def test_R_175_the_last_iteration_still_sees_B(kit: Kit) -> None:
    """T1 with max 1 completes; T6 with max 1 ends in B by the limit, with its distance to 0.9."""
    assert play(kit, "T1", maximum=1).code == 0
    kit.again()
    ran = play(kit, "T6", "--alias", "six", maximum=1)
    six = json.loads((kit.home / "six" / "run.json").read_text())
    assert (ran.code, six["phase"], six["stop"]["reason"]) == (4, "B", "iteration_limit")
    assert "  threshold: 0.9, final score: 0.66" in ran.lines


def position(level: str = "A", iteration: int = 1, maximum: int = 9, count: int = 0, before: str = "0") -> Position:
    return Position(level, iteration, maximum, count, Fraction(before))


NEXT = [
    ("B passed", position("B"), "1", True, False, "threshold_reached", 0),
    ("B passed in the last", position("B", 9), "1", True, False, "threshold_reached", 0),
    ("A passed", position(count=1), "1", True, False, SWITCH, 0),
    ("A passed in the last", position("A", 9), "1", True, False, SWITCH, 0),
    ("B, only warnings", position("B"), "5/6", False, False, "no_major_issues", 0),
    ("B, only warnings, the last", position("B", 9), "5/6", False, False, "no_major_issues", 0),
    ("B blocked", position("B"), "5/6", False, True, REFINE, 0),
    ("A, only warnings", position(), "2/3", False, False, REFINE, 0),
    ("A blocked, no gain", position(before="1/3"), "1/3", False, True, REFINE, 0),
    ("A blocked, count kept", position(before="1/3", count=1), "1/3", False, True, REFINE, 1),
    ("A, no gain", position(before="2/3"), "2/3", False, False, REFINE, 1),
    ("A, no gain twice", position(before="2/3", count=1), "2/3", False, False, "stagnation", 2),
    ("stagnation before limit", position("A", 9, 9, 1, "2/3"), "2/3", False, False, "stagnation", 2),
    ("limit", position("A", 9, 9, 0, "2/3"), "2/3", False, False, "iteration_limit", 1),
    ("limit, blocked", position("A", 9, 9, 0, "0"), "2/3", False, True, "iteration_limit", 0),
    ("a drop counts", position(before="0.7"), "0.6", False, False, REFINE, 1),
    ("0.02 is a gain", position(before="0.80"), "0.82", False, False, REFINE, 0),
    ("0.019 is none", position(before="0.80"), "0.819", False, False, REFINE, 1),
]


@pytest.mark.parametrize("case", NEXT, ids=[case[0] for case in NEXT])
def test_R_163_R_180_R_182_R_184_R_187_R_188_R_190_R_191_R_193_what_follows(case: tuple[Any, ...]) -> None:
    """Every combination of the rules in one table; turning one around is one line of one function."""
    _, where, now, passed, blocked, what, count = case
    assert next_step(where, Fraction(now), passed, blocked) == (what, count)


STAGNATION = {
    "s1": (["0.667"] * 3, "", [0, 1, 2]),
    "s2": (["0.333b"] * 4, "", [0, 0, 0, 0]),
    "s3": (["0.50", "0.52", "0.53", "0.53"], "", [0, 0, 1, 2]),
    "s4": (["0.50", "0.50", "0.60", "0.60"], "", [0, 1, 1, 2]),
    "s5": (["0.70", "0.60", "0.60"], "", [0, 1, 2]),
    "s6": (["0", "0"], "", [1, 2]),
    "s7": (["0.70", "0.70b", "0.70", "0.70"], "", [0, 0, 1, 2]),
    "s8": (["0.78", "0.79", "0.80p", "0.67B"], "", [0, 1, 0, 0]),
}


@pytest.mark.parametrize("name", STAGNATION)
def test_R_078_R_187_R_188_R_189_R_190_R_191_stagnation_examples(name: str) -> None:
    """The counts after each evaluation of the worked examples; two end the loop, and the last is where it ends."""
    scores, _, counts = STAGNATION[name]
    level, count, before = "A", 0, Fraction(0)
    for number, (text, wanted) in enumerate(zip(scores, counts, strict=True), 1):
        now, blocked, passed = Fraction(text.strip("bpB")), text[-1] in "bB", text.endswith("p")
        level = "B" if text.endswith("B") else level
        found = next_step(Position(level, number, 99, count, before), now, passed, blocked)
        assert found.stagnation_count == wanted, number
        assert (found.what == "stagnation") == (wanted == 2)
        count, before = found.stagnation_count, now


def test_R_188_R_190_exact_on_disk(kit: Kit) -> None:
    """0.80 to 0.82 is a gain of 0.02 and no stagnation, although binary floats say 0.0199…"""
    kit.give_rules([rule("a.x.a", "warn", 0.8), rule("a.x.b", "warn", 0.02), rule("a.x.c", "warn", 0.18)])
    texts = ["a.x.a", "a.x.a a.x.b", "a.x.a a.x.b"]
    for number, text in enumerate(texts, 1):
        kit.answer(f"PRODUCE.{number}", text)
    critique = {"rule_id": "a.x.c", "problem": "p", "fix_instruction": "f", "expected_effect": "e"}
    kit.answer("CRITIQUE.1", json.dumps({"issues": [critique]}))
    kit.new(3, "--threshold-a", "0.9")
    counts = [e["payload"]["stagnation_count"] for e in kit.history if e["event"] == "evaluation_done"]
    assert counts == [0, 0, 1]


def test_R_163_R_164_exact_threshold_on_disk(kit: Kit) -> None:
    """0.3 + 0.6 of 1.0 passes 0.9, although binary floats say 0.8999…"""
    kit.give_rules([rule("a.x.a", "warn", 0.3), rule("a.x.b", "warn", 0.6), rule("a.x.c", "warn", 0.1)])
    kit.answer("PRODUCE.1", "a.x.a a.x.b")
    assert kit.new(1, "--threshold-a", "0.9").code == 0


def test_R_182_the_limit(kit: Kit) -> None:
    """T3: the last iteration is evaluated, and neither criticised nor refined."""
    play(kit, "T3")
    assert kit.counts() == {"PLAN": 2, "PRODUCE": 2, "PREPARE": 2, "CRITIQUE": 1, "REFINE": 1}
    assert kit.ev.count("evaluation_done") == 2


def test_R_189_a_blocker_never_stagnates(kit: Kit) -> None:
    """T3 with max 6 runs to the limit with count 0."""
    assert play(kit, "T3", maximum=6).code == 4
    assert (kit.run["stop"]["reason"], kit.run["stagnation_count"], kit.run["iteration"]) == ("iteration_limit", 0, 6)


@pytest.mark.parametrize("maximum, reason, count", [(3, "stagnation", 2), (2, "iteration_limit", 1)])
def test_R_192_precedence(kit: Kit, maximum: int, reason: str, count: int) -> None:
    """Stagnation before the limit."""
    play(kit, "T5", maximum=maximum)
    assert (kit.run["stop"]["reason"], kit.run["stagnation_count"]) == (reason, count)


def test_R_193_not_passed_in_A_without_blockers(kit: Kit) -> None:
    """T5: it is criticised and refined."""
    play(kit, "T5")
    assert kit.counts()["CRITIQUE"] == kit.counts()["REFINE"] == 2


def test_R_186_R_062_the_status_map() -> None:
    """Six reasons, three words."""
    assert STATUS_OF == {
        "threshold_reached": "completed",
        "no_major_issues": "completed",
        "user_stop": "stopped",
        "iteration_limit": "stopped",
        "stagnation": "stopped",
        "phase_error": "failed",
    }


@pytest.mark.parametrize(
    "number, shown", [(1 / 3, "0.33"), (0.896, "0.89"), (1.0, "1.00"), (0, "0.00"), (0.29, "0.29"), (0.8999999, "0.89")]
)
def test_R_201_two_decimals_cut(number: float, shown: str) -> None:
    """A FAIL never shows the threshold."""
    assert hundredths(number) == shown


def test_R_213_distance() -> None:
    """Gap, blockers and progress of an evaluation."""
    found = judged(A, {NAMING}, 0.8)
    far = distance(found, 0.8, Fraction(1, 3))
    assert (far.blocking, far.passed_rules, far.total_rules) == ((ENDPOINTS,), 1, 2)
    assert far.gap == pytest.approx(0.4667, abs=1e-4)


def test_R_172_R_174_level_B_is_never_easier(kit: Kit) -> None:
    """A rule of A that fails only now fails phase B too: all rules of both phases count there."""
    script(kit, "T1")
    kit.answer("PREPARE.B.1", checks(*json.loads(checks_of(RS1, "B"))["checks"], content(ENDPOINTS, "MISSING")))
    assert kit.new(1).code == 4
    assert kit.run["evaluation"]["failed"][0]["id"] == ENDPOINTS and kit.artifact == words("ENAD")
