"""The world of a goal, scripted: it answers from lists and records each question."""

from collections.abc import Sequence
from typing import Any

from rooda.loops.goal.criteria import Criterion, Mark
from rooda.loops.goal.loop import goal
from rooda.loops.goal.plan import MustNot, Step
from rooda.loops.goal.scoring import Scores
from rooda.loops.goal.state import Brief, GoalState
from rooda.loops.goal.world import Finding, GoalWorld, Hurt, Print, Question, Told
from rooda.loops.kernel import Run, Saved, Scope
from rooda.run.records import Ending


def test_the_exact_trace_of_effects() -> None:
    """Two iterations to completion: every effect in order, the final sweep over everything, and nothing else."""
    script = Script([Told(says(False)), Told(says(True))], [{"a"}, {"a", "b"}, {"a", "b"}])
    assert goal(Run(script), START, script.world()) == Ending("completed", 0)
    assert script.trace == [
        "write 0 in_progress false",
        *("ask step 1: one", "mustNot 1", "verify 1 a", "write 1 in_progress false"),
        *("ask step 2: two", "mustNot 2", "verify 2 a b", "verify 2 a b", "tests", "write 2 completed true"),
    ]
    assert script.events == ["iteration.started", "iteration.ended"] * 2 + ["run.ended"]


CRITERIA = (Criterion("a", "execution output", "check a"), Criterion("b", "execution output", "check b"))
BRIEF = Brief(
    "run", "spec", CRITERIA, (Step("one", ("a",)), Step("two", ("b",))), Scores(), 9, "Tool", "A", "2A",
    mustNot=(MustNot("no c", "check c"),),
)  # fmt: skip
START = GoalState(BRIEF, (Mark(False, "execution output"),) * 2, ("one", "two"), limit=10, budget=25.0)


def says(exit_signal: bool) -> str:
    return f"---LOOP_STATUS---\nEXIT_SIGNAL: {str(exit_signal).lower()}\nCRITERIA: {{}}\n---END_STATUS---\n"


class Script:
    """A world that answers from lists and writes down everything that is asked of it."""

    def __init__(self, replies: Sequence[Told], met: Sequence[set[str]], answers: Sequence[str | None] = ()) -> None:
        self.replies, self.met, self.answers = list(replies), list(met), list(answers)
        self.trace: list[str] = []
        self.states: list[GoalState] = []
        self.events: list[str] = []

    def world(self) -> GoalWorld:
        return GoalWorld(
            now=lambda: "now", seconds=lambda: 0.0, signalled=lambda: 0, requested=lambda: "",
            emit=lambda event: self.events.append(event.NAME),
            ask=self.ask, rest=lambda seconds: None, question=self.question, attended=lambda: False,
            verify=self.verify, violated=self.violated, template=lambda name: "{{step}}" if name == "step" else "",
            tail=lambda path: "", keep=lambda name, text: name, checkpoint=self.checkpoint, tree=lambda everywhere: "",
            diff=lambda base: "", prints=lambda commands: (), changed=self.changed, shape=lambda: ("", ""),
            newer=lambda paths: (), git=lambda: True, told=lambda text: text,
        )  # fmt: skip

    def ask(self, kind: str, number: int, prompt: str) -> Told:
        self.trace.append(f"ask {kind} {number}: {prompt.splitlines()[-1]}")
        return self.replies.pop(0)

    def verify(self, criteria: Sequence[Criterion], iteration: int) -> list[Finding]:
        self.trace.append(f"verify {iteration} {' '.join(each.name for each in criteria)}")
        met = self.met.pop(0)
        return [Finding(each.name, each.name in met, "evidence") for each in criteria]

    def violated(self, entries: Sequence[MustNot], iteration: int) -> Hurt:
        self.trace.append(f"mustNot {iteration}")
        return Hurt()

    def question(self, question: Question) -> str | None:
        self.trace.append(f"question {question.gate}")
        return self.answers.pop(0)

    def checkpoint(self, run: str, number: int) -> str:
        self.trace.append(f"checkpoint {number}")
        return ""

    def changed(self, prints: Sequence[Print]) -> tuple[str, ...]:
        self.trace.append("tests")
        return ()

    # the store
    def load(self, scope: Scope) -> Saved:
        return Saved()

    def begin(self, scope: Scope, name: str) -> None:
        """Nothing."""

    def end(self, scope: Scope, name: str, value: Any) -> Any:
        return value

    def carry(self, scope: Scope, state: GoalState) -> GoalState:
        if not self.states or self.states[-1] != state:
            self.trace.append(f"write {state.iteration} {state.status} {str(state.exit_signal).lower()}")
            self.states.append(state)
        return state
