"""`python -m benchmarks [--quick] [--goal N]`: measure; `--readme`: put the figures into README.md."""

import argparse
import os
import platform
import sys
import tempfile
from typing import Any

from benchmarks import results
from benchmarks.bench import ROOT, Bench
from benchmarks.goals import GOALS
from benchmarks.measure import Failed


def main() -> int:
    asked = options()
    try:
        if asked.readme:
            results.into_readme(results.load(asked.results))
            return 0
        return measured(asked)
    except Failed as problem:
        print(problem, file=sys.stderr)
        return 1


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure rooda against its goals.")
    parser.add_argument("--quick", action="store_true", help="few rounds: does it run, not how fast is it")
    parser.add_argument("--goal", type=int, action="append", choices=sorted(GOALS), help="only this one; repeatable")
    parser.add_argument("--readme", action="store_true", help="measure nothing; put the results into README.md")
    parser.add_argument("--results", metavar="DIR", default=os.path.join(ROOT, "benchmarks", "results"))
    parser.add_argument("--rooda", metavar="FILE", default="", help="this installed command instead of a fresh install")
    return parser.parse_args()


def measured(asked: argparse.Namespace) -> int:
    """Exit 0 when every goal that was measured is met, or the run was a quick one; else 4."""
    found = results.load(asked.results)
    missed = False
    with tempfile.TemporaryDirectory(prefix="rooda-bench-") as root:
        bench = Bench(os.path.realpath(root), asked.quick, os.path.abspath(asked.rooda) if asked.rooda else "")
        for number in asked.goal or GOALS:
            goal = GOALS[number](bench)
            results.keep(found, number, goal, how(bench))
            results.save(asked.results, found)
            for row in goal.rows:
                missed = missed or not row.met
                bound = "no goal" if row.limit is None else f"at most {row.limit:g}: {'met' if row.met else 'MISSED'}"
                print(f"{row.goal:>2}  {row.what}: {row.measured:.3g} {row.unit} ({bound})", flush=True)
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
