"""A reflex loop in memory: scripted answers, a store that is a list of states, and a trace of every effect."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rooda.loops.kernel import Run, Saved, Scope
from rooda.loops.reflex import history, loop
from rooda.loops.reflex.history import Artifact
from rooda.loops.reflex.state import PLAN, RUNNING, State
from rooda.loops.reflex.world import Answer, CheckResult, Concurrent, LoopOptions, Query, World
from rooda.run.event_records import Event

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


class Memory(World):
    """The effects and the store of one loop."""

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
    def emit(self, event: Event) -> None:
        self.told.append((event.NAME, event.facts))

    def signalled(self) -> int:
        return 0

    def breaches(self, state: State, phase: str) -> list[str]:
        return history.breaches(self.history, state, phase)

    def recent_history(self, state: State) -> list[str]:
        return []

    def fixes(self, state: State) -> list[dict[str, Any]]:
        return history.fixes(self.history, state)

    def read_artifact(self) -> str | None:
        return self.text

    def stage_artifact(self, text: str) -> None:
        self.staged = text

    def hash_artifact(self, text: str) -> str:
        return f"hash of {text}"

    def may_run(self, commands: Sequence[str]) -> bool:
        return True

    def run_checks(self, state: State, commands: Sequence[str]) -> list[CheckResult]:
        return [CheckResult(True, "exit 0") for _ in commands]

    def search(self, pattern: str, text: str) -> str:
        return "missing"

    def changed_sections(self, state: State) -> list[str] | None:
        return None

    def show_artifact(self) -> None:
        self.trace.append("show")

    def redacted(self, text: str) -> str:
        return text

    def compose(self, phase: str, values: Mapping[str, str]) -> str:
        return phase

    def record_breach(self, state: State, phase: str, attempt: int, error: str, excerpt: str) -> None:
        event = history.breach(state, phase, attempt, error, excerpt)
        self.history.append({**event._asdict(), "ts": "now"})

    def ask(self, queries: Sequence[Query], concurrent: Concurrent | None = None) -> list[Answer]:
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
        options = LoopOptions(ARTIFACT, sequential)
        return loop.reflex(Run(self), self.state or fresh(self.script), options, self)
