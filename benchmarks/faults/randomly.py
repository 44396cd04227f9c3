"""SIGKILL at random moments: of the loop, its guardian, both, their group, or everybody, also while it starts."""

import os
import random
import signal
import subprocess
import time

from benchmarks.faults.judge import Judge, Tally, undisturbed
from benchmarks.faults.kinds import KINDS, Failed, Json, Kind
from benchmarks.faults.site import PATIENCE, Site, until

TARGETS = ("loop", "guardian", "both", "group", "everybody")
STARTING, RUNNING = "while it starts", "while it runs"
MOST = 4  # kills in one run


class Campaign:
    """Runs of one kind, one after the other, each of which is killed several times on its way to the end."""

    def __init__(self, kind: Kind, folder: str, seed: int) -> None:
        self.kind, self.folder = kind, folder
        self.random = random.Random(seed)
        self.tally = Tally()
        self.problems: list[str] = []
        self.calls = 0
        self.by_target = dict.fromkeys(TARGETS, 0)
        self.by_moment = dict.fromkeys((STARTING, RUNNING), 0)
        self._rounds = 0
        self._reference = undisturbed(self._site())

    def run(self, kills: int) -> None:
        while self.tally.faults < kills:
            self._round(min(self.random.randint(1, MOST), kills - self.tally.faults))

    def _site(self) -> Site:
        self._rounds += 1
        return Site(self.kind, os.path.join(self.folder, f"{self.kind.name}-{self._rounds}"))

    def _round(self, kills: int) -> None:
        """One run to its end, with so many kills unless it ends before."""
        site = self._site()
        judge = Judge(site, self._reference)
        try:
            while kills and not self.kind.over(site.work):
                kills -= self._killed(site, judge)
            if not self.kind.over(site.work):
                judge.finish()
            judge.end(paid=True)
        except Failed as problem:
            judge.note(failed=[problem])
        finally:
            site.clear()
        self.calls += len(site.begun())
        self.tally = self.tally.plus(judge.tally)
        self.problems += [f"{site.folder}: {problem}" for problem in judge.problems]

    def _killed(self, site: Site, judge: Judge) -> int:
        """A start that is killed at a random moment; 0 if it came to its end before."""
        before, process = len(site.begun()), site.next()
        if self.random.random() >= 0.35:
            calls = before + self.random.randint(1, 3)
            until(lambda: len(site.begun()) >= calls or process.poll() is not None, PATIENCE)
        time.sleep(self.random.random() * 0.15)
        target = self.random.choice(TARGETS)
        if process.poll() is not None or not strike(site, process, target):
            ended = site.ended(process)
            judge.session(ended.code, site.codes(ended))
            return 0
        code = site.ended(process).code
        self.by_target[target] += 1
        fresh = judge.session(code, (0, -signal.SIGKILL))
        self.by_moment[RUNNING if fresh else STARTING] += 1
        if target == "loop" and fresh:  # the guardian has ended before us, and its descendants before it
            judge.nobody()
        judge.tally = judge.tally._replace(faults=judge.tally.faults + 1)
        return 1


def strike(site: Site, process: "subprocess.Popen[bytes]", target: str) -> bool:
    """Kill them; False when nobody was left to kill."""
    if target == "everybody":
        return everybody(site)
    if target == "group":
        os.killpg(process.pid, signal.SIGKILL)
        return True
    loop = child(process.pid)
    guardian = [process.pid] if target != "loop" or not loop else []  # it has not forked yet
    for pid in guardian + (loop if target != "guardian" else []):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return True


def everybody(site: Site) -> bool:
    """All that carry the site's mark, until nobody does."""
    ended = 0
    while (count := site.clear()) and ended < 1000:
        ended += count
    return ended > 0


def child(guardian: int) -> list[int]:
    """The loop process below the visible one; [] before it is there."""
    try:
        with open(f"/proc/{guardian}/task/{guardian}/children", encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()[:1]]
    except OSError:
        return []


def run(name: str, kills: int, seed: int, folder: str) -> "tuple[Json, list[str]]":
    """So many kills of loops of one kind; what came of it, and in words what went wrong."""
    began = time.monotonic()
    campaign = Campaign(KINDS[name], folder, seed)
    campaign.run(kills)
    facts = {"targets": campaign.by_target, "moments": campaign.by_moment, "calls": campaign.calls}
    return {**campaign.tally._asdict(), **facts, "seconds": round(time.monotonic() - began, 1)}, campaign.problems
