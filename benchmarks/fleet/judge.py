"""What a run of the campaign has to show, from what was counted outside of the engine and of git's clones."""

from collections import defaultdict
from itertools import pairwise
from typing import NamedTuple


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


def takeovers(calls: list[Call], faults: list[tuple[str, float]]) -> tuple[float, ...]:
    """Seconds from each fault to the next start of a call at each task that its worker was at."""
    found = []
    for worker, at in faults:
        for call in calls:
            if call.worker != worker or not call.start <= at <= (call.end or at):
                continue
            later = [each.start for each in calls if each.task == call.task and each.start > at]
            found += [min(later) - at] if later else []
    return tuple(sorted(found))
