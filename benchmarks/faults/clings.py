"""Agents that cling to life × every way to end the loop above them: it ends, as it should, and nobody is left."""

import os
import random
import signal
import subprocess
import time
from typing import NamedTuple

from benchmarks.faults.judge import Judge, Tally, undisturbed
from benchmarks.faults.kinds import KINDS, Failed, Json, Kind, write
from benchmarks.faults.randomly import strike
from benchmarks.faults.site import PATIENCE, Site, until

BEGIN = ': >"$FAULTS_NOTES/there"\nexport MEMBER=\'echo "$ROODA_RUN" >"$FAULTS_NOTES/alive/$$"; exec sleep 1000\'\n'


class Clinging(NamedTuple):
    """What the agent does, and how many they are when all of it is there."""

    shell: str
    members: int = 2


AGENTS = {
    "good": Clinging("exec sleep 1000", 1),
    "ignoring": Clinging("trap '' TERM INT HUP QUIT; sh -c \"$MEMBER\" & while :; do sleep 1000; done"),
    "holding stdout": Clinging("(trap '' HUP; exec sh -c \"$MEMBER\") & echo done; wait"),
    "setsid": Clinging('setsid sh -c "$MEMBER" & wait'),
    "double fork": Clinging("setsid sh -c 'sh -c \"$MEMBER\" & exit' & wait; exec sleep 1000"),
}
SIGNALS = {"INT": 130, "TERM": 143, "HUP": 143, "INT to the group": 130}
KILLS = {f"KILL of {target}": -signal.SIGKILL for target in ("loop", "guardian", "both", "everybody")}
WAYS = {**SIGNALS, **KILLS}
CASES = [(way, agent) for way in WAYS for agent in AGENTS]


class Matrix:
    """All cases of one kind of loop."""

    def __init__(self, kind: Kind, folder: str, seed: int = 0) -> None:
        self.kind, self.folder, self._count = kind, folder, 0
        self._random = random.Random(seed)
        self._reference = undisturbed(self._site())

    def one(self, way: str, agent: str) -> Judge:
        """Wait until one of the agents clings, end the loop, look; then go on to the end."""
        site = self._site()
        judge = Judge(site, self._reference)
        key = self._random.choice([key for together in self.kind.turns for key in sorted(together)])
        try:
            self._one(site, judge, way, AGENTS[agent], key)
        except Failed as problem:
            judge.note(failed=[problem])
        finally:
            site.clear()
        judge.problems = [f"{self.kind.name}, {way}, {agent} at {key}: {each}" for each in judge.problems]
        return judge

    def _one(self, site: Site, judge: Judge, way: str, agent: Clinging, key: str) -> None:
        process = clinging(site, key, agent)
        if way == "INT to the group":
            os.killpg(process.pid, signal.SIGINT)
        elif way in SIGNALS:
            os.kill(process.pid, signal.Signals[f"SIG{way}"])
        else:
            strike(site, process, way.removeprefix("KILL of "))
        code = site.ended(process).code
        os.unlink(os.path.join(site.notes, "clings"))
        judge.tally = judge.tally._replace(faults=1)
        judge.session(code, (WAYS[way],))
        if way in SIGNALS or way == "KILL of loop":
            judge.nobody()
        judge.finish()
        judge.end()

    def _site(self) -> Site:
        self._count += 1
        return Site(self.kind, os.path.join(self.folder, f"{self.kind.name}-{self._count}"))


def clinging(site: Site, key: str, agent: Clinging) -> "subprocess.Popen[bytes]":
    """A start, as soon as the agent of this call is there with all of its own."""
    write(site.notes, "clings", f"{key}\n")
    write(site.notes, "clings.sh", BEGIN + agent.shell)
    process, alive, there = site.next(), os.path.join(site.notes, "alive"), os.path.join(site.notes, "there")
    if not until(lambda: os.path.exists(there) and len(os.listdir(alive)) >= agent.members, PATIENCE):
        raise Failed(f"the agent is not there: {site.heard()}")
    return process


def run(name: str, folder: str, seed: int = 0, most: int = 0) -> "tuple[Json, list[str]]":
    """Every case, or so many of them by chance; what came of it."""
    began, matrix, chosen = time.monotonic(), Matrix(KINDS[name], folder, seed), [*CASES]
    random.Random(seed).shuffle(chosen)
    tally, problems = Tally(), list[str]()
    for way, agent in chosen[: most or None]:
        judge = matrix.one(way, agent)
        tally, problems = tally.plus(judge.tally), problems + judge.problems
    return {**tally._asdict(), "seconds": round(time.monotonic() - began, 1)}, problems
