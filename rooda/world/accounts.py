"""The books: what every agent call of a workspace used, read from the events of its runs."""

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from rooda.kernel import codec
from rooda.kernel.loads import loads
from rooda.model import Json, Usage
from rooda.policy.spending import Used
from rooda.terms import Agent, Budget
from rooda.world import files, runfolder
from rooda.world.journal import NAME

MOST = 1e15  # of anything that is counted
_OPENING = ("run.started", "run.resumed")
Pricing: TypeAlias = Callable[[], Mapping[str, tuple[float, ...]]]  # asked only where a call was cut off


def used(workspace: str, name: str | None = None, since: str = "", prices: Pricing = dict) -> Iterator[Used]:
    """Every call not before `since` (as the events' `ts`), oldest first; its `run` is the session that began it."""
    begun: dict[tuple[str, str], str] = {}
    for path in runfolder.all_of(workspace, name):
        events, run = os.path.join(path, NAME), os.path.basename(path)
        opening = next(records(events, *_OPENING), {})
        loop = str(opening.get("loop", "")), runfolder.named(run)
        if opening.get("event") == "run.started":
            begun[loop] = run
        for call in of_session(events, prices):
            if call.ts[:19] >= since[:19]:
                yield call._replace(run=begun.setdefault(loop, run))


def of_run(workspace: str, name: str, loop: str, prices: Pricing) -> Iterator[Used]:
    """Every call of a loop since it was last begun afresh."""
    found = _of_this_run(workspace, name, loop)
    return (call for session in found for call in of_session(session, prices) if call.loop == loop)


def run_time(workspace: str, name: str, loop: str) -> float:
    """Seconds that its sessions ran, as they tell: no time of the clock is compared."""
    return sum(_ran(session, loop) for session in _of_this_run(workspace, name, loop))


def _ran(path: str, loop: str) -> float:
    """Up to its end, or to that of its last call if it was killed; what no call tells of, its calls alone."""
    told = [each.get("ran") for each in records(path, "agent.ended", "run.ended") if each.get("loop") == loop]
    known = [float(ran) for ran in told if isinstance(ran, int | float) and 0 <= ran < MOST]
    return max(known) if known else sum(call.seconds for call in of_session(path, dict) if call.loop == loop)


def _of_this_run(workspace: str, name: str, loop: str) -> list[str]:
    return sessions(workspace, name, loop) if newest(workspace, name, loop) else []


def sessions(workspace: str, name: str, loop: str) -> list[str]:
    """The events' files since then, oldest first. No time is compared: the clock may have been set back."""
    found: list[str] = []
    for path in reversed(runfolder.all_of(workspace, name)):
        found.insert(0, os.path.join(path, NAME))
        if _began(found[0], loop):
            break
    return found


def newest(workspace: str, name: str, loop: str, begun: str = "") -> str | None:
    """The folder of the latest session that began or went on with this loop, of this kind.

    None if the run was completed in it: what can be gone on with now, and somebody put there, is none of that run.
    `begun`: a session that began it by its state, whatever its log says: a kill may have come between the two.
    """
    for path in reversed(runfolder.all_of(workspace, name)):
        if os.path.basename(path) == begun:
            return path
        events = os.path.join(path, NAME)
        if next((True for each in records(events, *_OPENING) if each.get("loop") == loop), False):
            completed = any(each.get("status") == "completed" for each in records(events, "run.ended"))
            return None if completed else path
    return None


def last_limits(workspace: str, name: str, loop: str) -> Budget:
    """The limits that the latest run of a loop was given: a resume that names none goes on with them."""
    folder = newest(workspace, name, loop)
    try:
        return codec.decode(Budget, next(records(os.path.join(folder or "", NAME), *_OPENING))["limits"])
    except (StopIteration, ValueError, KeyError, TypeError):
        return Budget()


def _began(path: str, loop: str) -> bool:
    """Is it the session in which a loop of this kind was begun, not one that went on with it?"""
    opening = records(path, *_OPENING)
    return next((each["event"] == "run.started" for each in opening if each.get("loop") == loop), False)


def of_session(path: str, prices: Pricing) -> Iterator[Used]:
    """A call that was started and never ended was cut off by a crash; its transcript may still tell what it used."""
    started: dict[Any, Json] = {}
    number: Json = {}
    for record in records(path, *_OPENING, "node.boundary", "agent.started", "agent.ended"):
        event, record = record["event"], record | number
        if event == "agent.started":
            started[record["transcript"]] = record
        elif event != "agent.ended":
            number = _of_flow(record) or number
        elif call := entry(record, started.pop(record["transcript"], record)):
            yield call
    for record in started.values():
        if call := _cut_off(record, prices):
            yield call


def _of_flow(record: Json) -> Json:
    """The iteration at work of a flow's top node: calls say that of the node inside. {} where that can't be told."""
    if record.get("loop") != "flow" or record.get("level", 0) != 0 or not isinstance(record.get("number"), int):
        return {}
    return {"display": record["number"] + (record["event"] == "node.boundary")}


def records(path: str, *names: str) -> Iterator[Json]:
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


def _cut_off(started: Json, prices: Pricing) -> Used | None:
    from rooda.world.agents.understanding import cut_off

    row = entry(started, started)
    tells = started.get("output", "text") != "text"
    reply = cut_off(started, Agent("", "", prices=prices() if tells else {}))
    source = reply.cost_source or "unknown"
    return row and row._replace(usage=reply.usage, cost=reply.cost, model=reply.model, source=source)
