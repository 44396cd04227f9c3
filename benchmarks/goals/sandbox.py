"""What the sandbox adds to a call: from the end of one agent to the start of the next, with and without."""

import os
import shutil
from collections.abc import Callable, Mapping
from statistics import median

from benchmarks.bench import Bench, Workspace, repository
from benchmarks.measure import round_robin
from benchmarks.verdict import Measured, Row

MOST = 15.0  # milliseconds
OFF, INSIDE, NAMED, OPEN = "off", "no network", "named hosts", "all the network"
NETWORKS = {INSIDE: "off", NAMED: "agent", OPEN: "on"}


def cost(bench: Bench) -> Measured:
    if not shutil.which("bwrap"):
        return Measured([], {}, {"missing": "bubblewrap"})
    count, rounds = (8, 3) if bench.quick else (40, 15)
    places = {OFF: _workspace(bench, OFF, "")}
    for name, network in NETWORKS.items():
        table = f'[sandbox]\nenvironment = ["STAMPS"]\nnetwork = "{network}"\n'
        places[name] = _workspace(bench, network, f'sandbox = "workspace"\n{table}')
    series = round_robin({name: _gap(bench, bench.loop(count), place) for name, place in places.items()}, rounds)
    added = {name: (series[name]["gap"].median - series[OFF]["gap"].median) * 1000 for name in NETWORKS}
    rows = [Row(0, f"a call in the sandbox, {name}, over one without", added[name], MOST, "ms") for name in NETWORKS]
    return Measured(rows, series)


def _workspace(bench: Bench, name: str, loop: str) -> Workspace:
    """A repository with a home folder elsewhere: one that contains it can't be in a sandbox."""
    place = bench.workspace(f"sandbox-{name}", loop=f"feedback = false\n{loop}")
    place.env["HOME"] = os.path.join(bench.root, "home-of-sandboxes")
    os.makedirs(place.env["HOME"], exist_ok=True)
    repository(place, 20)
    return place


def _gap(bench: Bench, argv: list[str], place: Workspace) -> Callable[[], Mapping[str, float]]:
    return lambda: {"gap": median(bench.gaps(argv, place))}
