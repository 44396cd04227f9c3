"""What becomes of a task: pure decisions, in any order of orders, turns and ends."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rooda.fleet import decide
from rooda.fleet.decide import State
from rooda.tasks import model
from rooda.tasks.model import Task

STAMP, TOMORROW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
ORDERS = ("stop", "pause", "hold", "take", "cancel", "continue", "retry", "answer", "say", "set", "priority", "change",
          "hand-back", "watch", "over", "nonsense")  # fmt: skip
ENDS: list[Any] = [
    {"kind": "ended", "code": 0, "facts": {"session": "s", "iteration": 3}, "head": "abc"},
    {"kind": "ended", "code": 1, "facts": {"session": "s"}},
    {"kind": "ended", "code": 4, "facts": {"session": "s", "question": "Which?"}},
    {"kind": "ended", "code": 4, "facts": {"session": "s", "cause": {"kind": "account", "until": TOMORROW}}},
    {"kind": "ended", "code": 4, "facts": {"session": "s", "cause": {"kind": "cost", "budget": "batch"}}},
    {"kind": "ended", "code": -9},
    {"kind": "refused", "worker": "blue", "why": "no"},
    {"kind": "lost", "why": "git"},
    {"kind": "handed-back", "why": "drain"},
    {"kind": "handed-back", "why": "git server away", "away": True},
    {"kind": "parked", "by": "poison", "reason": "3 workers lost it"},
    {},
]
STEPS = st.one_of(
    st.tuples(st.just("order"), st.sampled_from(ORDERS)),
    st.tuples(st.just("turn"), st.integers(0, 5)),
    st.tuples(st.just("end"), st.sampled_from(ENDS)),
    st.tuples(st.just("lost"), st.just(0)),
    st.tuples(st.just("recalled"), st.just(0)),
    st.tuples(st.just("later"), st.integers(0, 100)),
)


def order(word: str) -> Any:
    more = {
        "answer": {"text": "yes"},
        "say": {"text": "look"},
        "set": {"fields": {"text": "other", "gates": ["true"], "state": "landed", "limits": 7}},
        "priority": {"priority": "low"},
        "change": {"when": ["completed"], "fields": {"state": "landed"}},
        "watch": {"workflow": "w2"},
        "over": {"workflow": "w0", "state": "landed"},
    }
    return {"order": word, "why": "because", **more.get(word, {})}


def first(**more: Any) -> State:
    return State(Task(1, "t", "text", "main"), ticket={"v": 1}, **more)


def stepped(state: State, what: str, value: Any, now: float) -> State:
    if what == "order":
        return decide.ordered(state, order(value), STAMP)
    if what == "turn":
        return decide.turned(state, {"leg": state.leg, "turn": value, "worker": "b", "queue": "q", "cost": 1.0}, STAMP)
    if not state.going:
        return state
    if what == "end":
        return decide.ended(state, value, now, STAMP, TOMORROW)
    if what == "recalled":
        return decide.recalled(state, STAMP) if not state.queue else state
    return decide.lost(state, STAMP) if what == "lost" else state


@settings(max_examples=300, deadline=None)
@given(st.lists(STEPS, max_size=40))
def test_FL_02_any_order_of_events_keeps_the_law(steps: list[tuple[str, Any]]) -> None:
    """It survives as JSON; one leg at a time; cancelled is for good; what is held never begins; each leg is new."""
    state, now, over, legs = first(), 0.0, "", 0
    for what, value in steps:
        now += value if what == "later" else 1.0
        state = stepped(state, what, value, now)
        assert decide.decode(json.loads(json.dumps(decide.encode(state)))) == state
        json.dumps(decide.memo(state))
        assert not over or state.task.state == over
        over = state.task.state if state.task.is_over else ""
        if not state.going and not over:
            assert not state.hold and not state.worker and not state.recall
            if decide.step(state, now).leg:
                assert state.task.state == model.WAITING and not state.after
                state = decide.queued(state)
                assert state.leg > legs - 1
                legs = state.leg
                assert all(each["order"] in decide.KEPT for each in decide.leg_order(state, "w")["notes"])


def running(**more: Any) -> State:
    return decide.turned(decide.queued(first(**more)), {"leg": 1, "worker": "blue", "queue": "q"}, STAMP)


def test_FL_02_a_lost_leg_is_next_before_all_others() -> None:
    """Rank 1; otherwise the user's priority decides."""
    assert decide.rank(first()) == 3
    assert decide.rank(decide.lost(running(), STAMP)) == 1
    after = decide.queued(decide.lost(running(), STAMP))
    assert after.leg == 2
    late = decide.turned(after, {"leg": 1, "turn": 9, "cost": 9.0}, STAMP)
    assert late == after


def test_FL_17_a_queued_task_that_is_cancelled_has_the_time_of_its_end() -> None:
    """Its state is kept from then on: without a time, or with an older one, it would be removed too soon."""
    state = decide.recalled(decide.ordered(decide.queued(first()), order("cancel"), STAMP), TOMORROW)
    assert (state.task.state, state.task.updated_at) == ("cancelled", TOMORROW)


def test_FL_11_orders_wait_for_the_worker_and_are_passed_on_once() -> None:
    """What came before the first report of the leg is passed on with it."""
    state = decide.ordered(decide.queued(first()), order("say"), STAMP)
    assert decide.to_pass(state) == [] and not state.recall
    state = decide.turned(state, {"leg": 1, "worker": "blue", "queue": "q"}, STAMP)
    (note,) = decide.to_pass(state)
    state = decide.passed(state, [note])
    assert decide.to_pass(state) == []
    heard = decide.turned(state, {"leg": 1, "turn": 1, "heard": note["id"]}, STAMP)
    assert heard.notes == () and decide.lost(state, STAMP).notes == (note,)


def test_FL_10_a_repository_that_does_not_answer_is_not_asked_all_the_time() -> None:
    """The next leg waits, keeps what the user said, and goes before the backlog; a drained one begins at once."""
    state = decide.passed(decide.ordered(running(), order("say"), STAMP), [{"id": 1}])
    away = decide.ended(state, {"kind": "handed-back", "why": "git", "away": True}, 100.0, STAMP, TOMORROW)
    assert decide.step(away, 100.0) == (False, decide.AWAY) and decide.step(away, 100.0 + decide.AWAY).leg
    assert [each["text"] for each in decide.queued(away).notes] == ["look"] and decide.rank(away) == 1
    drained = decide.ended(state, {"kind": "handed-back", "why": "drain"}, 100.0, STAMP, TOMORROW)
    assert decide.step(drained, 100.0).leg and not drained.notes


def test_FL_15_retries_begin_anew_and_end() -> None:
    """A failed task is tried again as often as --retries says; a user's retry counts anew."""
    failed = {"kind": "ended", "code": 1, "facts": {"session": "s"}, "said": "red"}
    state = decide.ended(running(retries=1), failed, 0, STAMP, TOMORROW)
    assert (state.task.state, state.task.turnings.loop) == ("waiting", 2)
    state = decide.ended(decide.queued(state), failed, 0, STAMP, TOMORROW)
    assert state.task.state == "failed"
    state = decide.ordered(state, order("retry"), STAMP)
    assert (state.task.state, state.task.turnings.tries, state.task.turnings.loop) == ("waiting", 0, 3)


def test_FL_13_refusals_wait_longer_each_time_and_name_each_worker() -> None:
    """At most a minute; a leg that begins clears them."""
    state, now = first(), 0.0
    for worker in ("a", "b", "a", "a", "a", "a", "a", "a"):
        said = {"kind": "refused", "worker": worker, "why": f"not on {worker}"}
        state = decide.ended(decide.queued(state), said, now, STAMP, TOMORROW)
        assert not decide.step(state, now).leg
        assert 0 < state.wake - now <= decide.LONGEST_WAIT
        now = state.wake
        assert decide.step(state, now).leg
    assert state.refusals == {"a": "not on a", "b": "not on b"}
    assert decide.memo(state)["fleet"]["refusals"] == state.refusals
    begun = decide.turned(decide.queued(state), {"leg": state.leg + 1, "worker": "c", "queue": "q"}, STAMP)
    assert begun.refusals is None


def test_T_01_edits_take_only_what_may_be_edited() -> None:
    """A wrong form changes nothing; state, cost and session are not for editing."""
    state = decide.ordered(first(), order("set"), STAMP)
    assert state.task == first().task
    fields = {"fields": {"text": "other", "state": "landed", "cost": 0.0, "priority": "high"}}
    state = decide.ordered(first(), {"order": "set", **fields}, STAMP)
    assert (state.task.text, state.task.state, state.task.cost, state.task.priority) == (
        "other",
        "waiting",
        None,
        "high",
    )
    assert decide.ordered(first(), {"order": "priority", "priority": "urgent"}, STAMP).task == first().task


def test_FL_15_who_joins_a_landing_hears_all_of_it() -> None:
    """A second look finds nothing to land; what the first one said is not lost."""
    said = decide.landed(
        [{"kind": "done", "code": 4, "text": "Task 1 landed\n"}, {"kind": "done", "code": 0, "text": ""}]
    )
    assert said == {"kind": "done", "code": 4, "text": "Task 1 landed"}
    failed = decide.landed([{"kind": "lost", "why": "blue could not work on it (OSError)"}])
    assert (failed["code"], failed["text"]) == (1, "blue could not work on it (OSError)")
