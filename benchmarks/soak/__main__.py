"""`python -m benchmarks.soak --minutes 30`: a loop of each kind, a list of tasks and the page run side by side.

Each loop and the tasks' scheduler are killed, stopped or paused at random moments, and resumed; agents fail, hang,
print floods, meet usage limits and leave processes behind. The page watches all of it, and is killed and started, too.
The result is `results/soak.json`; exit 0 if nothing was lost, doubled, orphaned or corrupted, nothing hung, and memory
and open files stayed flat.
"""

import argparse
import json
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

from benchmarks import results
from benchmarks.measure import Failed
from benchmarks.soak.kinds import KINDS
from benchmarks.soak.loop import Loop, Tally
from benchmarks.soak.page import Page
from benchmarks.soak.tasks import TaskList
from benchmarks.soak.watch import GAIN, Watch

MOODS = "good=80 fail=7 hang=2 flood=2 limit=1 leave=8"
LIFE = 25.0  # seconds between two strikes at one loop, on average
LOOK = 1.0  # seconds between two looks
NAME = "[user]\n\tname = soak\n\temail = soak@example.invalid\n"


def soak(minutes: float, seed: int, root: str, python: str = sys.executable, life: float = LIFE) -> dict[str, Any]:
    """So many minutes, then an orderly end; what came of it."""
    dice, watch, began = random.Random(seed), Watch(root), time.monotonic()
    os.mkdir(os.path.join(root, "tmp"))
    with open(os.path.join(root, ".gitconfig"), "w", encoding="ascii") as file:
        file.write(NAME)
    shared = (root, python, MOODS, dice, watch)
    loops = [*(Loop(kind, *shared) for kind in KINDS), TaskList(*shared)]
    page = Page(root, python, loops[0].env, watch)
    due, page_due = dict.fromkeys(loops, 0.0), life
    try:
        page.start()
        while (now := time.monotonic() - began) < minutes * 60:
            for loop in loops:
                if not due[loop]:
                    loop.start()
                    due[loop] = now + dice.expovariate(1 / life)
                elif not loop.alive():
                    loop.look()
                    loop.start()
                elif now >= due[loop]:
                    loop.strike()
                    due[loop] = now + dice.expovariate(1 / life)
                loop.check()
                watch.look(loop.kind.name, loop.folder, now)
            page.look(now)
            if now >= page_due:
                page_due = now + dice.expovariate(1 / (4 * life))
                page.end(dice.choice((signal.SIGTERM, signal.SIGKILL)))
                page.start()
            time.sleep(LOOK if life >= LIFE else LOOK / 4)
        for loop in loops:
            loop.finish()
        page.end(signal.SIGTERM)
        left = watch.living()
    finally:
        for pid in watch.living():
            subprocess.run(["kill", "-KILL", str(pid)], check=False, capture_output=True)
    shown = {"starts": page.starts, "bytes": page.bytes, **watch.page()}
    return told(loops, page, watch, {"v": 1, "minutes": minutes, "seed": seed, "page": shown}, left)


def told(loops: list[Loop], page: Page, watch: Watch, found: dict[str, Any], left: dict[int, str]) -> dict[str, Any]:
    total = Tally(*(sum(numbers) for numbers in zip(*(loop.tally for loop in loops), strict=True)))
    moods: dict[str, int] = {}
    strikes: dict[str, int] = {}
    for loop in loops:
        for *_, mood in loop.calls():
            moods[mood] = moods.get(mood, 0) + 1
        for how, count in loop.struck.items():
            strikes[how] = strikes.get(how, 0) + count
    total = total.plus(orphaned=len(left), hung=len(page.wrong))
    found |= {"strikes": strikes, "calls": moods, **total._asdict(), **watch.flat()}
    kinds = {loop.kind.name: {"turns": loop.turns, "starts": loop.starts, "runs": loop.runs} for loop in loops}
    system = {"python": f"Python {platform.python_version()}", "system": f"{platform.system()} {platform.machine()}"}
    notes = [*(note for loop in loops for note in loop.notes), *page.wrong]
    return {**found, "loops": kinds, "notes": notes, **system, "course": watch.course()}


def harmless(found: dict[str, Any]) -> bool:
    """Nothing went wrong, and nothing grew."""
    is_flat = all(found.get(what, {"flat": True})["flat"] for what in GAIN)  # a short soak has looked at nothing
    return is_flat and not any(found[name] for name in Tally._fields)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--life", type=float, default=LIFE, help="seconds between two strikes at one loop")
    parser.add_argument("--python", default=sys.executable, help="the Python that has the rooda to be soaked")
    parser.add_argument("--results", metavar="DIR", default=results.FOLDER)
    asked = parser.parse_args()
    if not sys.platform.startswith("linux"):
        raise Failed("A soak reads /proc: Linux only.")
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup its loops would ignore a hang-up, as they should
    with tempfile.TemporaryDirectory(prefix="rooda-soak-", ignore_cleanup_errors=True) as root:
        found = soak(asked.minutes, asked.seed, os.path.realpath(root), os.path.abspath(asked.python), asked.life)
    os.makedirs(asked.results, exist_ok=True)
    results.replace(os.path.join(asked.results, "soak.json"), json.dumps(found, indent=1) + "\n")
    print(json.dumps({name: value for name, value in found.items() if name != "course"}, indent=1))
    return int(not harmless(found))


if __name__ == "__main__":
    sys.exit(main())
