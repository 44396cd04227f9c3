"""`rooda goal score SPEC`: how clear a specification is; nothing is started."""

import json
from collections.abc import Callable
from typing import Any

import click

from rooda.base.json import Json
from rooda.errors import OK, Interrupted, code_of_signal
from rooda.loops.goal import goal_answer, goal_score, scoring, wording
from rooda.loops.goal import plan as goal_plan
from rooda.loops.goal.goal_score import Scores
from rooda.loops.goal.goal_screen import GoalScreen
from rooda.loops.goal.plan import Plan
from rooda.loops.goal.planning import TRIES, Wish, asked, failed, plan_prompt
from rooda.loops.goal.ready import ready
from rooda.loops.goal.start import opened
from rooda.loops.goal.view import MAKERS
from rooda.loops.goal.wish import specification
from rooda.loops.goal.world import GoalWorld, Told
from rooda.settings.where import Where
from rooda.views.screen import Look


def act(where: Where, typed: Json) -> int:
    spec = specification(where, typed)
    if typed["offline"]:
        return shown(spec, scoring.offline(spec), "offline", typed["json"])
    made = ready(where, typed)
    made = made._replace(screen=GoalScreen(Look("error")))  # the answer is all that is printed
    try:
        with opened(made, where, None, "") as open_:
            plan, told = planned(open_.world, spec, lambda plan: plan.scores is not None)
    except Interrupted as cut:
        return code_of_signal(cut.number)
    if plan.scores is not None:
        return shown(spec, goal_score.quoted(plan.scores, spec), "plan", typed["json"])
    if not told.ok:
        raise failed(told, "Nothing was scored; by the words alone: --offline.")
    return shown(spec, scoring.offline(spec), "offline", typed["json"])


def planned(world: GoalWorld, spec: str, enough: Callable[[Plan], bool]) -> tuple[Plan, Told]:
    """What an agent makes of the specification, asked twice at most, and how its last call went."""
    prompt = plan_prompt(world, Wish(spec), wording.workflow(spec), "", [])
    for attempt in range(1, TRIES + 1):
        told = asked(world, "plan", attempt, prompt)
        plan = goal_plan.read(goal_answer.found(told.text))
        if enough(plan):
            break
    return plan, told


def shown(spec: str, scores: Scores, by: str, as_json: bool) -> int:
    facts: dict[str, Any] = {
        "scores": {name: score._asdict() for name, score in scores._asdict().items()},
        "total": scores.total,
        "shape": goal_score.shape_of(scores.total),
        "workflow": wording.workflow(spec),
        "by": by,
    }
    if as_json:
        click.echo(json.dumps(facts, ensure_ascii=False))
        return OK
    for line in MAKERS["goal.scored"]({**facts, "event": "goal.scored"}):
        click.echo(line.text)
    click.echo(f"Workflow: {facts['workflow']}")
    return OK
