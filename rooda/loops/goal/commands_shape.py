"""`rooda goal shape SPEC`: SHAPE.md by an agent's plan, for a person to correct before anything is started."""

import os

import click

from rooda.base import files
from rooda.base.json import Json
from rooda.errors import OK, Interrupted, Undecided, code_of_signal
from rooda.loops.goal import files as goal_files
from rooda.loops.goal import goal_score, goal_shape_text, scoring, wish
from rooda.loops.goal.files import Place
from rooda.loops.goal.goal_score import INTENT, Scores
from rooda.loops.goal.goal_screen import GoalScreen
from rooda.loops.goal.plan import Plan
from rooda.loops.goal.planning import NotReady, failed
from rooda.loops.goal.ready import ready
from rooda.loops.goal.score import planned
from rooda.loops.goal.start import opened
from rooda.settings.where import Where
from rooda.views.screen import Look


def act(where: Where, typed: Json) -> int:
    spec, place = wish.specification(where, typed), Place(where.workspace)
    if os.path.lexists(place.shape) and not typed["fresh"]:
        raise Undecided(f"{place.shape} is there already; nothing was written.", "To replace it: --fresh")
    try:
        plan = wish.plan(where, typed["plan"]) or _asked(where, typed, spec)
    except Interrupted as cut:
        return code_of_signal(cut.number)
    if not plan.criteria:
        raise NotReady("Not written: no criteria were found.", "Say in the specification how the result is checked.")
    scores = goal_score.quoted(plan.scores, spec, trusted=bool(typed["plan"])) if plan.scores else None
    scores = scores or scoring.offline(spec)
    if goal_score.shape_of(scores.total) == INTENT:
        raise NotReady(
            f"Not written: the specification scores {scores.total}/10; its intent must be clarified first.",
            "See what is missing: rooda goal score SPEC",
        )
    _written(place, plan, scores)
    click.echo(f"[SHAPE] Generated .loop/shape/SHAPE.md | {len(plan.criteria)} criteria | {len(plan.must_not)} mustNot")
    return OK


def _asked(where: Where, typed: Json, spec: str) -> Plan:
    made = ready(where, typed)
    with opened(made._replace(screen=GoalScreen(Look("error"))), where, None, "") as open_:
        plan, told = planned(open_.world, spec, lambda plan: bool(plan.criteria and plan.scores))
    if not plan.criteria and not told.ok:
        raise failed(told, "Nothing was written.")
    return plan


def _written(place: Place, plan: Plan, scores: Scores) -> None:
    goal_files.ready(place)
    files.folder(os.path.dirname(place.shape))
    files.replace(place.shape, files.to_bytes(goal_shape_text.text(plan, scores.total)))
