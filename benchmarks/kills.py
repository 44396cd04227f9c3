"""`python -m benchmarks.kills [--kills 1000] [--loop flow] [--only steps]`: faults, and what they cost.

Loops with a scripted agent are killed again and again: at random moments, at every step to the disk, beside agents that
cling to life; and their disk fails at every step. After each fault the next start goes on to the end, which must be
that of an undisturbed run. The result is `results/kills.json`; what was not asked for stays in it as it was.
"""

import argparse
import json
import os
import platform
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.faults import clings, landing, randomly, scheduler, steps
from benchmarks.faults.judge import Tally
from benchmarks.faults.kinds import KINDS
from benchmarks.faults.table import RESULTS, table

VERSION = 2
Found = tuple[dict[str, Any], list[str]]
Sort = Callable[[str, str, argparse.Namespace], Found]  # (loop, folder, asked)


def _of_tasks(fault: str, loop: str, folder: str, asked: argparse.Namespace) -> Found:
    return scheduler.run(fault, folder, asked.seed, asked.steps)


def _of_landings(fault: str, loop: str, folder: str, asked: argparse.Namespace) -> Found:
    return landing.run(fault, folder, asked.seed, asked.steps)


SORTS: dict[str, Sort] = {
    "random": lambda loop, folder, asked: randomly.run(loop, asked.kills, asked.seed, folder),
    "steps": lambda loop, folder, asked: steps.run(loop, steps.KILL, folder, asked.seed, asked.steps),
    "EIO": lambda loop, folder, asked: steps.run(loop, steps.EIO, folder, asked.seed, asked.steps),
    "ENOSPC": lambda loop, folder, asked: steps.run(loop, steps.ENOSPC, folder, asked.seed, asked.steps),
    **{f"tasks {fault}": partial(_of_tasks, fault) for fault in (steps.KILL, steps.EIO, steps.ENOSPC)},
    **{f"landing {fault}": partial(_of_landings, fault) for fault in (steps.KILL, steps.EIO, steps.ENOSPC)},
    "signals": lambda loop, folder, asked: clings.run(loop, folder, asked.seed, asked.steps),
}


def options(arguments: "list[str] | None" = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.kills", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=1000, help="how many at random moments, for each kind of loop")
    parser.add_argument("--steps", type=int, default=0, help="so many of the other faults, chosen by chance; 0: all")
    parser.add_argument("--loop", choices=[*KINDS, "all"], default="all")
    parser.add_argument("--only", choices=SORTS, action="append", help="this sort of faults; repeatable")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--results", metavar="FILE", default=RESULTS)
    return parser.parse_args(arguments)


def main() -> int:
    """Exit 0 when nothing was lost that may not be lost."""
    asked = options()
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup the loops would ignore a hang-up, as they should
    results = load(asked.results)
    for sort in asked.only or SORTS:
        for loop in loops_of(sort, asked.loop):
            with tempfile.TemporaryDirectory(prefix="rooda-kills-") as folder:
                found, problems = SORTS[sort](loop, os.path.realpath(folder), asked)
            keep(results, sort, loop, {**found, "seed": asked.seed})
            save(asked.results, results)
            print(f"{loop}, {sort}: {json.dumps(found)}", *problems, sep="\n", flush=True)
    print(table(asked.results))
    return int(not all(harmless(found) for loops in results["faults"].values() for found in loops.values()))


def loops_of(sort: str, wanted: str) -> list[str]:
    """Return the kinds of loops for a sort of faults; those of tasks are tried once."""
    if sort.startswith(("tasks ", "landing ")):
        return ["tasks"] if wanted == "all" else []
    return [*KINDS] if wanted == "all" else [wanted]


def load(path: str) -> dict[str, Any]:
    """Earlier results; none when there are none of this form."""
    try:
        with open(path, encoding="utf-8") as file:
            found: dict[str, Any] = json.load(file)
    except FileNotFoundError:
        found = {}
    return found if found.get("v") == VERSION else {"v": VERSION, "faults": {}}


def keep(results: dict[str, Any], sort: str, loop: str, found: dict[str, Any]) -> None:
    """Put it in place of older figures; the sums of all random kills stand above."""
    results["faults"].setdefault(sort, {})[loop] = found
    results["faults"] = {each: results["faults"][each] for each in SORTS if each in results["faults"]}
    sums = Tally()
    for each in results["faults"].get("random", {}).values():
        sums = sums.plus(tally(each))
    results |= {"kills": sums.faults, **{name: getattr(sums, name) for name in Tally._fields if name != "faults"}}
    results |= {
        "python": f"Python {platform.python_version()}",
        "system": f"{platform.system()} {platform.machine()}",
    }


def save(path: str, results: dict[str, Any]) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(f"{path}.tmp", "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
        file.write("\n")
    os.replace(f"{path}.tmp", path)


def tally(found: dict[str, Any]) -> Tally:
    return Tally(*(found[name] for name in Tally._fields))


def harmless(found: dict[str, Any]) -> bool:
    """What a fault may cost: the calls that it met at work, made once more."""
    return tally(found).harmless


if __name__ == "__main__":
    sys.exit(main())
