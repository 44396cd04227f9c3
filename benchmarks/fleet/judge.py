"""What a run of the campaign has to show, from what was counted outside of the engine and of git's clones."""

from collections import defaultdict
from itertools import groupby, pairwise
from typing import NamedTuple

STEP = 0.1  # seconds between two looks at who has a free place


class Call(NamedTuple):
    """One call of an agent. `end` is 0 if it was cut off."""

    task: int
    worker: str
    pid: int
    start: float
    end: float


class Verdict(NamedTuple):
    tasks: int
    turns: int  # published
    wanted: int
    doubled: int  # turns that were published more than once
    calls: int
    repeated: int  # calls beyond one a turn
    together: int  # pairs of calls at one task at the same time
    takeovers: tuple[float, ...]  # seconds from a fault to the next call of a task that it hit
    left: int  # processes at the end
    lost: tuple[int, ...]  # tasks that did not complete

    @property
    def holds(self) -> bool:
        return not (self.doubled or self.together or self.left or self.lost) and self.turns == self.wanted


def calls_in(lines: list[str]) -> list[Call]:
    """Pair the lines `start TASK WORKER PID TIME` and `end PID TIME` that agents wrote."""
    found: dict[str, Call] = {}
    for line in lines:
        words = line.split()
        if words[0] == "start":
            found[f"{words[2]} {words[3]}"] = Call(int(words[1]), words[2], int(words[3]), float(words[4]), 0.0)
        elif (key := f"{words[1]} {words[2]}") in found:
            found[key] = found[key]._replace(end=float(words[3]))
    return [*found.values()]


def together(calls: list[Call], killed: dict[str, list[tuple[float, float]]]) -> int:
    """Count pairs of calls at one task that overlap. A call that was cut off ended when its machine was hit."""
    by_task = defaultdict(list)
    for call in calls:
        by_task[call.task].append(call)
    count = 0
    for each in by_task.values():
        ordered = sorted(each, key=lambda call: call.start)
        for one, other in pairwise(ordered):
            end = one.end or ended_by(one, killed)
            count += end > other.start + 0.25
    return count


def ended_by(call: Call, killed: dict[str, list[tuple[float, float]]]) -> float:
    """When a call that never said its end was over at the latest: at the end of the fault that hit its worker."""
    times = [end for start, end in killed.get(call.worker, []) if end >= call.start]
    return min(times, default=call.start)


class Site(NamedTuple):
    """What a take-over needs, at each moment of a run."""

    slots: int  # of each worker
    heartbeat: float  # seconds in which a fault may go unnoticed
    workers: tuple[str, ...]
    down: dict[str, list[tuple[float, float]]]  # when a fault hit each worker, until it was undone
    away: list[tuple[float, float]]  # when Temporal or the git server did not answer


def takeovers(calls: list[Call], faults: list[tuple[str, float]], site: Site) -> tuple[float, ...]:
    """Seconds from each fault to the next start of a call at each task that its worker was at.

    Once a heartbeat has passed, time in which no worker had a free place, or in which Temporal or the git server was
    away, does not count.
    """
    legs, found = _legs(calls), list[float]()
    for worker, at in faults:
        for call in calls:
            if call.worker != worker or not call.start <= at <= (call.end or at):
                continue
            later = [each.start for each in calls if each.task == call.task and each.start > at]
            found += [_counted(at, min(later), legs, site)] if later else []
    return tuple(sorted(found))


def _legs(calls: list[Call]) -> dict[str, list[tuple[float, float]]]:
    """When tasks held places of each worker: from a task's first call there to the end of its last in a row."""
    by_task, found = defaultdict(list), defaultdict(list)
    for call in sorted(calls, key=lambda call: call.start):
        by_task[call.task].append(call)
    for each in by_task.values():
        for worker, group in groupby(each, key=lambda call: call.worker):
            members = [*group]
            found[worker].append((members[0].start, members[-1].end or members[-1].start))
    return found


def _counted(begin: float, end: float, legs: dict[str, list[tuple[float, float]]], site: Site) -> float:
    counted, now = 0.0, begin
    while now < end:
        step = min(STEP, end - now)
        free = any(
            not _within(now, site.down.get(name, [])) and _held(now, legs.get(name, [])) < site.slots
            for name in site.workers
        )
        counted += step * (now < begin + site.heartbeat or (free and not _within(now, site.away)))
        now += STEP
    return counted


def _held(now: float, spans: list[tuple[float, float]]) -> int:
    return sum(start <= now < end for start, end in spans)


def _within(now: float, spans: list[tuple[float, float]]) -> bool:
    return _held(now, spans) > 0
