"""The reflex loop once more, written from the specification's text alone: what must happen for given answers.

Nothing of rooda is imported. Decimal texts are added up as integers of a millionth, so that no arithmetic is shared.
"""

from decimal import Decimal
from typing import NamedTuple

BAD = None  # an answer that breaks the contract


class Rule(NamedTuple):
    id: str
    severity: str
    weight: Decimal
    phase: str


class Script(NamedTuple):
    """Every answer: `artifacts[n]` is the set of rules that hold in iteration n+1; `bad` the calls that go wrong."""

    rules: tuple[Rule, ...]
    thresholds: dict[str, Decimal]
    maximum: int
    artifacts: tuple[frozenset[str], ...]
    bad: frozenset[tuple[str, int]]  # (phase, number of its call)


class Result(NamedTuple):
    events: list[str]
    calls: dict[str, int]
    status: str
    reason: str
    iteration: int
    phase: str
    score: Decimal | None  # None: nothing was evaluated
    passed: bool
    stagnation: int


class Failed(Exception):
    """A phase broke its contract twice."""


class Reference:
    """One run, step by step."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.events = ["run_started"]
        self.calls: dict[str, int] = {}
        self.iteration, self.level = 1, "A"
        self.last: tuple[Decimal, Decimal] | None = None  # passed weight and whole weight of the latest evaluation
        self.passed, self.stagnation = False, 0

    def phase(self, *names: str) -> None:
        """Ask for these phases at once; those that break the contract once more."""
        pending, tries = list(names), dict.fromkeys(names, 0)
        while pending:
            broken = []
            for name in pending:
                self.calls[name] = self.calls.get(name, 0) + 1
                if (name, self.calls[name]) in self.script.bad:
                    broken.append(name)
            for name in pending:
                if name not in broken and name in DONE:
                    self.events.append(DONE[name])
            for name in broken:
                self.events.append("phase_error")
                tries[name] += 1
            if any(tries[name] == 2 for name in broken):
                raise Failed
            pending = broken

    def evaluate(self) -> tuple[str, bool]:
        """What follows, and nothing else."""
        rules = [rule for rule in self.script.rules if self.level == "B" or rule.phase == "A"]
        holding = self.script.artifacts[min(self.iteration, len(self.script.artifacts)) - 1]
        whole = sum((rule.weight for rule in rules), Decimal(0))
        held = sum((rule.weight for rule in rules if rule.id in holding), Decimal(0))
        now = (held, whole) if whole else (Decimal(1), Decimal(1))
        blocked = any(rule.severity == "fail" and rule.id not in holding for rule in rules)
        before = self.last or (Decimal(0), Decimal(1))
        # held/whole >= threshold and delta < 0.02, both multiplied out: no division, nothing is rounded
        self.passed = now[0] >= self.script.thresholds[self.level] * now[1] and not blocked
        stale = now[0] * before[1] - before[0] * now[1] < Decimal("0.02") * now[1] * before[1]
        self.last = now
        self.events.append("evaluation_done")
        if self.passed:
            return ("threshold_reached" if self.level == "B" else "switch"), blocked
        if self.level == "B" and not blocked:
            return "no_major_issues", blocked
        if stale and not blocked:
            self.stagnation += 1
        if self.stagnation >= 2:
            return "stagnation", blocked
        return ("iteration_limit" if self.iteration == self.script.maximum else "refine"), blocked

    def run(self) -> Result:
        try:
            return self.result(self.loop())
        except Failed:
            self.events.append("failed")
            return self.result("phase_error")

    def loop(self) -> str:
        while True:
            self.phase("PLAN")
            self.phase("PRODUCE", "PREPARE")
            what, _ = self.evaluate()
            if what == "switch":
                self.events.append("phase_switched")
                self.level, self.stagnation = "B", 0
                self.phase("PREPARE")
                what, _ = self.evaluate()
            if what != "refine":
                self.events.append("stopped")
                return what
            self.phase("CRITIQUE")
            self.phase("REFINE")
            self.iteration += 1
            self.events.append("iteration_advanced")

    def result(self, reason: str) -> Result:
        status = {"threshold_reached": "completed", "no_major_issues": "completed", "phase_error": "failed"}
        score = None if self.last is None else self.last[0] / self.last[1]
        ended = status.get(reason, "stopped")
        found = (ended, reason, self.iteration, self.level, score, self.passed, self.stagnation)
        return Result(self.events, self.calls, *found)


DONE = {
    "PLAN": "plan_created",
    "PRODUCE": "artifact_created",
    "PREPARE": "checks_prepared",
    "CRITIQUE": "critique_done",
    "REFINE": "refinement_done",
}
