"""The four kinds of loops, a row each: how a small one is started and resumed, and which files it writes.

Data only, so that the benchmarks use it too. What the tests' scripted agent answers is in `loops.py`.
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

Json = dict[str, Any]
Words = tuple[str, ...]
TASK = "A page"
SPEC = "Make it"
RULE: Json = {"id": "a.correctness.one", "severity": "fail", "description": "one"}
STEPS: Json = {"plan": ["a", "b", "c"]}  # the answer of a reflex loop's PLAN
CLAIM = "---LOOP_STATUS---\nEXIT_SIGNAL: true\n---END_STATUS---\n"


class Kind(NamedTuple):
    """One kind of loop."""

    name: str
    begin: Callable[[int, str], Words]  # (most iterations, name of the loop): a fresh start that asks nothing
    resume: Words
    public: Words  # where its public files are
    whole: Words = ()  # JSON files that are complete at any moment
    lines: Words = ()  # files of JSON lines; the last one may be torn


def ooda(most: int, name: str = "build") -> Words:
    return name, "-n", str(most)


def reflex(most: int, name: str = "page", rules: str = "rules.json") -> Words:
    limit = str(most)
    confirmed = ("--confirm-criteria", "--max-iterations", limit, "--confirm-max-iterations", limit)
    return "reflex", "new", TASK, "--rules", rules, *confirmed, "--alias", name


def flow(most: int = 0, name: str = "") -> Words:
    """Its limits are in the flow file."""
    return "flow", "run", "do it"


def goal(most: int = 0, name: str = SPEC) -> Words:
    limit = ("--iterations", str(most), "--force-limits") if most else ()
    return "goal", "run", name, *limit


_LOOP = ".ai-factory/evolution/"
KINDS = {
    kind.name: kind
    for kind in (
        Kind("ooda", ooda, ("resume",), (".rooda/state",), (".rooda/state/*.json",)),
        Kind(
            "reflex",
            reflex,
            ("reflex", "resume"),
            (".ai-factory",),
            (f"{_LOOP}*/run.json", f"{_LOOP}current.json"),
            (f"{_LOOP}*/history.jsonl",),
        ),
        Kind("flow", flow, ("flow", "resume"), (".ai-loop", ".git")),
        Kind(
            "goal",
            goal,
            ("goal", "continue"),
            (".loop",),
            (".loop/state.json", ".loop/run.json"),
            (".loop/iterations.jsonl",),
        ),
    )
}


def rules() -> str:
    """One rule, for a rules file."""
    return json.dumps([RULE])


def plan(score: int = 1, steps: int = 1, quote: str = "") -> Json:
    """One criterion, and steps of which the last one makes it true; an agent's plan quotes its specification."""
    scored = {"score": score, "quote": quote} if quote else score
    return {
        "scores": dict.fromkeys(("outcome", "scope", "constraints", "success", "done"), scored),
        "reversibility": "2A",
        "workflow_gate": {"kind": "library_search", "evidence": "No library exists because this is a test."},
        "criteria": [{"name": "made", "command": "test -f made"}],
        "steps": [*({"name": f"look {number}"} for number in range(1, steps)), {"name": "make", "criteria": ["made"]}],
    }
