"""Collects what the page and an export show about a run: its summary, its iterations with calls and gates, and the
reasons for its decisions.

The values are the same as in the output of commands: `row` is an object of `rooda runs --json`, `usage` one of
`rooda usage --by iteration --json`, and `why` contains the objects of `rooda why --json`.
"""

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from rooda.base import secrets
from rooda.base.json import Json
from rooda.loops import evidence, past, registry
from rooda.loops.configuration import prices
from rooda.run import cost_ledger, folder, history, past_runs
from rooda.run.history import SessionLog, SessionState
from rooda.run.past_runs import PastRun
from rooda.run.spending import Used, usage_row
from rooda.settings.where import Where
from rooda.views.lines import LEVELS, PROGRAMS, is_for, lines

MOST_LINES = 100  # number of lines of an iteration that are shown
BROKEN = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)  # raised by a log that was edited


def find(workspace: str, run: str, log: Callable[[str], SessionLog] = SessionLog) -> PastRun | None:
    """Return the run that has the session `run`; None if there is none."""
    found = past_runs.past_runs(workspace, folder.loop_of(run), log)
    here = next((each for each in found if run in [session.run for session in each.sessions]), None)
    if here is None:
        return None
    deleted = cost_ledger.deleted_calls(workspace, here.name)
    return next(each for each in past_runs.with_deleted(found, deleted) if each.sessions == here.sessions)


def facts(run: PastRun, here: Where, running: bool, hidden: tuple[str, ...]) -> Json:
    """Return all facts of a run, with secrets masked."""
    pricing = partial(prices, here)
    used = [*past_runs.calls(run, running, pricing)]
    found = _Iterations(run, running, used)
    for session in run.sessions:
        found.read(session)
    made = {
        "workspace": here.workspace,
        "row": past.facts(run, here, running),
        "sessions": [session.run for session in run.sessions],
        "max_iterations": run.last.now.max_iterations or None,
        "question": found.question,
        "snapshots": found.snapshots,
        "iterations": [*found.made()],
        "why": [*_why(run, here, running, hidden)],
    }
    return dict(secrets.hide_in(made, hidden))


def _why(run: PastRun, here: Where, running: bool, hidden: tuple[str, ...]) -> Iterator[Json]:
    for session in run.sessions:
        live = running and session is run.last
        for each in evidence.decisions(here.workspace, session.folder, hidden, live):
            yield {"session": session.run, **each}


class _Iterations:
    """Builds the iterations of a run from its events one by one."""

    def __init__(self, run: PastRun, running: bool, used: list[Used]) -> None:
        self._run, self._running = run, running
        self._ends = registry.turns(run.loop).turn_ends
        self._found: dict[int, Json] = {}
        self._used: dict[int, list[Used]] = {}
        self.question, self.snapshots = "", False
        for call in used:
            self._used.setdefault(call.number, []).append(call)

    def made(self) -> Iterator[Json]:
        """Yield the iterations, oldest first. Iteration 0 has the events before the first iteration."""
        newest = max(self._found, default=0)
        for number in sorted({*self._found, *self._used}):
            one, calls = self._of(number), self._used.get(number, [])
            open_ = self._running and number == newest
            one["state"] = one["state"] or ("running" if open_ else "cut off" if one["calls"] else "")
            one["usage"] = usage_row(f"{calls[0].run} {number}", calls) if calls else None
            one["seconds"] = round(sum(call.seconds for call in calls), 3)
            if number or one["calls"] or one["gates"] or one["lines"]:
                yield one

    def _of(self, number: int) -> Json:
        new: Json = {"number": number, "state": "", "calls": [], "gates": [], "lines": []}
        return self._found.setdefault(number, new)

    def read(self, session: SessionLog) -> None:
        state, view = SessionState(), registry.view(self._run.loop)
        try:
            for record in history.records(session.path):
                try:
                    record = history.located(record, session.folder)
                    state.add(record)
                    number = state.number_of(record)
                    if number or record["event"] not in (*history.OPENING, "work.began"):
                        self._add(record, number, session, lines(record, view.LINES))
                except BROKEN:
                    continue
        except OSError:
            pass

    def _add(self, record: Json, number: int, session: SessionLog, shown: list[Any]) -> None:
        event, one = record["event"], self._of(number)
        if event == "agent.started":
            one["calls"].append(_call(record, session))
        elif event == "agent.ended":
            call = next((each for each in one["calls"] if each["transcript"] == _name(record["transcript"])), None)
            if call:
                call |= {key: record[key] for key in ("outcome", "seconds", "exit_code", "model") if key in record}
        elif event == "gate.ended":
            gate = {key: record.get(key) for key in ("gate", "verdict", "elapsed", "said")}
            one["gates"].append({**gate, "session": session.run, "output": _name(record.get("output", ""))})
        elif event in self._ends and record.get("level") not in range(1, 10_000):
            one["state"] = record.get("outcome") or ("failure" if record.get("accepted") is False else "success")
        elif event == "snapshot.taken":
            self.snapshots = True
        elif event == "run.ended":
            self.question = str(record.get("question") or "")
        for line in shown if event not in ("run.ended", *history.OPENING) else ():
            if LEVELS[line.level] >= LEVELS["info"] and is_for(line, PROGRAMS) and len(one["lines"]) < MOST_LINES:
                one["lines"].append({"ts": record["ts"], "level": line.level, "text": line.text})


def _call(record: Json, session: SessionLog) -> Json:
    found = {key: record.get(key) for key in ("call", "agent", "model", "output")}
    return {**found, "outcome": "", "session": session.run, "transcript": _name(record["transcript"])}


def _name(path: object) -> str:
    return os.path.basename(str(path))
