"""The reflex loop on a scripted world: the exact trace of its effects, turn by turn."""

from decimal import Decimal

import pytest

from rooda.errors import Interrupted
from rooda.loops.kernel import Run
from rooda.loops.reflex import loop
from rooda.loops.reflex.state import decoded, encoded
from rooda.loops.reflex.world import LoopOptions
from tests.kit.reflex_memory import Memory
from tests.kit.reflex_reference import Rule, Script

RULES = (Rule("a.x.one", "fail", Decimal(2), "A"), Rule("b.x.two", "warn", Decimal(1), "B"))
LIMITS = {"A": Decimal("0.8"), "B": Decimal("0.9")}


def script(*artifacts: set[str], maximum: int = 4) -> Script:
    return Script(RULES, LIMITS, maximum, tuple(map(frozenset, artifacts)), frozenset())


def test_the_exact_trace_of_effects() -> None:
    """An iteration that fails, one that passes A and then B: every step and call in order, and nothing else."""
    memory = Memory(script(set(), {"a.x.one", "b.x.two"}))
    memory.play()
    assert memory.trace == [
        "carry PLAN",
        *("begin PLAN", "ask PLAN", "end PLAN"),
        *("begin PRODUCE_PREPARE", "ask PRODUCE PREPARE", "end PRODUCE_PREPARE"),
        *("begin EVALUATE", "end EVALUATE"),
        *("begin CRITIQUE", "ask CRITIQUE", "end CRITIQUE"),
        *("begin REFINE", "ask REFINE", "end REFINE"),
        "carry PLAN",
        *("begin PLAN", "ask PLAN", "end PLAN"),
        *("begin PRODUCE_PREPARE", "ask PRODUCE PREPARE", "end PRODUCE_PREPARE"),
        *("begin EVALUATE", "end EVALUATE"),
        "show",
        "carry PREPARE",
        *("begin PRODUCE_PREPARE", "ask PREPARE", "end PRODUCE_PREPARE"),
        *("begin EVALUATE", "end EVALUATE"),
        "carry EVALUATE",
    ]
    told = [event.removeprefix("reflex.") for event, _ in memory.told]
    assert told == ["block", "block", "boundary", "block", "boundary"]


@pytest.mark.parametrize("calls", range(7))
def test_a_loop_continues_where_it_was_cut(calls: int) -> None:
    """Cut before any of its calls, and begun again from what was saved: the same end, each call made once."""
    whole = Memory(script(set(), {"a.x.one", "b.x.two"}))
    whole.play()
    cut = Memory(script(set(), {"a.x.one", "b.x.two"}))
    ask = cut.ask

    def counted(queries, concurrent=None):  # type: ignore[no-untyped-def]
        if sum(step.startswith("ask") for step in cut.trace) == calls:
            raise Interrupted(2)
        return ask(queries, concurrent)

    cut.ask = counted  # type: ignore[method-assign]
    with pytest.raises(Interrupted):
        cut.play()
    cut.ask = ask  # type: ignore[method-assign]
    assert cut.state is not None
    cut.state = decoded(encoded(cut.state))
    assert cut.play() == whole.state
    assert cut.calls == whole.calls
    assert [event["event"] for event in cut.history] == [event["event"] for event in whole.history]


def test_a_signal_between_two_steps_ends_it() -> None:
    """Before a phase begins the loop looks for signals; what is done is saved."""
    memory = Memory(script({"a.x.one"}))
    memory.signalled = lambda: 15 if "end PLAN" in memory.trace else 0  # type: ignore[method-assign]
    from tests.kit.reflex_memory import fresh

    with pytest.raises(Interrupted):
        loop.reflex(Run(memory), fresh(memory.script), LoopOptions("artifact.md"), memory)
    assert memory.state is not None and memory.state.current_step == "PRODUCE_PREPARE"
