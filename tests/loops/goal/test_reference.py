"""The loop against its reference model: thousands of random goals in memory, some dozen with the real command."""

import json
import shutil
import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from rooda.loops.goal.criteria import Criterion, Mark
from rooda.loops.goal.loop import goal
from rooda.loops.goal.plan import MustNot, Step
from rooda.loops.goal.prompts import next_action
from rooda.loops.goal.scoring import Scores
from rooda.loops.goal.state import Brief, GoalState, public
from rooda.loops.goal.world import CallResult, Finding, Violations
from rooda.loops.kernel import Turns
from tests.kit.examples import examples
from tests.kit.goal import Goals, blocks, claim, plan
from tests.kit.goal_reference import Case, Outcome, Turn, cases, model
from tests.kit.goal_world import Script
from tests.kit.processes import until
from tests.kit.workspace import FAKE_AI


class Memory(Script):
    """The scripted world with files in memory and an agent that plays a case."""

    def __init__(self, case: Case) -> None:
        super().__init__((), ())
        self.case, self.files, self.bad = case, set[str](), False
        self.calls = 0
        self.blocks: list[tuple[bool, dict[str, bool], int, str]] = []

    def ask(self, kind: str, number: int, text: str) -> CallResult:
        self.calls += 1
        turn = self.case.turn(number - 1)
        self.files = (self.files | turn.makes) - turn.breaks
        self.bad = self.bad or turn.bad
        said = claim(turn.claim, **({"NEXT": turn.next} if turn.next else {}))
        how = f"exit {turn.code}" if turn.code else ""
        return CallResult(
            said, ok=not turn.code, how=how, error=f"Error: {turn.word}" if turn.code else "", cost=turn.cost
        )

    def verify(self, criteria: Sequence[Criterion], iteration: int) -> list[Finding]:
        return [self.found(each) for each in criteria]

    def found(self, criterion: Criterion) -> Finding:
        met = criterion.name in self.files
        line = f"Error: no {criterion.name}" if criterion.name in self.case.noisy and not met else ""
        return Finding(criterion.name, met, "e", f"{criterion.command} {line}" if line else "", line)

    def violations(self, entries: Sequence[MustNot], iteration: int) -> Violations:
        return Violations(tuple(each.text for each in entries if self.bad))

    def carry(self, scope: Any, state: GoalState) -> GoalState:
        if self.states and state.iteration > self.states[-1].iteration:
            names = [each.name for each in state.brief.criteria]
            met = dict(zip(names, (mark.met for mark in state.marks), strict=True))
            self.blocks.append((state.exit_signal, met, state.stuck, next_action(state)))
        self.states.append(state)
        return state


def played(case: Case) -> Outcome:
    """The loop function on that world."""
    criteria = tuple(Criterion(name, "execution output", f"check {name}") for name in case.criteria)
    steps = tuple(Step(name, tied) for name, tied in case.steps)
    brief = Brief("r", "s", criteria, steps, Scores(), 9, "Tool", "A", "2A", mustNot=(MustNot("no bad", "bad"),))
    marks = tuple(Mark(False, "execution output") for _ in criteria)
    start = GoalState(brief, marks, tuple(step.name for step in steps), limit=case.limit, budget=case.budget)
    world = Memory(case)
    ending = goal(Turns(world), start, world)
    last = public(world.states[-1])
    state = {key: value for key, value in last.items() if key not in ("spec", "criteria")}
    return Outcome(world.calls, world.blocks, state, world.states[-1].reason, ending.code)


@settings(max_examples=examples(600), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases())
def test_random_goals_in_memory(case: Case) -> None:
    """Calls, status blocks, final state, reason and exit code are the model's."""
    assert played(case) == model(case)


def prepared(root: str, case: Case) -> Goals:
    """A workspace whose scripted agent plays the case; it costs what the case says."""
    g = Goals(root)
    g.config(f'[goal]\nagent = "c"\n[agents.c]\ncommand = "{FAKE_AI}"\noutput = "claude"\n')
    criteria = [
        {
            "name": name,
            "command": f"test -f {name}" + (f" || {{ echo Error: no {name}; exit 1; }}" if name in case.noisy else ""),
        }
        for name in case.criteria
    ]
    steps = [{"name": name, "criteria": list(tied)} for name, tied in case.steps]
    made = plan(9, criteria=criteria, steps=steps, mustNot=[{"text": "no bad", "violated_if": "test -f bad"}])
    g.out("plan", envelope(json.dumps(made), case.plan_cost))
    for number in range(1, case.limit + 1):
        turn = case.turn(number - 1)
        g.side(f"step-{number}", shell(turn))
        text = claim(turn.claim, **({"NEXT": turn.next} if turn.next else {}))
        g.out(f"step-{number}", envelope(text, turn.cost, f"Error: {turn.word}" if turn.code else ""))
        g._script(f"step-{number}", "exit", f"{turn.code}\n")
    return g


def shell(turn: Turn) -> str:
    words = [*(f"touch {name}" for name in sorted(turn.makes)), *(f"rm -f {name}" for name in sorted(turn.breaks))]
    return "; ".join([*words, "touch bad" if turn.bad else ":"])


def envelope(text: str, cost: float, error: str = "") -> str:
    record = {"type": "result", "is_error": False, "result": text, "total_cost_usd": cost}
    return f"{json.dumps(record)}\n"


def seen(g: Goals, ran: Any, calls: int) -> Outcome:
    state = {key: value for key, value in g.public.items() if key not in ("spec", "criteria")}
    return Outcome(calls, blocks(ran.out), state, g.private["reason"], ran.code)


def spoken(outcome: Outcome) -> Outcome:
    """An agent that is read explains its exit code in its own words, which are no part of the model."""
    return outcome._replace(reason="same error 3x" if outcome.reason.startswith("same error 3x") else outcome.reason)


def silent(case: Case) -> Case:
    """For the agent that is read the exit code makes the error, not its words."""
    return case._replace(turns=tuple(turn._replace(word="") for turn in case.turns))


@settings(max_examples=examples(12), deadline=None, suppress_health_check=list(HealthCheck))
@given(cases())
def test_random_goals_on_the_real_command(case: Case) -> None:
    """The same with the real command, an agent process per call, and files on a disk."""
    with tempfile.TemporaryDirectory() as root:
        g = prepared(f"{root}/x", silent(case))
        ran = g.run("-n", str(case.limit), f"--budget={case.budget}")
        assert spoken(seen(g, ran, g.kinds.count("step"))) == spoken(model(silent(case))), ran.both
        assert len(g.journal) == g.public["iteration"] + 1
        g.close()


@pytest.mark.parametrize("call", [2, 3, 4, 5])
def test_kill_9_at_every_call_then_continue(tmp_path: Path, call: int) -> None:
    """The loop is killed while this call works: continue comes to the same end with one call more."""
    steps = (("one", ("alpha",)), ("two", ()), ("three", ("beta",)), ("four", ()))
    turns = (Turn(frozenset({"alpha"})), Turn(), Turn(frozenset({"beta"})), Turn(claim=True))
    case = Case(("alpha", "beta"), frozenset(), steps, turns, 9, 25.0)
    g = prepared(str(tmp_path / "x"), case)
    g.side(f"step-{call - 1}", '[ -e "$FAKE/killed" ] || { touch "$FAKE/killed"; kill -9 $PPID; sleep 60 & wait; }')
    first = g.start("goal", "run", "x Outcome two scope two limits two checks two end one")
    first.finish()
    until(lambda: not g.leftovers(), what="nobody left")
    assert g.public["status"] == "in_progress" and g.public["iteration"] == call - 2
    ran = g.go_on()
    expected = model(case)
    assert ran.code == 0 and g.kinds.count("step") == expected.calls + 1
    assert blocks(first.out) + blocks(ran.out) == expected.blocks
    assert {key: value for key, value in g.public.items() if key in expected.state} == expected.state
    assert [record["iteration"] for record in g.journal] == [0, 1, 2, 3, 4]
    g.close()
    shutil.rmtree(tmp_path / "x")


def test_kill_9_in_the_plan_call_leaves_nothing_to_continue(g: Goals) -> None:
    """Before the state is written there is not a goal: run starts it afresh."""
    g.side("1", "kill -9 $PPID; sleep 60 & wait")
    running = g.start("goal", "run", "x Outcome two scope two limits two checks two end one")
    assert running.finish() in (-signal.SIGKILL, 137)
    until(lambda: not g.leftovers(), what="nobody left")
    assert g.go_on().code == 2 and not g.exists(".loop/state.json")
    g.succeeds()
    assert g.run().code == 0
