"""Who is compared: rooda, the floors, and the peers, each made to run N iterations of the fake agent."""

import os
import shutil
from collections.abc import Callable, Mapping
from typing import NamedTuple

from benchmarks.bench import Bench, Workspace, gaps
from benchmarks.measure import Cost, once
from benchmarks.peers.install import installed
from benchmarks.peers.rows import PEERS, SAYS, Peer

Measure = Callable[[list[str], Mapping[str, str], str, int], Cost]
ROODA, FLOOR, BASH = "rooda", "least durable loop", "rooda.sh (v1)"
UNSYNCED = "rooda, its syncs left out"


class Contender(NamedTuple):
    """One of them. `ready` makes its workspace ready for N iterations, and gives its command."""

    name: str
    ready: Callable[[Workspace, int], list[str]]
    help: tuple[str, ...] = ()
    peer: Peer | None = None
    env: Mapping[str, str] = {}

    @property
    def pause(self) -> bool:
        return self.peer is not None and self.peer.pause

    @property
    def again(self) -> bool:
        return self.peer is not None and self.peer.again

    def cost(self, place: Workspace, count: int, measure: Measure = once) -> Cost:
        """Of one run to its limit."""
        return measure(self.ready(place, count), place.env, place.path, self.peer.code if self.peer else 0)

    def gaps(self, place: Workspace, count: int) -> tuple[list[float], Cost]:
        """Seconds between the end of each agent call and the start of the next in one run, and its cost."""
        with open(place.stamps, "wb"):
            pass
        cost = self.cost(place, count)
        return gaps(place), cost

    def workspace(self, bench: Bench, size: int = 8_000, loop: str = "", **env: str) -> Workspace:
        """A folder for it to run in; a peer finds the fake agent as `claude`, which answers in a form it knows."""
        if self.peer is None:
            return bench.workspace("own", size, loop, **self.env, **env)
        place = bench.workspace(self.name, size, **{"AGENT_SAYS": SAYS, **env})
        place.env["PATH"] = os.pathsep.join([_alias(bench), place.env["PATH"]])
        return place


def own(bench: Bench) -> list[Contender]:
    """rooda and the floors."""
    return [
        Contender(FLOOR, bench.floor),
        Contender(ROODA, lambda place, count: bench.loop(count), (bench.rooda, "--help")),
        Contender(BASH, lambda place, count: bench.first_loop(count)),
    ]


def unsynced(bench: Bench) -> list[Contender]:
    """rooda as it would be if it trusted the machine never to lose power, where that can be had."""
    library = bench.nosync()
    preload = {"LD_PRELOAD": library}
    return [Contender(UNSYNCED, lambda place, count: bench.loop(count), env=preload)] if library else []


def peers(bench: Bench, notes: dict[str, str]) -> list[Contender]:
    """Those that could be installed; why not, or what is odd, goes into `notes`."""
    found = []
    for peer in PEERS:
        there = installed(peer)
        if there.command:
            notes[peer.name] = f"{there.version}, {peer.registry}: {peer.quirk}"
            found.append(_contender(bench, peer, there.command))
        else:
            notes[peer.name] = f"{peer.version}, {peer.registry}: could not be installed: {there.why}"
    return found


def _contender(bench: Bench, peer: Peer, command: str) -> Contender:
    def ready(place: Workspace, count: int) -> list[str]:
        peer.furnish(place, bench.agent, count)
        return [command, *peer.words(place, count)]

    return Contender(peer.name, ready, (command, "--help"), peer)


def _alias(bench: Bench) -> str:
    folder = os.path.join(bench.root, "path")
    if not os.path.isdir(folder):
        os.mkdir(folder)
        shutil.copy(bench.agent, os.path.join(folder, "claude"))
    return folder
