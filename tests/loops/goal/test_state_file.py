"""Rows C-049 to C-069: the state file, and the two conditions of the exit."""

import json
from typing import Any

import pytest

from rooda.loops.goal.rules import decide
from tests.kit.goal import A, B, Goals, blocks, claim

KEYS = ["spec", "criteria", "criteriaStatus", "exit_signal", "steps", "completedSteps", "remainingSteps", "iteration",
        "status", "circuitBreaker"]  # fmt: skip


def test_C_049_C_057_C_058_C_059_C_060_C_061_C_062_C_063_in_every_copy(g: Goals) -> None:
    """Present all the time, with exactly the schema's keys, and consistent in every copy."""
    g.keeps_copies()
    g.succeeds()
    assert g.run().code == 0
    copies = [*g.copies.values(), g.public]
    for number, copy in enumerate(copies):
        assert list(copy) == KEYS and list(copy["criteriaStatus"]) == copy["criteria"]
        assert copy["completedSteps"] + copy["remainingSteps"] == copy["steps"]
        assert copy["iteration"] == number
    assert [copy["status"] for copy in copies] == ["in_progress"] * 3 + ["completed"]
    assert [copy["exit_signal"] for copy in copies] == [False] * 3 + [True]
    assert [copy["completedSteps"] for copy in copies[:3]] == [[], ["step1"], ["step1", "step2"]]
    breakers = [(copy["circuitBreaker"]["stuckCount"], copy["circuitBreaker"]["lastUnmet"]) for copy in copies]
    assert breakers == [(0, ""), (0, B), (1, B), (0, "")]


def test_C_054_C_076_C_086_C_089_failed_iterations_are_written_too(g: Goals) -> None:
    """The agent exits 1 with another error each time: the copies count on, and so does stuckCount."""
    g.keeps_copies()
    g.side("step", 'echo "Error: number $ROODA_ITERATION x" | tr 1234567 abcdefg >&2; exit 1')
    ran = g.run("-n", "4")
    assert ran.code == 4 and [copy["iteration"] for copy in g.copies.values()] == [0, 1, 2, 3]
    assert [copy["circuitBreaker"]["stuckCount"] for copy in [*g.copies.values(), g.public]] == [0, 0, 1, 2, 3]
    assert [stuck for _, _, stuck, _ in blocks(ran.out)] == [0, 1, 2, 3]


@pytest.mark.parametrize("where", ["argument", "file"])
def test_C_055_the_spec_is_word_for_word(g: Goals, where: str) -> None:
    """Quotes, a line break and umlauts stay as they are."""
    spec = "Make \"alpha\"\n  and 'beta' für $HOME\t\\n. Outcome two, scope two, limits two, checks two, end one\n"
    if where == "file":
        g.write("spec.md", spec)
        g.rooda("goal", "run", "--file", "spec.md", "-n", "1")
    else:
        g.run("-n", "1", spec=spec)
    assert g.public["spec"] == spec and spec in g.calls[1].prompt.decode()


STATES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"criteriaStatus": {"a": True}, "exit_signal": True}, {"ok": True}),
    (
        {"criteriaStatus": {"a": True}, "exit_signal": False},
        {"ok": False, "reason": "criteria met but exit_signal not set - verify completion"},
    ),
    (
        {"criteriaStatus": {"a": False, "b": False}, "exit_signal": True},
        {"ok": False, "reason": "unmet criteria: a, b"},
    ),
    ({"criteriaStatus": {"a": True, "b": False}, "exit_signal": False}, {"ok": False, "reason": "unmet criteria: b"}),
    ({"criteriaStatus": {}, "exit_signal": True}, {"ok": False, "reason": "unmet criteria: "}),
    (
        {"criteriaStatus": {"a": False}, "circuitBreaker": {"stuckCount": 4}},
        {"ok": False, "reason": "unmet criteria: a"},
    ),
    (
        {"criteriaStatus": {"a": False}, "circuitBreaker": {"stuckCount": 5}},
        {"ok": True, "reason": "circuit breaker triggered after 5 stuck iterations"},
    ),
    ({"criteriaStatus": {"a": False}, "status": "cancelled"}, {"ok": True}),
    ({"criteriaStatus": {"a": False}, "status": "completed"}, {"ok": True}),
    (
        {"criteriaStatus": {"a": {"met": True, "verification": "assumption"}}, "exit_signal": True},
        {"ok": False, "reason": "criterion verified by assumption only - requires actual verification"},
    ),
    *(
        (
            {"criteriaStatus": {"a": {"met": True, **verification}, "b": True}, "exit_signal": True},
            {"ok": False, "reason": "criterion verified by assumption only - requires actual verification"},
        )
        for verification in ({"verification": "reasoned inference"}, {"verification": 3}, {})
    ),
    ({"criteriaStatus": {"a": {"met": True, "verification": "Code-Review"}}, "exit_signal": True}, {"ok": True}),
    (
        {"criteriaStatus": {"a": {"met": True, "verification": "observation"}, "b": True}, "exit_signal": True},
        {"ok": True},
    ),
]


@pytest.mark.parametrize("state, answer", STATES)
def test_C_064_C_065_C_096_the_stop_decision(state: dict[str, Any], answer: dict[str, Any]) -> None:
    """States and the hook's answers."""
    assert decide(state) == answer


@pytest.mark.parametrize("state, answer", STATES[:2])
def test_C_064_C_065_the_stop_command(g: Goals, state: dict[str, Any], answer: dict[str, Any]) -> None:
    """Hand-written files and the hook's answers."""
    g.write(".loop/state.json", json.dumps(state))
    ran = g.rooda("goal", "stop-check")
    assert (ran.code, json.loads(ran.out)) == (0, answer)


@pytest.mark.parametrize(
    "text, answer", [(None, {"ok": True}), ("{", None), ("[]", None), ("", None), ("1" * 9999, None)]
)
def test_C_064_the_stop_decision_without_a_usable_file(g: Goals, text: str | None, answer: Any) -> None:
    """Always valid JSON, always exit 0."""
    if text is not None:
        g.write(".loop/state.json", text)
    ran = g.rooda("goal", "stop-check")
    assert (ran.code, json.loads(ran.out)) == (0, answer or {"ok": True, "reason": "invalid state file"})


def test_C_066_criteria_alone_do_not_end_it(g: Goals) -> None:
    """Both hold from iteration 1 without a claim: it runs to the limit; the prompt says that all is verified."""
    g.side("step-1", "touch a.ok b.ok")
    ran = g.run("-n", "6")
    assert ran.code == 4 and "Paused: iteration limit: 6" in ran.out and "<loop-complete>" not in ran.out
    assert "All criteria are verified" in g.calls[5].prompt.decode()
    assert g.public["criteriaStatus"] == {A: True, B: True} and g.public["exit_signal"] is False


def test_C_067_a_claim_alone_does_not_end_it(g: Goals) -> None:
    """The claim is refused every time, and the next prompt says why."""
    g.claims(True)
    g.side("step-1", "touch a.ok")
    ran = g.run("-n", "4")
    assert ran.code == 4 and not any(signal for signal, *_ in blocks(ran.out)) and len(blocks(ran.out)) == 4
    assert "not accepted: these criteria do not hold: lint clean" in g.calls[3].prompt.decode()


def test_C_068_only_rooda_s_own_run_counts(g: Goals) -> None:
    """An agent that prints everything as true changes nothing."""
    g.out("step", claim(True).replace("{}", '{"tests pass": true, "lint clean": true}'))
    ran = g.run("-n", "2")
    assert g.public["criteriaStatus"] == {A: False, B: False} and "<loop-complete>" not in ran.out


@pytest.mark.parametrize("source", ["agent", "verified"])
@pytest.mark.parametrize("end", ["exit 3", "kill -9 $$", "echo 'claimed'; sleep 60"])
def test_CA_48_a_call_that_failed_claims_nothing(g: Goals, end: str, source: str) -> None:
    """All criteria hold and completion was claimed before it failed, was killed, or hung: the step is repeated."""
    g.config(f'{g.read("rooda.toml")}iteration_timeout = 1\nexit_signal_source = "{source}"\n')
    said = claim(True).replace("'", "")
    g.side("step-1", f"touch a.ok b.ok; cat <<'X'\n{said}\nX\n{end}")
    g.claims(True, "step-2")
    ran = g.run("-n", "1")
    assert ran.code == 4 and "<loop-complete>" not in ran.out, ran.both
    assert "[LOOP] ✗ step1 not complete | Progress: 0/3 | Next: step1" in ran.lines
    assert g.go_on().code == 0 and "The last call ended badly" in g.calls[2].prompt.decode()


def test_CA_40_the_line_of_the_last_step_agrees_with_the_end(g: Goals) -> None:
    """Steps used up, then claimed: no step is said not to be complete above a completion."""
    g.side("step-1", "touch a.ok b.ok")
    g.claims(False, "step-1", "step-2", "step-3")
    g.claims(True, "step-4")
    ran = g.run()
    assert ran.code == 0 and "✗" not in ran.out, ran.both
    assert "[LOOP] ✓ Confirm completion complete | Progress: 3/3 | Next: none" in ran.lines
    assert g.journal[-1]["outcome"] == "success"


@pytest.mark.parametrize("said", ["", "all done", "---LOOP_STATUS---\nEXIT_SIGNAL: maybe\n---END_STATUS---\n"])
def test_C_069_completion_is_signalled_explicitly(g: Goals, said: str) -> None:
    """No block, or a broken one: nothing is claimed, and the next prompt says so."""
    g.side("step", "touch a.ok b.ok")
    g.out("step", said)
    ran = g.run("-n", "4")
    assert ran.code == 4 and "<loop-complete>" not in ran.out and "status block" in g.calls[2].prompt.decode()


def test_the_source_of_the_signal_can_be_the_checks(g: Goals) -> None:
    """For an agent that can't be taught the block."""
    g.config(f'{g.read("rooda.toml")}exit_signal_source = "verified"\n')
    g.side("step", "touch a.ok b.ok")
    g.out("step", "")
    assert g.run().code == 0


@pytest.mark.parametrize("text", ["```\n{}\n```\n", "```text\nfirst\n```\n{}"])
def test_a_block_in_a_fence_counts_and_the_last_one_wins(g: Goals, text: str) -> None:
    """The earlier block claims nothing; the last one does."""
    g.side("step-1", "touch a.ok b.ok")
    g.out("step", claim(False) + text.format(claim(True)))
    assert g.run().code == 0
