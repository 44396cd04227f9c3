"""`python -m benchmarks [PART …]`: measure all, or these parts; `--readme`: put the figures into the documents."""

import argparse
import os
import platform
import sys
import tempfile
import time
from typing import Any

from benchmarks import documents, plots, results
from benchmarks.bench import Bench
from benchmarks.goals import PARTS
from benchmarks.measure import Failed


def main() -> int:
    asked = options()
    try:
        if asked.readme:
            documents.filled(results.load(asked.results), asked.results)
            return 0
        return measured(asked)
    except Failed as problem:
        print(problem, file=sys.stderr)
        return 1


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure rooda against its goals.")
    parser.add_argument("parts", metavar="PART", nargs="*", help=f"of {', '.join(PARTS)}; all when none is named")
    parser.add_argument("--quick", action="store_true", help="few rounds: does it run, not how fast is it")
    parser.add_argument("--readme", action="store_true", help="measure nothing; put the results into the documents")
    parser.add_argument("--results", metavar="DIR", default=results.FOLDER)
    parser.add_argument("--rooda", metavar="FILE", default="", help="this installed command instead of a fresh install")
    asked = parser.parse_args()
    if unknown := [part for part in asked.parts if part not in PARTS]:
        parser.error(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    return asked


def measured(asked: argparse.Namespace) -> int:
    """Exit 0 when every goal that was measured is met, or the run was a quick one; else 4."""
    found = results.load(asked.results)
    missed = False
    chosen = [part for part in PARTS if part in asked.parts or not asked.parts]
    with tempfile.TemporaryDirectory(prefix="rooda-bench-", ignore_cleanup_errors=True) as root:
        bench = Bench(os.path.realpath(root), asked.quick, os.path.abspath(asked.rooda) if asked.rooda else "")
        for number, part in enumerate(chosen, 1):
            print(f"[{number}/{len(chosen)}] {part} …", flush=True)
            began = time.monotonic()
            goal = PARTS[part](bench)
            results.keep(found, part, goal, {**how(bench), "seconds": round(time.monotonic() - began, 1)})
            results.save(asked.results, found, [*PARTS])
            for row in goal.rows:
                missed = missed or not row.met
                print(f"    {row.goal or ' '}  {row.told}", flush=True)
    plots.drawn(found, asked.results)
    return 4 if missed and not asked.quick else 0


def how(bench: Bench) -> dict[str, Any]:
    """What the figures belong to."""
    return {
        "quick": bench.quick,
        "python": f"Python {platform.python_version()}",
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "agent": "C" if bench.compiled else "Python",
    }


if __name__ == "__main__":
    sys.exit(main())
