"""What the faults have cost, as tables for documents."""

import os
from collections.abc import Iterable, Mapping

from benchmarks import results

RESULTS = os.path.join(results.FOLDER, "kills.json")
WORDS = {
    "random": "SIGKILL at a random moment: loop, guardian, both, their group, everybody",
    "steps": "SIGKILL at each call that changes a file",
    "EIO": "each call on a file fails with EIO",
    "ENOSPC": "each call that needs room fails with ENOSPC",
    "tasks KILL": "SIGKILL of `tasks run` at each call that changes a file of the tasks",
    "tasks EIO": "each call of `tasks run` on a file of the tasks fails with EIO",
    "tasks ENOSPC": "each call of `tasks run` on a file of the tasks that needs room fails with ENOSPC",
    "landing KILL": "SIGKILL of `tasks land` or of its git at each call that changes a file",
    "landing EIO": "each call of `tasks land` or of its git on a file fails with EIO",
    "landing ENOSPC": "each call of `tasks land` or of its git that needs room fails with ENOSPC",
    "signals": "signals and SIGKILL beside agents that cling to life",
}
COLUMNS = ("faults", "lost", "corrupted", "doubled", "orphaned", "failed")


def table(path: str = RESULTS, by_loop: bool = True) -> str:
    """A line for each sort of faults, and for each kind of loop if wanted; nothing when nothing was tried."""
    faults = results.read(*os.path.split(path)).get("faults", {})
    head = ("fault", *(("loop",) if by_loop else ()), "tried", *COLUMNS[1:])
    rows = [f"| {' | '.join(head)} |", "|---" * (len(head) - len(COLUMNS)) + "|---:" * len(COLUMNS) + "|"]
    for sort, loops in faults.items():
        if by_loop:
            rows += [_row(f"{WORDS[sort]} | {loop}", [counts]) for loop, counts in loops.items()]
        else:
            rows.append(_row(WORDS[sort], loops.values()))
    if not by_loop:
        rows.append(_row("all", [counts for loops in faults.values() for counts in loops.values()]))
    return "\n".join(rows) + "\n" if faults else ""


def _row(what: str, loops: Iterable[Mapping[str, int]]) -> str:
    loops = list(loops)
    sums = (sum(counts[name] for counts in loops) for name in COLUMNS)
    return f"| {what} | {' | '.join(f'{each:,}' for each in sums)} |"
