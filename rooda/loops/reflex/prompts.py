"""Builds the values that fill in the prompt of each phase, and the event that reports an evaluation."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rooda.base.json import Json
from rooda.loops.reflex.events import ReflexBlock
from rooda.loops.reflex.scoring import hundredths
from rooda.loops.reflex.state import State
from rooda.run.placeholders import substitute

NOTHING = "none"
SHOWN = 5  # issues in a compact critique


def _head(state: State) -> dict[str, str]:
    return {"run_id": state.run_id, "iteration": str(state.iteration), "level": state.phase}


def _goal(state: State) -> dict[str, str]:
    return {"task": state.task["prompt"], "ideal": state.task.get("ideal_result") or NOTHING}


def plan(state: State, recent: Sequence[str], fixes: Sequence[Json]) -> dict[str, str]:
    """Return the values for PLAN. `fixes`: the issues that the last REFINE has already addressed."""
    return {
        **_head(state),
        "task": state.task["prompt"],
        "rules": _json(state.active),
        "history": "\n".join(recent) or NOTHING,
        "failures": _failures(state) or NOTHING,
        "fixes": _json(fixes) if fixes else NOTHING,
    }


def produce(state: State, previous: str | None) -> dict[str, str]:
    before = "" if previous is None else f"\n## Previous artifact\n\n{previous}"
    shared = {"task": state.task["prompt"], "plan": _steps(state), "rules": _json(state.active)}
    return {**_head(state), **shared, "previous": before}


def prepare(state: State, artifact: str) -> dict[str, str]:
    shared = {"task": state.task["prompt"], "plan": _steps(state), "rules": _json(state.active)}
    return {**_head(state), **shared, "artifact_path": artifact}


def evaluate(state: State, text: str, rules: Sequence[Json]) -> dict[str, str]:
    checks = state.prepared_checks["checks"] if state.prepared_checks else []
    return {**_head(state), **_goal(state), "artifact": text, "checks": _json(checks), "rules": _json(rules)}


def critique(state: State, text: str) -> dict[str, str]:
    return {**_head(state), **_goal(state), "artifact": text, "failures": _failures(state) or NOTHING}


def refine(state: State, text: str) -> dict[str, str]:
    return {**_head(state), **_goal(state), "artifact": text, "issues": _json(state.critique["issues"])}


def again(prompt: str, error: str) -> str:
    """Return the prompt for a second request, which says what was wrong with the first answer."""
    breach = f"It can't be used: {error}\nAnswer again, in this output format.\n"
    return f"{prompt.rstrip()}\n\n## Your previous answer\n\n{breach}"


def _steps(state: State) -> str:
    return "\n".join(f"{number}. {step}" for number, step in enumerate(state.plan, 1)) or NOTHING


def _failures(state: State) -> str:
    """Return the failed and warning rules of the latest evaluation as JSON; "" if there are none."""
    if not state.evaluation:
        return ""
    found: list[Json] = [*state.evaluation["failed"], *state.evaluation["warnings"]]
    return _json(found) if found else ""


def _json(value: Sequence[Any]) -> str:
    """Format a JSON list with one entry per line."""
    if not value:
        return "[]"
    return "[\n" + ",\n".join(json.dumps(each, ensure_ascii=False) for each in value) + "\n]"


def block(before: State, after: State, artifact: str, changed: list[str] | None) -> ReflexBlock:
    """Return the event that reports an evaluation. `before` has the plan and the level that was judged."""
    found: Mapping[str, Any] = after.evaluation
    issues = after.critique["issues"] if after.critique else []
    fixes = [[issue["rule_id"], issue["fix_instruction"]] for issue in issues]
    if not fixes and not found["passed"]:
        fixes = [[entry["id"], entry["message"]] for entry in (*found["failed"], *found["warnings"])][:SHOWN]
    return ReflexBlock(
        iteration=before.iteration - 1,
        number=before.iteration,
        max_iterations=before.max_iterations,
        level=before.phase,
        score=hundredths(found["score"]),
        passed=found["passed"],
        plan=" · ".join(before.plan) or NOTHING,
        hash=found.get("artifact_hash", "")[:8],
        changed=changed,
        failed=[entry["id"] for entry in found["failed"]],
        warnings=[entry["id"] for entry in found["warnings"]],
        artifact=artifact,
        fixes=fixes,
    )


# The preamble of every phase's prompt.
PREAMBLE = """\
You are executing phase {{phase}} for run {{run_id}}, iteration {{iteration}}, phase level {{level}}.
Return only the required output format.
Do not add explanations or commentary outside the specified format.

"""


def text(phase: str, template: str, values: Mapping[str, str]) -> str:
    return substitute(PREAMBLE + template, {**values, "phase": phase}, f"builtin:reflex/{phase.lower()}.md")
