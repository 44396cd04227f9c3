"""`rooda goal verify`: run the verification commands now, or decide how one criterion is verified."""

import json
import os
import sys
import tempfile

import click

from rooda.base import files
from rooda.base.json import Json
from rooda.base.text import escape_line
from rooda.errors import OK, Undecided, UsageProblem, code_of_signal
from rooda.loops import configuration
from rooda.loops.goal import criteria
from rooda.loops.goal.criteria import EXECUTION, MEASUREMENT, OBSERVATION, REVIEW, RUN, Criterion, Mark, evidence_name
from rooda.loops.goal.effects import OUTPUT
from rooda.loops.goal.files import Place
from rooda.loops.goal.state import GoalState
from rooda.loops.goal.store import GoalStore, unfinished
from rooda.loops.goal.table import facts, table
from rooda.processes import lock
from rooda.processes.regex import matches
from rooda.processes.signals import Signals
from rooda.processes.supervise import Spec, run
from rooda.settings.lookup import Lookup, lookup_kind
from rooda.settings.where import Where


def act(where: Where, typed: Json) -> int:
    place = Place(where.workspace)
    state = unfinished(place)
    if state is None:
        raise UsageProblem("There is no goal here whose criteria could be verified.", "Start one: rooda goal run SPEC")
    name = typed["name"]
    if name is not None and name not in [each.name for each in state.brief.criteria]:
        known = ", ".join(each.name for each in state.brief.criteria)
        raise UsageProblem(f"There is no criterion {name!r} (there are: {known}).")
    ways = [way for way in ("command", "observed", "judge") if typed[way] not in (None, False)]
    if blank := [way for way in ways if not str(typed[way]).strip()]:
        raise UsageProblem(f"--{blank[0]} says nothing.")
    if len(ways) > 1 or (ways and name is None) or (typed["expect"] and ways != ["command"]):
        raise UsageProblem(
            "Name one criterion, and one of --command, --observed, --judge (--expect goes with --command)."
        )
    if ways:
        state = _decided(place, state, name, typed)
    return _shown(where, state, name, typed["as_json"])


def _decided(place: Place, state: GoalState, name: str, typed: Json) -> GoalState:
    """The goal with this criterion verified in the new way, on disk."""
    held = lock.acquire(place.lock)
    if held is None:
        raise Undecided("The goal is running; its criteria stay as they are.", "Let it pause: rooda goal pause")
    try:
        pairs = [
            (_changed(place.workspace, state, each, typed) if each.name == name else (each, mark))
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


def _changed(workspace: str, state: GoalState, criterion: Criterion, typed: Json) -> tuple[Criterion, Mark]:
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


def _shown(where: Where, state: GoalState, name: str | None, as_json: bool) -> int:
    """The commands' results as they are at this moment; the state is not changed by them."""
    look = lookup_kind(configuration.load(where.workspace, where.config), "goal", {})
    rows = facts(state, False, None)["criteria"]
    with Signals() as signals, tempfile.TemporaryDirectory(prefix="rooda-") as folder:
        for row, criterion in zip(rows, state.brief.criteria, strict=True):
            if criterion.kind in RUN and name in (None, criterion.name):
                spec = _spec(where, look, criterion.command, os.path.join(folder, "output"))
                done = run(spec, signals)
                if signals.count:
                    click.echo("Interrupted.", err=True)
                    return code_of_signal(signals.first)
                output = files.to_text(files.tail(spec.output, OUTPUT))
                met = done.ended == "exit" and done.code == 0
                row["met"] = met and criteria.holds(criterion.expect, output, matches)
                row["evidence"] = "now: timeout" if done.ended == "timeout" else f"now: exit {done.code}"
    wanted = [row for row in rows if name in (None, row["criterion"])]
    click.echo(
        json.dumps(wanted, indent=2, ensure_ascii=False) if as_json else "\n".join(map(escape_line, table(wanted)))
    )
    return OK


def _spec(where: Where, look: Lookup, command: str, output: str) -> Spec:
    """As the loop runs it, within the same limits."""
    return Spec(
        argv=("/bin/sh", "-c", command),
        cwd=where.workspace,
        env=os.environ,
        output=output,
        timeout=float(look.value("verify_timeout")),
        grace=float(look.value("kill_grace")),
        cap=int(look.value("max_output_buffer")),
    )
