"""Tasks: the operations on a long list over a short one, and many loops at once over the ideal."""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping

from benchmarks import landing
from benchmarks.bench import Bench, Workspace, repository, write
from benchmarks.measure import Failed, finish, once, round_robin, start
from benchmarks.verdict import Measured, Row, ratio

FEW, MANY = 100, 10_000  # tasks in the list
OPERATIONS = ("add", "show", "cancel", "claim", "settle")
TASKS, ITERATIONS, SECONDS, SLOTS = 20, 3, 1, 4
IDEAL = TASKS * ITERATIONS * SECONDS / SLOTS
TICK = os.sysconf("SC_CLK_TCK")
# What the scheduler does when it starts a loop, and when the loop has ended.
PROGRAM = """\
import sys
from rooda.tasks import model, outcome
from rooda.tasks.store import Store, place_of
store = Store(place_of(sys.argv[1]))
ended = outcome.Ended(0, outcome.Facts("completed", "x", 1))
change = {
    "claim": lambda task: task._replace(state=model.RUNNING, process=model.Process(1)),
    "settle": lambda task: outcome.settled(task, ended, "", "", 1),
}[sys.argv[2]]
store.change(int(sys.argv[3]), change, sys.argv[2])
"""


def tasks(bench: Bench) -> Measured:
    few, many = FEW, 1_000 if bench.quick else MANY
    contenders: dict[str, Callable[[], Mapping[str, float]]] = {}
    for count in (few, many):
        contenders |= _operations(bench, _filled(bench, count), count)
    series = round_robin(contenders, 3 if bench.quick else 15)
    rows = [
        Row(0, f"tasks: {each} at {many:,} over {few} tasks, CPU",
            ratio(series, "cpu", _name(each, many), _name(each, few)), 2)
        for each in OPERATIONS
    ]  # fmt: skip
    return Measured([*rows, *_many_loops(bench), *landing.rows(bench)], series)


def _name(operation: str, count: int) -> str:
    return f"{operation}, {count:,} tasks"


def _filled(bench: Bench, count: int) -> Workspace:
    """A repository whose list has so many waiting tasks."""
    place = _place(bench, f"tasks-{count}")
    once([bench.rooda, "tasks", "add", "Task 1"], place.env, place.path)
    folder = os.path.join(place.path, ".git", "rooda", "tasks")
    with open(os.path.join(folder, "1.json"), encoding="utf-8") as file:
        first = json.load(file)
    for number in range(2, count + 1):
        write(os.path.join(folder, f"{number}.json"), json.dumps({**first, "id": number}))
    write(os.path.join(folder, "last"), f"{count}\n")
    return place


def _place(bench: Bench, name: str, loop: str = "") -> Workspace:
    place = bench.workspace(name, loop=loop)
    repository(place, 20, ignored="home/\n")
    home = os.path.join(os.path.dirname(place.path), f"home-{name}")
    os.mkdir(home)
    return place._replace(env={**place.env, "HOME": home, "ROODA_DATA_HOME": os.path.join(home, "data")})


def _operations(bench: Bench, place: Workspace, count: int) -> dict[str, Callable[[], Mapping[str, float]]]:
    """The operations, each a command of its own; a task is shown, claimed and settled, another one cancelled."""
    numbers = iter(range(1, count))
    current = [0]

    def words(operation: str) -> list[str]:
        if operation in ("show", "cancel"):
            current[0] = next(numbers)
        if operation in ("claim", "settle"):
            if operation == "claim":
                current[0] = next(numbers)
            return [bench.python, "-c", PROGRAM, place.path, operation, str(current[0])]
        return [bench.rooda, "tasks", operation, "New" if operation == "add" else str(current[0])]

    def measure(operation: str) -> Callable[[], Mapping[str, float]]:
        def measured() -> Mapping[str, float]:
            cost = once(words(operation), place.env, place.path)
            return {"cpu": cost.cpu, "wall": cost.wall}

        return measured

    return {_name(operation, count): measure(operation) for operation in OPERATIONS}


def _many_loops(bench: Bench) -> Iterator[Row]:
    """Tasks of several iterations with an agent that only waits: wall time, and the scheduler's own CPU."""
    count = SLOTS if bench.quick else TASKS
    place = _place(bench, "many-loops", f'ai_cmd = "sleep {SECONDS}"\n')
    for number in range(count):
        words = ["tasks", "add", f"Task {number}", "--kind", "procedure", "bench", "-n", str(ITERATIONS)]
        once([bench.rooda, *words], place.env, place.path)
    wall, cpu = _scheduled([bench.rooda, "tasks", "run", "-j", str(SLOTS)], place)
    ideal = count * ITERATIONS * SECONDS / SLOTS
    what = f"{count} tasks of {ITERATIONS} iterations with a {SECONDS} s agent, {SLOTS} at once"
    yield Row(0, f"{what}: time over the ideal", wall / ideal, 1.15)
    if cpu:
        yield Row(0, "the scheduler's CPU, of one core", 100 * cpu / wall, 2, "%")


def _scheduled(argv: list[str], place: Workspace) -> tuple[float, float]:
    """Run the scheduler; return its wall time and the CPU of its own processes, without the loops; 0 without /proc."""
    import time

    began, cpu = time.monotonic(), 0.0
    pid = start(argv, place.env, place.path)
    while not os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        cpu = max(cpu, sum(_cpu(each) for each in (pid, *_own(pid))))
        time.sleep(0.05)
    cost = finish(pid, began)
    if cost.code:
        raise Failed(f"{' '.join(argv)}: exit {cost.code}")
    return cost.wall, cpu


def _own(pid: int) -> list[int]:
    """The scheduler below its guardian, or the guardian below the scheduler."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split() if _is_scheduler(word)]
    except OSError:
        return []


def _is_scheduler(pid: str) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return re.search(rb"\0tasks\0run\0", file.read()) is not None
    except OSError:
        return False


def _cpu(pid: int) -> float:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICK
