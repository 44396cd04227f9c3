"""A fault at every step to the disk: at each call on the files of a run the loop is killed, or the call fails."""

import errno
import os
import random
import shutil
import signal
import subprocess
from typing import NamedTuple

from benchmarks.faults.judge import Judge, Tally, undisturbed
from benchmarks.faults.kinds import KINDS, Failed, Json, Kind
from benchmarks.faults.site import Site

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "steps.c")
KILL, EIO, ENOSPC = "KILL", "EIO", "ENOSPC"
READING = {"open", "list", "close"}  # a kill there is one at the next step that changes something
FILLING = {"open-to-write", "write", "pwrite", "mkdir", "rename", "fsync", "fdatasync"}  # what a full disk can refuse


class Step(NamedTuple):
    """One call of the loop on a file of its own."""

    number: int
    name: str
    path: str


class Steps:
    """All faults of one kind of loop."""

    def __init__(self, kind: Kind, folder: str) -> None:
        self.kind, self.folder = kind, folder
        self._library = build(folder)
        self._count = 0
        site = self._site()
        self._reference = undisturbed(site, self.env(site, 0, KILL))
        self.all = noted(site)

    def places(self, fault: str) -> list[Step]:
        """Where this fault makes a difference."""
        if fault == KILL:
            return [step for step in self.all if step.name not in READING]
        return [step for step in self.all if (step.name in FILLING if fault == ENOSPC else step.name != "close")]

    def one(self, step: Step, fault: str) -> Judge:
        """A run with this fault, and if it does not come to its end by itself, the next one."""
        site = self._site()
        judge = Judge(site, self._reference, detours=fault != KILL)
        try:
            self._one(site, judge, step, fault)
        except Failed as problem:
            judge.note(failed=[problem])
        finally:
            site.clear()
        judge.problems = [f"{fault} at {step.number} {step.name} {step.path}: {each}" for each in judge.problems]
        if not judge.problems:
            shutil.rmtree(site.folder, ignore_errors=True)
        return judge

    def _one(self, site: Site, judge: Judge, step: Step, fault: str) -> None:
        ended = site.ended(site.next(self.env(site, step.number, fault)))
        judge.tally = judge.tally._replace(faults=1)
        judge.session(ended.code, (0, -signal.SIGKILL) if fault == KILL else (0, 1, 2, 3, 4))
        judge.nobody()
        if ended.code > 0 and ended.said.count("\n") < 1:
            judge.note(failed=[f"exit {ended.code} without a word"])
        failed_last = judge.detours and ended.code == 0 and not self.kind.begun(site.work)  # a turn that counts, too
        if not failed_last and not self.kind.over(site.work):
            judge.finish()
        judge.end()

    def env(self, site: Site, at: int, fault: str) -> dict[str, str]:
        roots = [os.path.join(site.work, name) for name in sorted({*self.kind.public, ".rooda"})]
        return {
            "LD_PRELOAD": self._library,
            "FAULTS_ROOTS": ":".join(roots),
            "FAULTS_AT": str(at),
            "FAULTS_DO": fault if fault == KILL else str(getattr(errno, fault)),
            "FAULTS_LOG": os.path.join(site.folder, "steps"),
        }

    def _site(self) -> Site:
        self._count += 1
        return Site(self.kind, os.path.join(self.folder, f"{self.kind.name}-{self._count}"))


def noted(site: Site) -> list[Step]:
    """The steps that a start has made."""
    with open(os.path.join(site.folder, "steps"), encoding="utf-8", errors="replace") as file:
        rows = [line.rstrip("\n").split(" ", 3) for line in file]
    return [Step(int(number), name, os.path.relpath(path, site.work)) for number, _, name, path in rows]


def build(folder: str) -> str:
    """The library that is preloaded. Failed without a C compiler."""
    library, compiler = os.path.join(folder, "steps.so"), shutil.which("cc")
    if not compiler:
        raise Failed("There is no C compiler (cc).")
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(done.stderr)
    return library


def run(name: str, fault: str, folder: str, seed: int = 0, most: int = 0) -> "tuple[Json, list[str]]":
    """This fault at every step, or at so many of them by chance; what came of it."""
    steps = Steps(KINDS[name], folder)
    chosen = steps.places(fault)
    random.Random(seed).shuffle(chosen)
    tally, problems = Tally(), list[str]()
    for step in chosen[: most or None]:
        judge = steps.one(step, fault)
        tally = tally.plus(judge.tally)
        problems += judge.problems
    return {**tally._asdict(), "steps": len(steps.all)}, problems
