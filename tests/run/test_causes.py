"""What ended a run is read from fields: the English of a note changes no hook, no reason of `why` and no status."""

from typing import Any

import pytest

from rooda.base.json import Json
from rooda.errors import Cause
from rooda.loops.flow import events as flow_events
from rooda.loops.flow.boundaries import Boundary, message, read, state_of_error
from rooda.loops.flow.model import NodeState, Reading
from rooda.loops.goal import events as goal_events
from rooda.loops.procedure import events as procedure_events
from rooda.loops.reflex import events as reflex_events
from rooda.loops.registry import view
from rooda.run.ended import INTERRUPTED, PAUSED, at_limit, cut_off, moments, without_process
from rooda.run.spending import cause_facts, cause_of, in_words
from rooda.views import why
from rooda.views.lines import Line
from rooda.views.lines import lines as lines_of

CAUSES = {
    "cost": Cause("cost", 2.25, 2.0, 1),
    "tokens": Cause("tokens", 2300, 2000),
    "time": Cause("time", 3.2, 3.0),
    "account": Cause("account", account="mine", until="2096-10-02T09:06:40+02:00"),
}
WORDS = {
    "cost": "Cost limit reached: $2.25 of $2.00 (the cost of 1 call is unknown)",
    "tokens": "Token limit reached: 2,300 of 2,000",
    "time": "Time limit reached: 3.2s of 3s",
    "account": "Usage limit of mine until 2096-10-02T09:06:40+02:00",
}
NOTES = ["", "cancel requested", "auth: log in", "error: x", *(words + ". And more" for words in WORDS.values())]
REASON_AT_LIMIT = {"ooda": "limit", "reflex": "limit", "flow": "limit", "goal": "shared limit"}
RULES = {
    **dict.fromkeys(("cost", "tokens", "time"), "tested before each call"),
    "account": 'with on_limit = "stop", rooda does not wait for a usage limit to end',
}
KIND = pytest.mark.parametrize("kind", CAUSES)
LOOP = pytest.mark.parametrize("loop", REASON_AT_LIMIT)


KINDS = {each.name: each for each in (flow_events.KIND, goal_events.KIND, procedure_events.KIND, reflex_events.KIND)}


def moments_of(record: Json) -> list[str]:
    return moments(record, KINDS[record["loop"]].moments)


def ended(loop: str = "ooda", reason: str = "signal", code: int = 130, cause: Cause | None = None, **more: Any) -> Json:
    """`run.ended` of any kind of loop, as a log has it."""
    facts = {"iterations": 1, "max_iterations": 9, "consecutive_failures": 0, "elapsed": 1.0, "timing": {}}
    facts |= {"status": "running", "procedure": "build", "name": "x", "branch": "b", "hint": "", "note": ""}
    facts |= {"artifact": "a.md", "stop_reason": None, "number": 1, "level": "A", "error": "", "elsewhere": False}
    facts |= {"final_score": None, "last_evaluated_score": None}
    facts |= {"event": "run.ended", "ts": "2026-02-06T10:00:45.213Z", "ran": 1.0, "signal": 0}
    return facts | {"loop": loop, "reason": reason, "exit_code": code} | cause_facts(cause) | more


def lines(record: Json) -> list[Line]:
    return lines_of(record, view(record["loop"]).LINES)


def same(read: Any, **facts: Any) -> Any:
    """What is read of this end, which must be the same under every note."""
    found = [read(ended(**facts, note=note)) for note in NOTES]
    assert all(each == found[0] for each in found), found
    return found[0]


def rule_of(record: Json) -> str:
    (reason,) = why.reasons([record], view)
    return reason.rule.replace(record["note"], "NOTE") if record["note"] else reason.rule


@KIND
def test_a_limit_in_fields_and_in_words(kind: str) -> None:
    """The fields of the log give back the limit, and its words."""
    cause = CAUSES[kind]
    assert cause_of({"event": "run.ended", **cause_facts(cause)}) == cause
    assert in_words(cause) == WORDS[kind]


@LOOP
@KIND
def test_a_limit_under_any_note(loop: str, kind: str) -> None:
    """Hook, rule and status come from the cause alone."""
    end: Json = {"loop": loop, "reason": REASON_AT_LIMIT[loop], "code": 4, "cause": CAUSES[kind]}
    assert same(moments_of, **end) == ["paused", "limit" if kind == "account" else "budget"]
    assert same(at_limit, **end) == WORDS[kind]
    assert same(lambda record: without_process(INTERRUPTED, record, False), **end) == PAUSED
    assert same(why.limits, **end).endswith(RULES[kind])
    for note in NOTES:
        assert RULES[kind] in rule_of(ended(**end, note=note))
    assert not same(lambda record: cut_off(record, False, ""), **end)


@LOOP
@pytest.mark.parametrize("cause", ["none", "a text", "a list", "no kind", "a wrong type"])
def test_a_log_without_a_cause(loop: str, cause: str) -> None:
    """An old or edited log: no hook, the note as it is, no automatic resume, and no traceback."""
    facts = {"a text": "cost", "a list": [], "no kind": {}, "a wrong type": {"kind": "cost", "used": "much"}}
    more = {"cause": facts[cause]} if cause in facts else {}
    record = ended(loop, REASON_AT_LIMIT[loop], 4, note=WORDS["account"]) | more
    assert moments_of(record) == ["paused"] and at_limit(record) == WORDS["account"]
    assert why.limits(record) == "" and rule_of(record)
    assert without_process(INTERRUPTED, record, False) == PAUSED and not cut_off(record, False, "")


@pytest.mark.parametrize(
    ("loop", "reason", "code", "expected"),
    [
        ("ooda", "success-signal", 0, ["done"]),
        ("ooda", "failures", 1, ["failed", "stuck"]),
        ("ooda", "agent", 1, ["failed", "needs_person"]),
        ("ooda", "signal", 143, ["stopped"]),
        ("reflex", "stagnation", 4, ["paused", "stuck"]),
        ("reflex", "gone", 1, ["failed", "needs_person"]),
        ("flow", "error", 1, ["failed", "stuck", "needs_person"]),
        ("goal", "budget", 4, ["paused", "budget"]),
        ("goal", "limit", 4, ["paused"]),
        ("goal", "G2", 4, ["paused", "needs_person"]),
        ("goal", "asked", 4, ["paused"]),
    ],
)
def test_all_other_ends_under_any_note(loop: str, reason: str, code: int, expected: list[str]) -> None:
    """No moment of a hook is read from a note."""
    assert same(moments_of, loop=loop, reason=reason, code=code) == expected


@pytest.mark.parametrize(("cause", "last"), [("cancel", "rooda goal cancel ends it now"), ("pause", "Resume: ")])
def test_a_request_under_any_note(cause: str, last: str) -> None:
    """A user who cancels a goal from another terminal gets no hint to resume it."""
    goal = {"verdict": "SHIP", "done": 1, "remaining": 1, "allowance": "$5", "status": "paused", "criteria": {}}
    goal |= {"cost": "$1", "budget": "$5", "points": 0, "type": "2A", "verified": [], "confidence": "", "alt": ""}
    goal |= {"risk": "", "claimed": [], "tests_changed": []}
    for note in NOTES:
        said = lines(ended("goal", "asked", 4, Cause(cause), **goal, note=note))
        assert said[2].text.startswith(last)


@pytest.mark.parametrize("outcome", ["auth", "config", "context_overflow", "not-started", ""])
def test_a_cure_under_any_note(outcome: str) -> None:
    """The hint for a refusal comes from `refused`."""
    curable = outcome in ("auth", "config", "context_overflow")
    for note in filter(None, NOTES):
        said = lines(ended("ooda", "agent", 1, refused=outcome, note=note))
        assert any("rooda resume build" in line.text for line in said) == curable


ACTIONS = ["error: the sensor wrote nothing", "Es ging schief", "", "error: error: x"]


def of_node(event: str, action: str, **more: Any) -> Json:
    """An event of a flow's node that ended with an error."""
    facts: Json = {"node": "main", "level": 0, "label": "1", "number": 1, "sensors": {}, "summary": action}
    facts |= {"executed": 1, "max_iterations": 3, "base_branch": "main", "commits": 1, "display": 1, "status": "error"}
    facts |= {"reason": "error", "action": action, "error": "the sensor wrote nothing"}
    return ended("flow", "error", 1) | facts | {"event": event} | more


@pytest.mark.parametrize("action", ACTIONS)
def test_the_error_of_a_node_under_any_action(action: str) -> None:
    """The screen and `rooda why` take what was wrong from `error`."""
    end, whole = of_node("node.ended", action), of_node("run.ended", action)
    (text,) = (line.text for line in lines(whole) if line.level == "error")
    assert text == "ERROR: Flow x ended with an error: the sensor wrote nothing (total: 1s)"
    node, last = (reason.rule for reason in why.reasons([end, whole], view))
    assert node == "main 1: error: a step failed: the sensor wrote nothing"
    assert last.startswith("Flow x ended with an error: the sensor wrote nothing (total: 1s); an error of a node")


def test_an_error_in_a_log_without_the_field() -> None:
    """In an old log the action is shown as it is."""
    old = {key: value for key, value in of_node("node.ended", "error: x").items() if key != "error"}
    (reason,) = why.reasons([old], view, alive=True)
    assert reason.rule == "main 1: error: a step failed: error: x"
    assert "ended with an error: error: x (total" in lines(old | {"event": "run.ended"})[0].text


def test_a_nodes_error_is_read_back_from_its_commit() -> None:
    """The format of flows fixes the action's words there; only this store reads them."""
    state = state_of_error("controller wrote\nnothing", 2, (Reading("unit", "fail"),))
    assert state.error == "controller wrote nothing" and state.action == "error: controller wrote nothing"
    boundary = Boundary("main", "2", state)
    found = read(message(boundary))
    assert found == boundary
    done = Boundary("main", "2", NodeState(2, "running", (), "x", "error: said the agent"))
    assert read(message(done)) == done


def test_the_evidence_of_a_red_gate() -> None:
    """The evidence is the gate's output, whatever the gate is called; for other failures the transcript."""
    turn: Json = {"event": "iteration.ended", "ts": "t", "display": 1, "outcome": "failure", "ended": "exit"}
    turn |= {"note": "", "exit_code": 0, "limit": 0.0, "message": "", "agent_outcome": "", "promise": "FAILURE"}
    turn |= {"consecutive_failures": 1, "failure_threshold": 3, "gates_failed": "lint (exit 1)", "loop": "ooda"}
    turn |= {"iteration": 0, "max_iterations": 3, "elapsed": 1.0}
    gate: Json = {"event": "gate.ended", "ts": "t", "gate": "lint", "verdict": "exit 1", "output": "/gate"}
    gate |= {"loop": "ooda", "elapsed": 1.0}
    call: Json = {"event": "agent.ended", "ts": "t", "transcript": "/call", "call": "iteration", "loop": "ooda"}
    found = [reason.evidence for reason in why.reasons([call, gate, turn], view, alive=True)]
    assert found == ["/call", "/gate"]


def test_a_label_is_not_part_of_the_message() -> None:
    """The screen prefixes WARNING, `why` does not."""
    record: Json = {"event": "problem", "ts": "t", "display": 1, "loop": "ooda", "text": "WARNING: as it was written"}
    assert [line.text for line in lines(record)] == ["WARNING: WARNING: as it was written"]
    assert [reason.rule for reason in why.reasons([record], view, alive=True)] == ["WARNING: as it was written"]
