"""From a signal to the end: what rooda adds to the time that its agent takes to end, and what the guardian costs.

`python -m benchmarks.signals` prints it; `signals(bench)` gives it as a dict. All in one interleaved run.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping

from benchmarks import processes
from benchmarks.bench import Bench, Workspace
from benchmarks.measure import Failed, finish, round_robin, start, until

LIMIT = 50  # ms that rooda may add
CODES = {"INT": 130, "TERM": 143, "HUP": 143}
# How long a process is held up by getting a guardian, and what one that does nothing takes from the machine.
STAND = """\
import os, time
from rooda.processes import guardian
began = time.perf_counter()
guardian.start()
os.write(1, b"%.6f" % (time.perf_counter() - began))
os._exit(0)
"""


def signals(bench: Bench) -> dict[str, object]:
    """Medians: `own_ms`, the agent alone; `over_ms`, how much slower rooda is, for each signal; the guardian's cost."""
    rounds = 2 if bench.quick else 15
    alone = bench.workspace("alone", AGENT_DOES="wait")
    guarded = bench.workspace("signalled", AGENT_DOES="wait")
    contenders = {name: _signalled(bench.loop(1), guarded, name, code) for name, code in CODES.items()}
    contenders["own"] = _signalled([bench.agent], alone, "TERM", -signal.SIGTERM)
    contenders["guardian"] = lambda: _guardian(bench)
    series = round_robin(contenders, rounds)
    own = series["own"]["wall"].median * 1000
    over = {name: round(series[name]["wall"].median * 1000 - own, 2) for name in CODES}
    found: dict[str, object] = {"v": 1, "rounds": rounds, "quick": bench.quick}
    found |= {"own_ms": round(own, 2), "over_ms": over, "limit_ms": LIMIT, "met": max(over.values()) <= LIMIT}
    found["guardian_start_ms"] = round(series["guardian"]["wall"].median * 1000, 2)
    if processes.readable():
        found["guardian_private_MB"] = round(series["TERM"]["private"].median / 1e6, 2)
    return found


def _signalled(argv: list[str], place: Workspace, name: str, code: int) -> Callable[[], Mapping[str, float]]:
    return lambda: _until_exit(argv, place, name, code)


def _until_exit(argv: list[str], place: Workspace, name: str, code: int) -> Mapping[str, float]:
    if os.path.exists(place.stamps):
        os.unlink(place.stamps)
    pid = start(argv, place.env, place.path)
    until(lambda: os.path.exists(place.stamps) and os.path.getsize(place.stamps) > 0, 10, "an agent call")
    time.sleep(0.05)  # what is done after the start of a call shall be over
    private = processes.private(pid) if processes.readable() else 0
    began = time.monotonic()
    os.kill(pid, signal.Signals[f"SIG{name}"])
    cost = finish(pid, began)
    if cost.code != code:
        raise Failed(f"{' '.join(argv)}: exit {cost.code} after {name} instead of {code}")
    return {"wall": cost.wall, "private": private}


def _guardian(bench: Bench) -> Mapping[str, float]:
    done = subprocess.run([bench.python, "-c", STAND], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(done.stderr)
    return {"wall": float(done.stdout)}


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="rooda-bench-") as root:
        found = signals(Bench(os.path.realpath(root), "--quick" in sys.argv[1:]))
    print(json.dumps(found, indent=1))
    return 0 if found["met"] else 4


if __name__ == "__main__":
    sys.exit(main())
