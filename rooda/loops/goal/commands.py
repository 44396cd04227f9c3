"""Implements the subcommands of `rooda goal`, except run and continue."""

import json
import os
import shlex
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing, nullcontext
from typing import TYPE_CHECKING, Any

from rooda.agents.command import base_environment
from rooda.base import files
from rooda.base.json import Json, loads
from rooda.base.text import counted, escape_line
from rooda.errors import OK, Interrupted, StateDamaged, Undecided, UsageProblem, code_of_signal
from rooda.git.restore import left_alone
from rooda.loops import configuration, signed
from rooda.loops.goal import answers, checkpoints, criteria, foreign, kind, scoring, table
from rooda.loops.goal import files as goal_files
from rooda.loops.goal import plan as goal_plan
from rooda.loops.goal import shape as goal_shape
from rooda.loops.goal.arguments import plan_option, prepare, specification
from rooda.loops.goal.criteria import EXECUTION, MEASUREMENT, OBSERVATION, REVIEW, RUN, Criterion, Mark, evidence_name
from rooda.loops.goal.effects import OUTPUT
from rooda.loops.goal.events import KIND
from rooda.loops.goal.files import NAME, Place
from rooda.loops.goal.plan import Plan
from rooda.loops.goal.planning import TRIES, NotReady, Request, call_agent, plan_failed, plan_prompt
from rooda.loops.goal.prompts import run_ended
from rooda.loops.goal.rules import INVALID, decide
from rooda.loops.goal.scoring import INTENT, Scores
from rooda.loops.goal.start import open_session, write_summary
from rooda.loops.goal.state import CANCELLED, GoalState
from rooda.loops.goal.store import GoalStore, load, unfinished
from rooda.loops.goal.view import LINES, GoalScreen, box
from rooda.loops.goal.world import CallResult, World
from rooda.loops.overview import Overview, as_json, for_people
from rooda.processes import lock, supervise
from rooda.processes.regex import matches
from rooda.processes.signals import Signals
from rooda.run import history
from rooda.run.event_records import Event, FilesRestored, Problem
from rooda.run.records import Ending
from rooda.run.session import walls_of
from rooda.settings.lookup import Lookup, lookup_kind
from rooda.settings.setup import setup_of
from rooda.settings.where import Where
from rooda.views.lines import listed
from rooda.views.say import say
from rooda.views.screen import ScreenOptions

if TYPE_CHECKING:
    from rooda.run.walls import SessionWalls

LONGEST = 200  # characters; a longer specification is shown as --file
FOREVER = 1e9  # seconds; Ctrl+C ends the wait, not the goal


def cancel(where: Where, typed: Json) -> int:
    place = Place(where.workspace)
    running = lock.is_held(place.lock)
    if running:
        _wait_for_pause(place)
    held = lock.acquire(place.lock)
    if held is None:
        raise Undecided(
            "The goal is still running in another terminal; it was not cancelled.", "Try again, or: rooda stop goal"
        )
    try:
        if end(place, bool(typed["keep_state"])):
            history.note_cancel(where.workspace, NAME, KIND.name)
        else:
            say("The goal ended before it could be cancelled." if running else "There is no goal to cancel here.")
    finally:
        held.unlock()
    return OK


def end(place: Place, keep: bool) -> str:
    """Cancel a goal that is not running; return a sentence about what is kept, "" if there is no unfinished goal."""
    try:
        state = unfinished(place)
    except StateDamaged as problem:
        foreign.refuse(place)
        say(f"{problem.what}; deleting the goal's files.")
        _say_kept(place, foreign.keep_state(place))
        goal_files.delete_state(place)
        return "Its run is kept. See: rooda logs goal"
    if state is None:
        return ""
    _end_goal(place, state, keep)
    return "Its report is kept: .loop/summary.md"


def _say_kept(place: Place, path: str) -> None:
    if path:
        say(f"Kept, because another program may have written it: {os.path.relpath(path, place.workspace)}")


def _wait_for_pause(place: Place) -> None:
    say("Cancel requested: the running iteration finishes first.")
    goal_files.write_request(place, "cancel")
    lock.await_free(place.lock, FOREVER)


def _argument(spec: str) -> str:
    """Return the specification quoted for the shell, or "--file FILE" if it is long."""
    short = len(spec) <= LONGEST and spec.isprintable()
    return shlex.quote(spec) if short else "--file FILE"


def _end_goal(place: Place, state: GoalState, keep: bool) -> None:
    """Cancel the goal: save its final status, print a report, and delete the state files unless `keep` is set."""
    state = state._replace(status=CANCELLED, exit_signal=False, pause="", reason="", gate="")
    store = GoalStore(place, lambda event: None)
    store.load(())
    store.carry((), state)
    ended_by = run_ended(state, Ending(CANCELLED, OK))
    report = [
        *table.cancelled(state),
        f"To restart: rooda goal run {_argument(state.brief.spec)}",
        *box(ended_by.facts),
    ]
    say("\n".join(map(escape_line, report)))
    write_summary(place, state)
    if not keep and state.keep != "keep":
        goal_files.delete_state(place)


# `rooda goal stop-check`


def stop_check(where: Where, typed: Json) -> int:
    """Print the stop hook's answer, which is always valid JSON, and return 0, because a hook must not fail."""
    path = os.path.join(where.workspace, typed["file"]) if typed["file"] else Place(where.workspace).state
    say(json.dumps(answer(path), ensure_ascii=False))
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


# `rooda goal pause`


def pause(where: Where, typed: Json) -> int:
    place = Place(where.workspace)
    if not lock.is_held(place.lock):
        say("No goal is running here.")
        return OK
    goal_files.write_request(place, "pause")
    say("Pause requested: the running iteration finishes first. Resume with: rooda goal continue")
    return OK


# `rooda goal rollback K`


def rollback(where: Where, typed: Json) -> int:
    place = Place(where.workspace)
    state = load(place)
    if state is None:
        raise UsageProblem(
            "There is no goal here.", "Checkpoints are git refs; list them with: git for-each-ref refs/rooda"
        )
    run = state.brief.run
    if typed["k"] is None:
        known = checkpoints.checkpoints(where.workspace, run)
        rows = [f"{name}  {commit[:12]}" for name, commit in known.items()]
        say("\n".join(["Checkpoints, each taken before its iteration:", *rows] if rows else ["No checkpoints."]))
        return OK
    held = lock.acquire(place.lock)
    if held is None:
        raise Undecided("The goal is running; nothing was restored.", "Pause it first: rooda goal pause")
    try:
        done, kept = checkpoints.rolled_back(where.workspace, run, typed["k"])
    finally:
        held.unlock()
    of = f"from before iteration {typed['k']}" if typed["k"].isdecimal() else f"of checkpoint {typed['k']}"
    say(f"Restored the work tree {of}: {counted(len(done.changes), 'file')}.")
    for row in done.changes:
        say(f"  {escape_line(row.path)}")
    for line in left_alone(done):
        say(line)
    say(f"The work tree before the rollback was kept as checkpoint {kept}. Branch and index are unchanged.")
    return OK


# `rooda goal score SPEC`


def score(where: Where, typed: Json) -> int:
    spec = specification(where, typed)
    if typed["offline"]:
        return _print_score(spec, scoring.score_words(spec), "offline", typed["json"])
    prepared = prepare(where, typed)
    prepared = prepared._replace(screen=GoalScreen(ScreenOptions("error")))  # print nothing but the answer
    try:
        with open_session(prepared, where, None, "") as opened:
            plan, result = planned(opened.world, spec, lambda plan: plan.scores is not None)
    except Interrupted as cut:
        return code_of_signal(cut.number)
    if plan.scores is not None:
        return _print_score(spec, scoring.checked_quotes(plan.scores, spec), "plan", typed["json"])
    if not result.ok:
        raise plan_failed(result, "Nothing was scored. To score by the words alone, add --offline.")
    return _print_score(spec, scoring.score_words(spec), "offline", typed["json"])


def planned(world: World, spec: str, enough: Callable[[Plan], bool]) -> tuple[Plan, CallResult]:
    """Ask the agent for a plan, at most twice, until `enough` accepts one; return the last plan and its call result."""
    prompt = plan_prompt(world, Request(spec), scoring.workflow(spec), "", [])
    for attempt in range(1, TRIES + 1):
        result = call_agent(world, "plan", attempt, prompt)
        plan = goal_plan.read_plan(answers.find_json(result.text))
        if enough(plan):
            break
    return plan, result


def _print_score(spec: str, scores: Scores, by: str, as_json: bool) -> int:
    facts: dict[str, Any] = {
        "scores": {name: score._asdict() for name, score in scores._asdict().items()},
        "total": scores.total,
        "shape": scoring.shape_of(scores.total),
        "workflow": scoring.workflow(spec),
        "by": by,
    }
    if as_json:
        say(json.dumps(facts, ensure_ascii=False))
        return OK
    for line in LINES["goal.scored"]({**facts, "event": "goal.scored"}):
        say(line.text)
    say(f"Workflow: {facts['workflow']}")
    return OK


# `rooda goal shape SPEC`


def shape(where: Where, typed: Json) -> int:
    spec, place = specification(where, typed), Place(where.workspace)
    if os.path.lexists(place.shape) and not typed["fresh"]:
        raise Undecided(f"{place.shape} already exists; nothing was written.", "To replace it, add --fresh.")
    try:
        plan = plan_option(where, typed["plan"]) or _plan_for_shape(where, typed, spec)
    except Interrupted as cut:
        return code_of_signal(cut.number)
    if plan.no_json:
        raise NotReady(f"Not written: {goal_plan.NOT_JSON}.", "See the answer: rooda logs goal")
    if not plan.criteria:
        raise NotReady(
            "Not written: no criteria were found.", "Add to the specification how the result can be checked."
        )
    scores = scoring.checked_quotes(plan.scores, spec, trusted=bool(typed["plan"])) if plan.scores else None
    scores = scores or scoring.score_words(spec)
    if scoring.shape_of(scores.total) == INTENT:
        raise NotReady(
            f"Not written: the specification scores {scores.total}/10; its intent must be clarified first.",
            "See what is missing: rooda goal score SPEC",
        )
    _write_shape(place, plan, scores)
    say(f"[SHAPE] Generated .loop/shape/SHAPE.md | {len(plan.criteria)} criteria | {len(plan.must_not)} mustNot")
    return OK


def _plan_for_shape(where: Where, typed: Json, spec: str) -> Plan:
    prepared = prepare(where, typed)
    with open_session(prepared._replace(screen=GoalScreen(ScreenOptions("error"))), where, None, "") as opened:
        plan, result = planned(opened.world, spec, lambda plan: bool(plan.criteria and plan.scores))
    if not plan.criteria and not result.ok:
        raise plan_failed(result, "Nothing was written.")
    return plan


def _write_shape(place: Place, plan: Plan, scores: Scores) -> None:
    goal_files.make_ready(place)
    files.make_folder(os.path.dirname(place.shape))
    files.replace(place.shape, files.to_bytes(goal_shape.shape_text(plan, scores.total)))


# `rooda goal status`


def status(where: Where, typed: Json) -> int:
    found = kind.facts(where.workspace, goal_files.NAME)
    if typed["as_json"]:
        say(json.dumps(as_json(where, KIND.name, found), indent=2, ensure_ascii=False))
    elif found:
        facts = for_people(*Overview(where).found(KIND.name, found[0]))
        say("\n".join(map(escape_line, kind.lines(facts))))
    else:
        say("There is no goal here. Start one with: rooda goal run SPEC")
    return OK


# `rooda goal verify`


def verify(where: Where, typed: Json) -> int:
    place = Place(where.workspace)
    signed.require(where.workspace, goal_files.NAME, goal_files.NAME)
    state = unfinished(place)
    if state is None:
        raise UsageProblem("There is no unfinished goal here.", "Start one: rooda goal run SPEC")
    name = typed["name"]
    if name is not None and name not in [each.name for each in state.brief.criteria]:
        known = ", ".join(each.name for each in state.brief.criteria)
        raise UsageProblem(f"There is no criterion {name!r}. Available: {known}.")
    methods = [name for name in ("command", "observed", "judge") if typed[name] not in (None, False)]
    if empty := [method for method in methods if not str(typed[method]).strip()]:
        raise UsageProblem(f"--{empty[0]} is empty.")
    if len(methods) > 1 or (methods and name is None) or (typed["expect"] and methods != ["command"]):
        raise UsageProblem(
            "Name one criterion, and one of --command, --observed, --judge (--expect is only for --command)."
        )
    if methods:
        state = _with_new_method(place, state, name, typed)
    return _print_results(where, state, name, typed["as_json"])


def _with_new_method(place: Place, state: GoalState, name: str, typed: Json) -> GoalState:
    """Save the criterion's new verification method and return the new state."""
    held = lock.acquire(place.lock)
    if held is None:
        raise Undecided("The goal is running; its criteria were not changed.", "Pause it first: rooda goal pause")
    try:
        pairs = [
            (_changed_criterion(place.workspace, state, each, typed) if each.name == name else (each, mark))
            for each, mark in zip(state.brief.criteria, state.marks, strict=True)
        ]
        criteria, marks = tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)
        state = state._replace(brief=state.brief._replace(criteria=criteria), marks=marks)
        store = GoalStore(place, lambda event: None)
        store.load(())
        store.carry((), state)
    finally:
        held.unlock()
    return state


def _changed_criterion(workspace: str, state: GoalState, criterion: Criterion, typed: Json) -> tuple[Criterion, Mark]:
    if command := typed["command"]:
        expect = typed["expect"] or ""
        if fault := criteria.fault(expect):
            raise UsageProblem(f"--expect: {fault}.")
        kind = MEASUREMENT if criteria.is_bound(expect) else EXECUTION
        fresh = criterion._replace(verification=kind, command=command, expect=expect)
        return fresh, Mark(False, kind)
    if typed["judge"]:
        return criterion._replace(verification=REVIEW), Mark(False, REVIEW)
    name = evidence_name(state.iteration, criterion.name, sys.getfilesystemencoding())
    path = os.path.join(".loop", "evidence", name)
    files.make_folder(os.path.join(workspace, os.path.dirname(path)))
    files.write(os.path.join(workspace, path), files.to_bytes(f"observed: {typed['observed']}\n"))
    seen = Mark(True, OBSERVATION, path, state.iteration, state.iteration + 1)
    return criterion._replace(verification=OBSERVATION), seen


def _run_once(walled: "SessionWalls | None", spec: supervise.Spec, signals: Signals) -> supervise.ProcessResult:
    """Run a command outside of a session; restore guarded files that it changes, and report that."""
    if walled is None:
        return supervise.run(spec, signals)

    def tell(event: Event) -> None:
        if isinstance(event, FilesRestored):
            say(f"Restored guarded files: {listed(event.paths)}; changed versions: {event.kept}", to_stderr=True)
        elif isinstance(event, Problem):
            say(event.text, to_stderr=True)

    aside = os.path.join(tempfile.gettempdir(), f"rooda-{os.getpid()}")
    with walled.watched(aside, tell):
        return supervise.run(walled.around(spec), signals)


def _print_results(where: Where, state: GoalState, name: str | None, as_json: bool) -> int:
    """Run the verification commands and print their results without changing the state."""
    look = lookup_kind(configuration.load(where.workspace, where.config), "goal", {})
    rows = table.facts(state, False, None)["criteria"]
    walled = walls_of(setup_of(look.settings, look), where.workspace, base_environment())
    ending = closing(walled) if walled else nullcontext()
    with Signals() as signals, ending, tempfile.TemporaryDirectory(prefix="rooda-") as folder:
        for row, criterion in zip(rows, state.brief.criteria, strict=True):
            if criterion.kind in RUN and name in (None, criterion.name):
                spec = _command_spec(where, look, criterion.command, os.path.join(folder, "output"))
                done = _run_once(walled, spec, signals)
                if signals.count:
                    say("Interrupted.", to_stderr=True)
                    return code_of_signal(signals.first)
                output = files.to_text(files.tail(spec.output, OUTPUT))
                met = done.ended == "exit" and done.code == 0
                row["met"] = met and criteria.holds(criterion.expect, output, matches)
                row["evidence"] = "now: timeout" if done.ended == "timeout" else f"now: exit {done.code}"
    wanted = [row for row in rows if name in (None, row["criterion"])]
    say(
        json.dumps(wanted, indent=2, ensure_ascii=False)
        if as_json
        else "\n".join(map(escape_line, table.table(wanted)))
    )
    return OK


def _command_spec(where: Where, look: Lookup, command: str, output: str) -> supervise.Spec:
    """Return the command's process spec, with the same limits as in the loop."""
    return supervise.Spec(
        argv=("/bin/sh", "-c", command),
        cwd=where.workspace,
        env=base_environment(),
        output=output,
        timeout=float(look.value("verify_timeout")),
        grace=float(look.value("kill_grace")),
        cap=int(look.value("max_output_buffer")),
    )
