"""Figures of one worker: memory and pace of four loops at once; the first and the last claims of many queued tasks.

The server, the worker and the git repository are on this machine. Agents sleep, so that rooda's own work is measured.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks import processes
from benchmarks.fleet import place
from benchmarks.fleet.place import Desk

SLOTS = 4
TURNS, SECONDS = 8, 2.0  # of each loop whose pace is measured
NAP = 0.1


class Figure(NamedTuple):
    """A figure with its goal: at most, or at least if `more`."""

    what: str
    measured: float
    goal: float
    more: bool = False

    @property
    def met(self) -> bool:
        return self.measured >= self.goal if self.more else self.measured <= self.goal


def all_of(folder: Path, claims: int) -> list[Figure]:
    """Measure everything; print each figure as soon as it is known."""
    found = []
    with place.server(folder) as address:
        for measure in (memory, pace, lambda desk: queue(desk, claims)):
            desk = Desk(folder / f"{len(found)}", address)
            found.append(measure(desk))
            print(told(found[-1]), flush=True)
    return found


def told(figure: Figure) -> str:
    bound = f"at {'least' if figure.more else 'most'} {figure.goal:g}"
    return f"{figure.what}: {figure.measured:.2f} ({bound}{'' if figure.met else ': MISSED'})"


def memory(desk: Desk) -> Figure:
    """Memory of a worker with four loops over that of four loops that a user started."""
    desk.agent(f'echo >> "{desk.folder}/calls"; while [ ! -e "{desk.folder}/go" ]; do sleep {NAP}; done')
    loops = [desk.loop(f"alone-{number}", 1) for number in range(SLOTS)]
    awaited(lambda: desk.calls() == SLOTS)
    alone = sum(proportional(each.pid) for each in loops)
    (desk.folder / "go").touch()
    for each in loops:
        each.wait()
    (desk.folder / "go").unlink()
    (desk.folder / "calls").unlink()
    with desk.worker(SLOTS) as worker:
        desk.add(SLOTS, 1)
        awaited(lambda: desk.calls() == SLOTS)
        whole = proportional(worker.pid)
        (desk.folder / "go").touch()
        desk.completed(SLOTS)
    return Figure("memory of a worker with four loops over that of four loops alone", whole / alone, 1.8)


def pace(desk: Desk) -> Figure:
    """Turns that four loops end in the time in which one ends one."""
    log = desk.folder / "times"
    desk.agent(f'date +%s.%N >> "{log}"; sleep {SECONDS}; date +%s.%N >> "{log}"')
    took = []
    with desk.worker(SLOTS):
        for count in (1, SLOTS):
            desk.add(count, TURNS)
            desk.completed(count)
            times = [float(line) for line in log.read_text().split()]
            took.append(max(times) - min(times))
            log.unlink()
    return Figure("turns of four loops on one machine over those of one", SLOTS * took[0] / took[1], 3.4, more=True)


def queue(desk: Desk, count: int) -> Figure:
    """Time of the last tenth of claims over that of the first, while so many tasks are queued."""
    words = [sys.executable, "-m", "benchmarks.fleet.claims", desk.address, str(desk.folder), str(count), str(SLOTS)]
    done = subprocess.run(words, env=desk.environment("claims"), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: {done.stderr[-2000:]}")
    took = [float(each) for each in json.loads(done.stdout)]
    tenth = count // 10
    ratio = statistics.median(took[-tenth:]) / statistics.median(took[:tenth])
    return Figure(f"{count:,} queued tasks: a claim of the last tenth over one of the first", ratio, 1.15)


def proportional(pid: int) -> int:
    """Return the kilobytes of rooda's processes from this one down; shared pages count in proportion."""
    total = 0
    for each in processes.whole(pid, set()):
        if os.path.basename(Path(f"/proc/{each}/cmdline").read_bytes().split(b"\0")[0]).startswith(b"python"):
            rows = Path(f"/proc/{each}/smaps_rollup").read_text().splitlines()
            total += next(int(row.split()[1]) for row in rows if row.startswith("Pss:"))
    return total


def awaited(condition: place.Condition, seconds: float = 120.0) -> None:
    last = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > last:
            sys.exit("Waited too long.")
        time.sleep(NAP)
