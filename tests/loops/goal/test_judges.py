"""Judges of a goal: what they are asked, what they are shown, and what a criterion may be called."""

import json

import pytest

from tests.kit.goal import Goals
from tests.kit.workspace import FAKE_AI

ANSWER = {"met": True, "quote": "the new line", "violated": []}
LONG = "for i in $(seq 2000); do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done"


def judging(g: Goals, keys: str = "must_not_judge = true", **answer: object) -> None:
    """A goal with keys of its own, whose judges all give this answer."""
    g.config(f"[goal]\nai_cmd = {json.dumps(FAKE_AI)}\n{keys}\n")
    g.out("judge", json.dumps({**ANSWER, **answer}))
    g.claims(True)


def prompts(g: Goals) -> list[str]:
    return [call.prompt.decode() for call in g.calls if call.kind == "judge"]


def test_a_criterion_may_be_named_mustNot(g: Goals) -> None:
    """`mustNot` is a name like any other: both judges are asked in one iteration."""
    judging(g)
    g.planned(criteria=[{"name": "mustNot", "verification": "code review"}], mustNot=["no gamma"], steps=["one"])
    g.side("step", "echo the new line >new.txt")
    ran = g.run()
    assert ran.code == 0 and "<loop-complete>" in ran.lines, ran.both
    assert ["- no gamma" in each for each in prompts(g)] == [True, False]


@pytest.mark.parametrize("name", ["seen True", "seen False"])
def test_a_criterion_may_be_called_as_an_observation_of_another(g: Goals, name: str) -> None:
    """What is kept of a judgement and of an observation has different names, however they are put together."""
    judging(g, 'observation_evidence = "file"')
    criteria = [{"name": name, "verification": "code review"}, {"name": "seen", "verification": "observation"}]
    g.planned(criteria=criteria, steps=["one"])
    g.side("step", "echo the new line >new.txt")
    g.claims(name == "seen True", EVIDENCE="new.txt", CRITERIA='{"seen": true}')
    ran = g.run("-n", "1")
    assert "Traceback" not in ran.both and g.public["criteriaStatus"] == {name: True, "seen": True}, ran.both


def test_a_judge_in_between_hides_no_evidence(g: Goals) -> None:
    """A file that the step has written shows an observation, though a judge was called in the meantime."""
    judging(g, 'observation_evidence = "file"')
    criteria = [{"name": "read", "verification": "code review"}, {"name": "seen", "verification": "observation"}]
    g.planned(criteria=criteria, steps=["one"])
    g.side("step", "echo the new line >new.txt")
    g.claims(True, EVIDENCE="new.txt")
    ran = g.run("-n", "1")
    assert ran.code == 0 and g.kinds == ["plan", "step", "judge"], ran.both


def test_a_long_change_is_cut_and_reported(g: Goals) -> None:
    """The judge learns how much is missing, and is asked to read the files; the user gets a warning for each judge."""
    judging(g, violated=["no gamma"])
    g.planned(mustNot=["no gamma"])
    g.side("step-1", f"{LONG} >long.txt; echo gamma >zzz.txt")
    ran = g.run()
    assert ran.code == 4 and "[LOOP] ⏸ Paused: mustNot: no gamma" in ran.lines, ran.both
    (prompt,) = prompts(g)
    assert "+gamma" not in prompt and "characters are not shown)" in prompt and "read the changed files" in prompt
    assert ran.err.count("The diff is too long for the judge of mustNot") == 1


def test_a_quotation_from_behind_the_cut_counts(g: Goals) -> None:
    """It occurs in the change, of which the judge has read the rest in the files."""
    judging(g, "")
    g.planned(criteria=[{"name": "x", "verification": "code review"}], steps=["one"])
    g.side("step-1", f"{LONG} >long.txt; echo the new line >zzz.txt")
    ran = g.run("-n", "1")
    assert ran.code == 0 and "the new line" not in prompts(g)[0], ran.both


def test_a_change_that_is_short_is_shown_whole(g: Goals) -> None:
    """Neither the judge nor the user reads about a cut."""
    judging(g)
    g.planned(mustNot=["no gamma"])
    g.side("step-1", "echo the new line >new.txt")
    ran = g.run("-n", "1")
    assert "+the new line" in prompts(g)[0] and "not shown" not in prompts(g)[0] + ran.err


@pytest.mark.parametrize(
    "answer, why",
    [
        ("Looks good to me.", "it is not JSON"),
        ('{"met": true, "quote": ""}', "its quote is missing"),
        ('{"met": true, "quote": "an old line"}', "its quote is not in the change: 'an old line'"),
    ],
)
def test_L_34_a_judge_is_asked_again(g: Goals, answer: str, why: str) -> None:
    """An answer in prose or without its quote is named, to the user and to the judge; the second answer counts."""
    judging(g, "")
    g.planned(criteria=[{"name": "x", "verification": "code review"}], steps=["one"])
    g.side("step-1", "echo the new line >new.txt")
    g.out(3, answer)
    ran = g.run("-n", "1")
    assert f"The judge of x gave no usable answer: {why}; asking again" in ran.err, ran.both
    assert ran.code == 0 and why in prompts(g)[1] and why not in prompts(g)[0]
