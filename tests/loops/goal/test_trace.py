"""The goal loop on a scripted world: its exact trace of effects."""

from rooda.loops.goal.loop import goal
from rooda.loops.goal.world import CallResult
from rooda.loops.kernel import Turns
from rooda.run.records import Ending
from tests.kit.goal_world import BRIEF, START, Script, says


def test_the_exact_trace_of_effects() -> None:
    """Two iterations to completion: every effect in order, the final sweep over everything, and nothing else."""
    script = Script([CallResult(says(False)), CallResult(says(True))], [{"a"}, {"a", "b"}, {"a", "b"}])
    assert goal(Turns(script), START, script) == Ending("completed", 0)
    assert script.trace == [
        "write 0 in_progress false",
        *("ask step 1: one", "mustNot 1", "verify 1 a", "write 1 in_progress false"),
        *("ask step 2: two", "mustNot 2", "verify 2 a b", "verify 2 a b", "tests", "write 2 completed true"),
    ]
    assert script.events == ["iteration.started", "iteration.ended"] * 2 + ["run.ended"]


def test_the_trace_of_a_colleague_with_checkpoints() -> None:
    """Gates are between write and next call, G3 before the last write; every step of type 2B has its checkpoint."""
    brief = BRIEF._replace(shape="Colleague", reversibility="2B", mustNot=())
    script = Script([CallResult(says(False)), CallResult(says(True))], [{"a"}, {"a", "b"}, {"a", "b"}], ["y", "y", "y"])
    ending = goal(Turns(script), START._replace(brief=brief, gate="G1"), script)
    assert ending == Ending("completed", 0)
    assert [step for step in script.trace if not step.startswith("write")] == [
        *("question G1", "checkpoint 1", "ask step 1: one", "verify 1 a", "question G2"),
        *("checkpoint 2", "ask step 2: two", "verify 2 a b", "verify 2 a b", "tests", "question G3"),
    ]
    assert script.trace.index("question G3") < script.trace.index("write 2 completed true")
