"""`rooda goal cancel`: end the goal for good."""

import json
import os
import shlex
from collections.abc import Callable
from typing import Any

import click

from rooda.base import files
from rooda.base.json import Json, loads
from rooda.base.text import escape_line
from rooda.errors import OK, Interrupted, StateDamaged, Undecided, UsageProblem, code_of_signal
from rooda.git.restore import left_alone
from rooda.loops.goal import answers, checkpoints, kind, run, scoring, wording
from rooda.loops.goal import files as goal_files
from rooda.loops.goal import plan as goal_plan
from rooda.loops.goal import shape as goal_shape
from rooda.loops.goal.breakers import INVALID, decide
from rooda.loops.goal.files import Place
from rooda.loops.goal.plan import Plan
from rooda.loops.goal.planning import TRIES, NotReady, Wish, asked, failed, plan_prompt
from rooda.loops.goal.prompts import closing
from rooda.loops.goal.run import specification
from rooda.loops.goal.scoring import INTENT, Scores
from rooda.loops.goal.start import opened, ready, summarized
from rooda.loops.goal.state import CANCELLED, GoalState
from rooda.loops.goal.store import GoalStore, look, unfinished
from rooda.loops.goal.table import cancelled
from rooda.loops.goal.view import LINES, GoalScreen, box
from rooda.loops.goal.world import CallResult, World
from rooda.processes import lock
from rooda.run.records import Ending
from rooda.settings.where import Where
from rooda.views.screen import Look

LONGEST = 200  # characters of a specification that one would type
FOREVER = 1e9  # seconds; Ctrl+C ends the wait, not the goal


def cancel(where: Where, typed: Json) -> int:
    place = Place(where.workspace)
    running = lock.is_held(place.lock)
    if running:
        _await_pause(place)
    try:
        state = unfinished(place)
    except StateDamaged as problem:
        click.echo(f"{problem.what}; its files are removed.")
        goal_files.forget(place)
        return OK
    if state is None:
        ended = "It ended before that; nothing is left to cancel."
        click.echo(ended if running else "There is no goal to cancel here.")
        return OK
    held = lock.acquire(place.lock)
    if held is None:
        raise Undecided("The goal goes on in another terminal; not cancelled.", "Try again, or: rooda stop goal")
    try:
        _cancel(place, state, bool(typed["keep_state"]))
    finally:
        held.unlock()
    return OK


def _await_pause(place: Place) -> None:
    click.echo("Cancel requested: the running iteration finishes first.")
    request(place, "cancel")
    lock.await_free(place.lock, FOREVER)


def request(place: Place, word: str) -> None:
    """Taken by the loop after its iteration."""
    files.write(place.request, word.encode())


def _typed(spec: str) -> str:
    """As it would be typed; a long text as a file."""
    short = len(spec) <= LONGEST and spec.isprintable()
    return shlex.quote(spec) if short else "--file FILE"


def _cancel(place: Place, state: GoalState, keep: bool) -> None:
    """The report, the status, and then the files, unless the person chose to keep them."""
    state = state._replace(status=CANCELLED, exit_signal=False, pause="", reason="", gate="")
    store = GoalStore(place, lambda event: None)
    store.load(())
    store.carry((), state)
    ended_by = closing(state, Ending(CANCELLED, OK))
    report = [*cancelled(state), f"To restart: rooda goal run {_typed(state.brief.spec)}", *box(ended_by.facts)]
    click.echo("\n".join(map(escape_line, report)))
    summarized(place, state)
    if not keep and state.keep != "keep":
        goal_files.forget(place)


# `rooda goal stop-check`: what a stop hook should say of the state file.


def check(where: Where, typed: Json) -> int:
    """Always valid JSON, and always exit 0: a hook must not fail."""
    path = os.path.join(where.workspace, typed["file"]) if typed["file"] else Place(where.workspace).state
    click.echo(json.dumps(answer(path), ensure_ascii=False))
    return OK


def answer(path: str) -> Json:
    try:
        data = files.read_ours(path)
    except (FileNotFoundError, NotADirectoryError):
        return {"ok": True}
    except OSError:
        return INVALID
    try:
        return decide(loads(data))
    except ValueError:
        return INVALID


# `rooda goal pause`: a running goal pauses after its iteration.


def pause(where: Where, typed: Json) -> int:
    place = Place(where.workspace)
    if not lock.is_held(place.lock):
        click.echo("No goal is running here.")
        return OK
    request(place, "pause")
    click.echo("Pause requested: the running iteration finishes first. Go on with: rooda goal continue")
    return OK


# `rooda goal rollback K`: the work tree as it was before iteration K.


def rollback(where: Where, typed: Json) -> int:
    place = Place(where.workspace)
    state = look(place)
    if state is None:
        raise UsageProblem("There is no goal here.", "Its checkpoints are git refs: git for-each-ref refs/rooda")
    run = state.brief.run
    if typed["k"] is None:
        known = checkpoints.checkpoints(where.workspace, run)
        rows = [f"{name}  {commit[:12]}" for name, commit in known.items()]
        click.echo("\n".join(["Checkpoints, each from before its iteration:", *rows] if rows else ["No checkpoints."]))
        return OK
    held = lock.acquire(place.lock)
    if held is None:
        raise Undecided("The goal is running; nothing was restored.", "Let it pause first: rooda goal pause")
    try:
        done, kept = checkpoints.rolled_back(where.workspace, run, typed["k"])
    finally:
        held.unlock()
    of = f"from before iteration {typed['k']}" if typed["k"].isdecimal() else f"of checkpoint {typed['k']}"
    click.echo(f"Restored the work tree {of}: {len(done.changes)} files.")
    for row in done.changes:
        click.echo(f"  {escape_line(row.path)}")
    for line in left_alone(done):
        click.echo(line)
    click.echo(f"The present was kept as checkpoint {kept}. Branch and index are untouched.")
    return OK


# `rooda goal score SPEC`: how clear a specification is; nothing is started.


def score(where: Where, typed: Json) -> int:
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
        return shown(spec, scoring.quoted(plan.scores, spec), "plan", typed["json"])
    if not told.ok:
        raise failed(told, "Nothing was scored; by the words alone: --offline.")
    return shown(spec, scoring.offline(spec), "offline", typed["json"])


def planned(world: World, spec: str, enough: Callable[[Plan], bool]) -> tuple[Plan, CallResult]:
    """What an agent makes of the specification, asked twice at most, and how its last call went."""
    prompt = plan_prompt(world, Wish(spec), wording.workflow(spec), "", [])
    for attempt in range(1, TRIES + 1):
        told = asked(world, "plan", attempt, prompt)
        plan = goal_plan.read_plan(answers.found(told.text))
        if enough(plan):
            break
    return plan, told


def shown(spec: str, scores: Scores, by: str, as_json: bool) -> int:
    facts: dict[str, Any] = {
        "scores": {name: score._asdict() for name, score in scores._asdict().items()},
        "total": scores.total,
        "shape": scoring.shape_of(scores.total),
        "workflow": wording.workflow(spec),
        "by": by,
    }
    if as_json:
        click.echo(json.dumps(facts, ensure_ascii=False))
        return OK
    for line in LINES["goal.scored"]({**facts, "event": "goal.scored"}):
        click.echo(line.text)
    click.echo(f"Workflow: {facts['workflow']}")
    return OK


# `rooda goal shape SPEC`: SHAPE.md by an agent's plan, for a person to correct before anything is started.


def shape(where: Where, typed: Json) -> int:
    spec, place = run.specification(where, typed), Place(where.workspace)
    if os.path.lexists(place.shape) and not typed["fresh"]:
        raise Undecided(f"{place.shape} is there already; nothing was written.", "To replace it: --fresh")
    try:
        plan = run.plan(where, typed["plan"]) or _asked(where, typed, spec)
    except Interrupted as cut:
        return code_of_signal(cut.number)
    if not plan.criteria:
        raise NotReady("Not written: no criteria were found.", "Say in the specification how the result is checked.")
    scores = scoring.quoted(plan.scores, spec, trusted=bool(typed["plan"])) if plan.scores else None
    scores = scores or scoring.offline(spec)
    if scoring.shape_of(scores.total) == INTENT:
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
    files.make_folder(os.path.dirname(place.shape))
    files.replace(place.shape, files.to_bytes(goal_shape.shape_text(plan, scores.total)))


# `rooda goal status`: where the goal stands, with its criteria as a table.


def status(where: Where, typed: Json) -> int:
    found = kind.facts(where.workspace, goal_files.NAME)
    if typed["as_json"]:
        import json

        click.echo(json.dumps(found[0] if found else {}, indent=2, ensure_ascii=False))
    elif found:
        click.echo("\n".join(map(escape_line, kind.lines(found[0]))))
    else:
        click.echo("There is no goal here. Start one with: rooda goal run SPEC")
    return OK
