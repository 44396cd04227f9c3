"""The books: what every agent call of a workspace used, read from the events of its runs."""

import os
from collections.abc import Iterator
from typing import Any

from rooda.kernel import codec
from rooda.kernel.loads import loads
from rooda.model import Json, Usage
from rooda.policy.spending import Used
from rooda.terms import Budget
from rooda.world import files, runfolder
from rooda.world.agents import reading
from rooda.world.journal import NAME

MOST = 1e15  # of anything that is counted


def used(workspace: str, name: str | None = None, loop: str | None = None, since: str = "") -> Iterator[Used]:
    """Every call, oldest first; of one loop if it is named, and not before `since` (as the events' `ts`)."""
    for path in runfolder.all_of(workspace, name):
        for call in of_session(os.path.join(path, NAME)):
            if call.ts[:19] >= since[:19] and loop in (None, call.loop):
                yield call


def of_run(workspace: str, name: str, loop: str) -> Iterator[Used]:
    """Every call of a loop since it was last begun afresh."""
    found = sessions(workspace, name, loop)
    return (call for session in found for call in of_session(session) if call.loop == loop)


def sessions(workspace: str, name: str, loop: str) -> list[str]:
    """The events' files since then, oldest first. No time is compared: the clock may have been set back."""
    found: list[str] = []
    for path in reversed(runfolder.all_of(workspace, name)):
        found.insert(0, os.path.join(path, NAME))
        if _began(found[0], loop):
            break
    return found


def last_limits(workspace: str, name: str) -> Budget:
    """The limits that the latest run of a loop was given: a resume that names none goes on with them."""
    folder = runfolder.latest(workspace, name)
    try:
        first = loads(files.beginning(os.path.join(folder or "", NAME), 65_536).partition(b"\n")[0])
        return codec.decode(Budget, first["limits"])
    except (OSError, ValueError, KeyError, TypeError):
        return Budget()


def _began(path: str, loop: str) -> bool:
    """Is it the session in which a loop of this kind was begun, not one that went on with it?"""
    opening = _records(path, "run.started", "run.resumed")
    return next((each["event"] == "run.started" for each in opening if each.get("loop") == loop), False)


def of_session(path: str) -> Iterator[Used]:
    """A call that was started and never ended was cut off by a crash; its transcript may still tell what it used."""
    started: dict[Any, Json] = {}
    for record in _records(path, "agent.started", "agent.ended"):
        if record["event"] == "agent.started":
            started[record.get("transcript", "")] = record
        elif call := entry(record, started.pop(record.get("transcript", ""), record)):
            yield call
    for record in started.values():
        if call := _cut_off(record):
            yield call


def _records(path: str, *names: str) -> Iterator[Json]:
    """The events of these names."""
    said = [f'"{name}"'.encode() for name in names]
    try:
        for line in files.lines(path, 1 << 62, 4_194_304):
            if any(each in line for each in said):
                try:
                    record = loads(line)
                except ValueError:
                    continue
                if isinstance(record, dict) and record.get("event") in names:
                    yield {**record, "transcript": str(record.get("transcript", ""))}
    except OSError:
        return


def entry(record: Json, started: Json) -> Used | None:
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
        seconds=_bounded(float(record.get("seconds", 0.0))),
        usage=_usage(usage) if isinstance(usage, dict) else None,
        cost=_bounded(float(cost)) if isinstance(cost, int | float) else None,
        source=str(record.get("cost_source") or "unknown"),
    )


def _usage(said: Json) -> Usage:
    return Usage(*(int(_bounded(said.get(key, 0))) for key in Usage._fields))


def _bounded(number: float) -> float:
    """ValueError for what can't be added up."""
    if not 0 <= number < MOST:
        raise ValueError(number)
    return number


def _cut_off(started: Json) -> Used | None:
    facts = reading.facts_of(str(started.get("output", "text")), str(started.get("transcript", "")))
    row = entry(started, started)
    source = "unknown" if facts.cost is None else "reported"
    return row and row._replace(usage=facts.usage, cost=facts.cost, model=facts.model, source=source)
