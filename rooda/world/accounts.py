"""The books: what every agent call of a workspace used, read from the events of its runs."""

import json
import os
from collections.abc import Iterator
from typing import Any

from rooda.kernel import codec
from rooda.model import Json, Usage
from rooda.policy.spending import Used
from rooda.terms import Budget
from rooda.world import files, runfolder
from rooda.world.agents import reading
from rooda.world.journal import NAME

_SAID = (b'"agent.started"', b'"agent.ended"')


def used(workspace: str, name: str | None = None, loop: str | None = None, since: str = "") -> Iterator[Used]:
    """Every call, oldest first; of one loop if it is named, and not before `since` (as the events' `ts`)."""
    home = os.path.join(workspace, ".rooda", "runs")
    for run in sorted(os.listdir(home)) if os.path.isdir(home) else ():
        if name is None or run[17:].rpartition("-")[0] == name:
            for call in _of_run(os.path.join(home, run, NAME)):
                if call.ts[:19] >= since[:19] and loop in (None, call.loop):
                    yield call


def last_limits(workspace: str, name: str) -> Budget:
    """The limits that the latest run of a loop was given: a resume that names none goes on with them."""
    folder = runfolder.latest(workspace, name)
    try:
        first = json.loads(files.beginning(os.path.join(folder or "", NAME), 65_536).partition(b"\n")[0])
        return codec.decode(Budget, first["limits"])
    except (OSError, ValueError, KeyError, TypeError):
        return Budget()


def _of_run(path: str) -> Iterator[Used]:
    """A call that was started and never ended was cut off by a crash; its transcript may still tell what it used."""
    started: dict[Any, Json] = {}
    for record in _records(path):
        if record["event"] == "agent.started":
            started[record.get("transcript", "")] = record
        elif call := _used(record, started.pop(record.get("transcript", ""), record)):
            yield call
    for record in started.values():
        if call := _cut_off(record):
            yield call


def _records(path: str) -> Iterator[Json]:
    try:
        for line in files.lines(path, 1 << 62, 4_194_304):
            if any(said in line for said in _SAID):
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError):
                    continue
                if isinstance(record, dict) and record.get("event") in ("agent.started", "agent.ended"):
                    yield {**record, "transcript": str(record.get("transcript", ""))}
    except OSError:
        return


def _used(record: Json, started: Json) -> Used | None:
    """None for a record that only looks like one of ours."""
    try:
        return _row(record, started)
    except (TypeError, ValueError, OverflowError):
        return None


def _row(record: Json, started: Json) -> Used:
    usage, cost = record.get("usage"), record.get("cost")
    return Used(
        ts=str(record.get("ts", "")),
        run=str(record.get("run", "")),
        loop=str(record.get("loop", "")),
        name=str(record.get("procedure") or record.get("name", "")),
        number=int(record.get("display", 0)),
        call=str(started.get("call", "")),
        agent=str(started.get("agent", "")),
        model=str(record.get("model", "")),
        seconds=float(record.get("seconds", 0.0)),
        usage=Usage(**{key: int(usage.get(key, 0)) for key in Usage._fields}) if isinstance(usage, dict) else None,
        cost=float(cost) if isinstance(cost, int | float) else None,
        source=str(record.get("cost_source") or "unknown"),
    )


def _cut_off(started: Json) -> Used | None:
    facts = reading.facts_of(str(started.get("output", "text")), str(started.get("transcript", "")))
    row = _used(started, started)
    source = "unknown" if facts.cost is None else "reported"
    return row and row._replace(usage=facts.usage, cost=facts.cost, model=facts.model, source=source)
