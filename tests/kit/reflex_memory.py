"""A loop's world in memory: answers by a script, a store that is a list of states, and every effect written down."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rooda.loops.kernel import Run, Saved, Scope
from rooda.loops.reflex import history, loop
from rooda.loops.reflex.history import Artifact
from rooda.loops.reflex.state import PLAN, RUNNING, State
from rooda.loops.reflex.world import Answer, Beside, How, Query, Ran, World

from .reflex_reference import Script

ARTIFACT = ".ai-factory/evolution/loop/artifact.md"


def fresh(script: Script) -> State:
    rules = [
        {
            "id": rule.id,
            "description": rule.id,
            "severity": rule.severity,
            "weight": json.loads(str(rule.weight)),
            "phase": rule.phase,
            "check": "c",
        }
        for rule in script.rules
    ]
    phases = {level: {"threshold": json.loads(str(value))} for level, value in script.thresholds.items()}
    criteria = {"name": "n", "version": 1, "phase": phases, "rules": rules}
    task = {"prompt": "task", "ideal_result": "ideal"}
    return State("loop-1", "loop", RUNNING, 1, script.maximum, "A", PLAN, task, criteria, created_at="now")


class Memory:
    """World and store of one loop."""

    def __init__(self, script: Script) -> None:
        self.script, self.trace, self.calls = script, [], dict[str, int]()
        self.history: list[dict[str, Any]] = []
        self.state: State | None = None
        self.staged: str | None = None
        self.text: str | None = None
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.trace: list[str] = []

    # the store
    def load(self, scope: Scope) -> Saved:
        return Saved(self.state)

    def begin(self, scope: Scope, name: str) -> None:
        self.trace.append(f"begin {name}")

    def end(self, scope: Scope, name: str, value: Any) -> Any:
        self.trace.append(f"end {name}")
        return self.save(value)

    def carry(self, scope: Scope, state: Any) -> Any:
        self.trace.append(f"carry {state.current_step}")
        return self.save(state)

    def save(self, state: State) -> State:
        if state == self.state and self.staged is None:
            return state
        if self.staged is not None:
            self.text, self.staged = self.staged, None
        found = history.events(self.state, state, Artifact("", "", {}))
        self.history += [{**event._asdict(), "ts": "now"} for event in found]
        self.state = state
        return state

    # the world
    def world(self) -> World:
        return World(
            emit=lambda event: self.told.append((event.NAME, event.facts)),
            signalled=lambda: 0,
            compose=self.compose,
            ask=self.ask,
            tries=lambda state, phase: history.tries(self.history, state, phase),
            breach=self.breach,
            keep=self.save,
            recent=lambda state: [],
            artifact=lambda: self.text,
            stage=self.stage,
            digest=lambda text: f"hash of {text}",
            runnable=lambda commands: True,
            execute=lambda state, commands: [Ran(True, "exit 0") for _ in commands],
            search=lambda pattern, text: "missing",
            changed=lambda state: None,
            show=lambda: self.trace.append("show"),
            told=lambda text: text,
        )

    def stage(self, text: str) -> None:
        self.staged = text

    def compose(self, phase: str, values: Mapping[str, str]) -> str:
        return phase

    def breach(self, state: State, phase: str, attempt: int, error: str, excerpt: str) -> None:
        event = history.breach(state, phase, attempt, error, excerpt)
        self.history.append({**event._asdict(), "ts": "now"})

    def ask(self, queries: Sequence[Query], beside: Beside | None = None) -> list[Answer]:
        self.trace.append("ask " + " ".join(query.phase for query in queries))
        return [self.answer(query) for query in queries]

    def answer(self, query: Query) -> Answer:
        self.calls[query.phase] = number = self.calls.get(query.phase, 0) + 1
        if (query.phase, number) in self.script.bad:
            return Answer("not json" if query.phase not in ("PRODUCE", "REFINE") else "")
        if query.phase == "PLAN":
            return Answer('{"plan": ["a", "b", "c"]}')
        if query.phase == "PREPARE":
            active = [rule for rule in self.script.rules if query.level == "B" or rule.phase == "A"]
            found = [
                {"rule_id": rule.id, "type": "content", "search": f"<{rule.id}>", "expected": "e"} for rule in active
            ]
            return Answer(json.dumps({"checks": found}))
        if query.phase == "CRITIQUE":
            assert self.state is not None
            failing = [*self.state.evaluation["failed"], *self.state.evaluation["warnings"]][:5]
            keys = ("problem", "fix_instruction", "expected_effect")
            issues = [{"rule_id": entry["id"], **dict.fromkeys(keys, "x")} for entry in failing]
            return Answer(json.dumps({"issues": issues}))
        holding = self.script.artifacts[min(query.iteration, len(self.script.artifacts)) - 1]
        return Answer("# Artifact\n" + "\n".join(f"<{name}>" for name in sorted(holding)))

    def play(self, sequential: bool = False) -> State:
        how = How(ARTIFACT, sequential)
        return loop.reflex(Run(self), self.state or fresh(self.script), how, self.world())
