"""A goal always has a budget: a call that left no record of its cost pauses it."""

import pytest

from rooda.agents.records import Agent, Reply
from rooda.loops.goal.effects import result_of
from rooda.loops.goal.rules import add_cost, limit_reached
from tests.kit.goal_world import START


@pytest.mark.parametrize(
    ("reply", "pauses"),
    [
        (Reply(0, 1.0, output="claude", cost=0.01, cost_source="reported"), False),
        (Reply(0, 1.0, output="claude", cost=0.01, cost_source="reported", lost=True), True),
        (Reply(0, 1.0, output="claude", lost=True), True),
        (Reply(0, 1.0, output="claude", cost=0.5, cost_source="assumed", lost=True), False),
    ],
)
def test_S_14_a_goal_pauses_at_a_call_without_traces(reply: Reply, pauses: bool) -> None:
    result = result_of(Agent("claude", "claude"), reply, 100, 0.0, {})
    reached = limit_reached(add_cost(START, result))
    assert bool(reached) is pauses
    assert not reached or (reached[0] == "budget" and "unknown" in reached[1])
