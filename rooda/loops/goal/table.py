"""Formats the output of `rooda goal status` and `cancel`, and the summary of an ended or paused goal."""

from collections.abc import Sequence

from rooda.base.json import Json
from rooda.base.text import columns, escape_line, truncate
from rooda.loops.goal import criteria as goal_criteria
from rooda.loops.goal.state import GoalState, cost_doubt, cost_text, money
from rooda.run.ended import of_file


def facts(state: GoalState, running: bool, pid: object) -> Json:
    """Return the goal's state as `--json` prints it."""
    brief = state.brief
    claimed = goal_criteria.claimed(brief.criteria, state.marks)
    rows = [
        {"criterion": each.name, "type": mark.verification, "met": mark.met, "evidence": mark.evidence}
        | {"since": mark.since, "command": each.command, "holdout": each.holdout, "claimed": each.name in claimed}
        for each, mark in zip(brief.criteria, state.marks, strict=True)
    ]
    return {
        "name": "goal",
        "loop": "goal",
        "status": state.status,
        "running": running,
        "pid": pid,
        "reason": state.reason,
        "spec": brief.spec,
        "shape": brief.shape,
        "scores": {name: score.score for name, score in brief.scores._asdict().items()},
        "total": brief.total,
        "workflow": brief.workflow,
        "root_cause": (state.root_cause or brief.evidence) if brief.workflow == "B" else "",
        "reversibility": brief.reversibility,
        "iteration": state.iteration,
        "max_iterations": state.limit,
        "cost": cost_text(state.spent, state.blind),
        "doubt": cost_doubt(state.spent),
        "budget": money(state.budget),
        "steps": list(state.steps),
        "completedSteps": list(state.steps[: state.done]),
        "exit_signal": state.exit_signal,
        "stuckCount": state.stuck,
        "criteria": rows,
        "mustNot": [each._asdict() for each in brief.mustNot],
        "started_at": brief.started_at,
        "updated_at": state.updated_at or brief.started_at,
    }


def lines(found: Json) -> list[str]:
    """Return the goal's state as lines of text: progress, a table of criteria, mustNot entries."""
    step = next(iter(found["steps"][len(found["completedSteps"]) :]), "none")
    rows = [
        f"goal: {_word(found)}",
        f"  Spec: {truncate(' '.join(found['spec'].split()), 100)}",
        f"  Shape: {found['shape']} ({found['total']}/10) | Workflow: {found['workflow']}"
        f" | Type: {found['reversibility']}",
        *_root_cause(found),
        f"  Progress: {len(found['completedSteps'])}/{len(found['steps'])} steps | Step: {step}",
        f"  Iteration: {found['iteration']}/{found['max_iterations']}"
        f" | Cost: {found['cost']}/{found['budget']}{found['doubt']}",
        *(f"  {row}" for row in table(found["criteria"])),
    ]
    if found["mustNot"]:
        rows.append("  Must not:")
        rows += [f"    {each['text']} ({each['violated_if'] or 'not machine-checked'})" for each in found["mustNot"]]
    if not found["running"] and found["status"] in ("paused", "in_progress"):
        rows.append(f"  resume with: {found.get('resume') or 'rooda goal continue'}")
    return rows


def _root_cause(found: Json) -> list[str]:
    """Return a line with the root cause if the goal's workflow is debugging; else no line."""
    return [f"  Root cause: {found['root_cause'] or 'not known yet'}"] if found["workflow"] == "B" else []


def _word(found: Json) -> str:
    word = str(found.get("shown_status") or of_file(found["status"]))
    if found["running"]:
        return f"{word} (pid {found['pid']})"
    return f"{word}: {found['reason']}" if found["reason"] not in ("", word) else word


def table(criteria: Sequence[Json]) -> list[str]:
    """Return the criteria as the lines of a table."""
    rows = [("Criterion", "Type", "Met", "Evidence", "Since")]
    for each in criteria:
        since = f"iteration {each['since']}" if each["since"] else "-"
        name = each["criterion"] + (" (holdout)" if each["holdout"] else "")
        met = "claimed" if each["claimed"] else "yes" if each["met"] else "no"
        rows.append((name, each["type"], met, each["evidence"] or "-", since))
    return columns(rows)


def summary(state: GoalState, box: Sequence[str]) -> str:
    """Return the content of `summary.md`."""
    found = facts(state, False, None)
    reason = f": {escape_line(state.reason)}" if state.reason else ""
    remaining = list(state.steps[state.done :])
    claimed = goal_criteria.claimed(state.brief.criteria, state.marks)
    criteria = [
        f"- {_sign(each['met'] and each['criterion'] not in claimed)} {each['criterion']} ({each['type']}"
        f"{', claimed' if each['criterion'] in claimed else ''}{', ' + each['evidence'] if each['evidence'] else ''})"
        for each in found["criteria"]
    ]
    parts = [
        ("Status", [f"{state.status}{reason}"]),
        ("Iterations", [f"{state.iteration}/{state.limit}"]),
        ("Cost", [f"{found['cost']}/{found['budget']}{found['doubt']}"]),
        ("Completed", _listed(found["completedSteps"])),
        ("Remaining", _listed(remaining)),
        ("Criteria", criteria),
        ("Verdict", ["```", *box, "```"]),
    ]
    return "# Summary\n" + "".join(f"\n## {title}\n\n" + "\n".join(rows) + "\n" for title, rows in parts)


def _sign(good: bool) -> str:
    return "✓" if good else "✗"


def _listed(names: Sequence[str]) -> list[str]:
    return [f"- {name}" for name in names] or ["none"]


def cancelled(state: GoalState) -> list[str]:
    """Return the lines that `rooda goal cancel` prints."""
    marks = zip(state.brief.criteria, state.marks, strict=True)
    claimed = goal_criteria.claimed(state.brief.criteria, state.marks)
    return [
        "Loop cancelled.",
        f"Completed: {state.iteration} iterations, {cost_text(state.spent, state.blind)} cost",
        "Accomplished:",
        *(f"  {row}" for row in _listed(state.steps[: state.done])),
        "Remaining:",
        *(f"  {row}" for row in _listed(state.steps[state.done :])),
        "Criteria status:",
        *(
            f"  ✗ {each.name} (claimed, not verified)" if each.name in claimed else f"  {_sign(mark.met)} {each.name}"
            for each, mark in marks
        ),
    ]
