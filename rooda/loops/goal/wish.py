"""From what was typed to what is wished for."""

import os
import sys

from rooda.base import files
from rooda.base.json import Json, loads
from rooda.errors import UsageProblem
from rooda.loops.goal import goal_prd, goal_score
from rooda.loops.goal import plan as goal_plan
from rooda.loops.goal.goal_score import COLLEAGUE, TOOL, Scores
from rooda.loops.goal.goal_types import EXECUTION, Criterion
from rooda.loops.goal.plan import Plan
from rooda.loops.goal.planning import Wish
from rooda.loops.goal.ready import Ready, blind, budget, iterations, variable
from rooda.settings.where import Where

SHAPES = {"tool": TOOL, "colleague": COLLEAGUE, "auto": "", "": ""}


def specification(where: Where, typed: Json) -> str:
    """Word for word: the argument, or a file's content."""
    spec, path = typed.get("spec"), typed.get("file")
    if (spec is None) == (path is None):
        raise UsageProblem("Say what is to be done: a specification, or --file FILE; not both.")
    if path is not None:
        spec = files.to_text(sys.stdin.buffer.read()) if path == "-" else _content(where, path)
    if not str(spec).strip():
        raise UsageProblem("The specification is empty.")
    return str(spec)


def _content(where: Where, path: str) -> str:
    place = os.path.join(where.workspace, path) if not os.path.exists(path) else path
    try:
        return files.text(place)
    except OSError as problem:
        raise UsageProblem(f"{path} can't be read: {problem.strerror or problem}.") from None


def wish(ready: Ready, where: Where, typed: Json) -> Wish:
    look = ready.look
    if typed["keep_state"] and typed["delete_state"]:
        raise UsageProblem("--keep-state and --delete-state are mutually exclusive.")
    return Wish(
        spec=specification(where, typed),
        plan=plan(where, typed["plan"]),
        scores=scores(typed["score"]),
        shape=shape(typed["shape"]),
        workflow=(typed["workflow"] or "").upper(),
        evidence=" ".join((typed["evidence"] or "").split()),
        offline=typed["offline"],
        criteria=(*criteria(typed["criterion"], False), *criteria(typed["holdout"], True)),
        gates_off=typed["no_gates"],
        headless=ready.headless,
        high_stakes=typed["high_stakes"],
        keep="keep" if typed["keep_state"] else "delete" if typed["delete_state"] else "",
        iterations=iterations(ready, typed),
        budget=budget(ready, typed),
        limits=ready.setup.budget,
        blind=blind(ready),
        exit_signal_source=str(look.value("exit_signal_source")),
        must_not_judge=bool(look.value("must_not_judge")),
        observation_evidence=str(look.value("observation_evidence")),
    )


def shape(typed: str | None) -> str:
    word = (typed or variable("SHAPE")).lower()
    if word not in SHAPES:
        raise UsageProblem(f"The shape in the environment must be auto, tool or colleague, got {word!r}.")
    return SHAPES[word]


def scores(typed: str | None) -> Scores | None:
    found = goal_score.typed(typed) if typed is not None else None
    if isinstance(found, str):
        raise UsageProblem(f"{found}.")
    return found


def plan(where: Where, path: str | None) -> Plan | None:
    """A plan as JSON or as a list of tasks; what is unclear about it the start says."""
    if path is None:
        return None
    text = _content(where, path)
    if goal_prd.is_list(text):
        return goal_prd.read(text)
    try:
        found = loads(text)
    except ValueError as problem:
        raise UsageProblem(f"{path} is neither JSON nor a list of tasks: {problem}.") from None
    if not isinstance(found, dict):
        raise UsageProblem(f"{path} must hold one JSON object.")
    return goal_plan.read(found)


def criteria(pairs: tuple[str, ...], holdout: bool) -> list[Criterion]:
    found = []
    for pair in pairs:
        name, equals, command = pair.partition("=")
        name = " ".join(name.split())
        if not equals or not name or not command.strip():
            option = "--holdout" if holdout else "--criterion"
            raise UsageProblem(f"{option} {pair!r} is not of the form NAME=COMMAND.")
        found.append(Criterion(name, EXECUTION, command.strip(), holdout=holdout))
    return found
