"""Faults of `rooda tasks land`: at a call of rooda or of its git on a file, it is killed, or the call fails.

Two tasks land and a red one does not, whatever happens: the target is green after every step, no commit is lost, and
a file of the user stays as it is.
"""

import errno
import json
import os
import random
import shutil
from pathlib import Path
from typing import NamedTuple

from benchmarks.faults.judge import MOST, Tally
from benchmarks.faults.kinds import Json
from benchmarks.faults.steps import FILLING, KILL, READING, build
from tests.kit.completed import complete
from tests.kit.processes import marked, until
from tests.kit.workspace import Workspace

GATE = 'test ! -e red && git rev-parse HEAD >> "$FAKE/green"'
GOOD, RED = ("1", "3"), "2"
TRIES = 4  # further landings, after which the good tasks must have landed
PROGRAMS = ("rooda", "git")


class Place(NamedTuple):
    """A call at which a fault is met: the program, its place among the processes of its name, the call's number."""

    program: str
    turn: int
    at: int


class Landing:
    """A repository with three completed tasks, landed with a fault, and then without any."""

    def __init__(self, folder: str) -> None:
        self._folder, self._count = folder, 0
        self._library = build(folder)
        self._first = self._prepared()
        self.calls: dict[Place, str] = {}
        for program in PROGRAMS:
            repo = self._made()
            repo.rooda("tasks", "land", env=self._env(repo, Place(program, 0, 0), KILL), timeout=120)
            for row in Path(repo.root, "steps").read_text(errors="replace").splitlines():
                number, turn, name, _ = row.split(" ", 3)
                self.calls[Place(program, int(turn), int(number))] = name
            self._close(repo)

    def places(self, fault: str) -> list[Place]:
        """Where this fault makes a difference."""
        if fault == KILL:
            return [place for place, name in self.calls.items() if name not in READING]
        return [
            place
            for place, name in self.calls.items()
            if (name in FILLING if fault == "ENOSPC" else name not in ("close", "flock"))
        ]

    def one(self, place: Place, fault: str) -> tuple[Tally, list[str]]:
        """A landing with the fault at this call; what came of it."""
        repo = self._made()
        base = repo.git("rev-parse", "main").strip()
        done = repo.rooda("tasks", "land", env=self._env(repo, place, fault), timeout=120)
        until(lambda: not marked(repo.mark), what="the end of all processes")
        failed = [done.err[-MOST:]] if "Traceback" in done.err + done.out else []
        lost = self._not_green(repo, base)
        back: set[str] = set()
        for _ in range(TRIES):
            back |= {number for number in GOOD if self._state(repo, number) == "waiting"}
            for number in back:
                repo.rooda("tasks", "retry", number)
            if all(self._state(repo, number) == "landed" for number in {*GOOD} - back):
                break
            done = repo.rooda("tasks", "land", timeout=120)
        lost += self._not_green(repo, base) + self._lost(repo, done.both, {*GOOD} - back)
        self._close(repo)
        tally = Tally(1, len(lost), 0, 0, 0, len(failed), len(back))
        return tally, [f"{fault} at {place} {self.calls[place]}: {each}" for each in (*lost, *failed)]

    def _not_green(self, repo: Workspace, base: str) -> list[str]:
        """What is wrong with the target: it must be a commit on which the gates have passed."""
        log = Path(repo.fake, "green")
        green = {base, *(log.read_text().split() if log.exists() else ())}
        tip = repo.git("rev-parse", "main").strip()
        mine = [] if repo.read("mine.txt") == "mine\n" else ["the user's file has changed"]
        return mine if tip in green else [*mine, f"the target {tip} is not green"]

    def _lost(self, repo: Workspace, said: str, good: set[str]) -> list[str]:
        states = {number: self._state(repo, number) for number in (*GOOD, RED)}
        found = [f"task {each} is {states[each]}: {said[-MOST:]}" for each in good if states[each] != "landed"]
        found += [] if states[RED] in ("completed", "waiting", "parked") else [f"the red task is {states[RED]}"]
        if found:
            return found
        subjects = sorted(repo.git("log", "--format=%s", "main").split("\n"))
        if subjects != sorted(["", "first", *(f"write made-{each}" for each in good)]):
            found.append(f"the target has {subjects}")
        status = repo.git("status", "--porcelain")
        found += [f"the checkout: {status}"] if status != "?? mine.txt\n" else []
        repo.git("fsck", "--connectivity-only", "--no-dangling")
        return found

    def _state(self, repo: Workspace, number: str) -> str:
        return str(json.loads(Path(repo.path, f".git/rooda/tasks/{number}.json").read_text())["state"])

    def _prepared(self) -> Workspace:
        root = os.path.join(self._folder, "first")
        os.makedirs(root)
        repo = Workspace(root)
        repo.procedure()
        repo.git("init", "-q", "-b", "main")
        repo.git("add", "-A")
        repo.git("commit", "-qm", "first")
        for name in ("made-1", "red", "made-3"):
            complete(repo, {name: f"{name}\n"}, gate=GATE)
        repo.write("mine.txt", "mine\n")
        return repo

    def _made(self) -> Workspace:
        """A copy of the first repository."""
        self._count += 1
        root = os.path.join(self._folder, f"landing-{self._count}")
        os.makedirs(root)
        repo = Workspace(root)
        shutil.rmtree(repo.path)
        shutil.copytree(self._first.path, repo.path, symlinks=True)
        return repo

    def _close(self, repo: Workspace) -> None:
        repo.close()
        shutil.rmtree(repo.root, ignore_errors=True)

    def _env(self, repo: Workspace, place: Place, fault: str) -> dict[str, str]:
        return {
            "LD_PRELOAD": self._library,
            "FAULTS_ROOTS": f"{repo.path}:{repo.home}/.data",
            "FAULTS_PROGRAM": place.program,
            "FAULTS_TURNS": os.path.join(repo.root, "turns"),
            "FAULTS_TURN": str(place.turn),
            "FAULTS_AT": str(place.at),
            "FAULTS_DO": fault if fault == KILL else str(getattr(errno, fault)),
            "FAULTS_LOG": os.path.join(repo.root, "steps"),
        }


def run(fault: str, folder: str, seed: int = 0, most: int = 0) -> "tuple[Json, list[str]]":
    """This fault at every call, or at so many of them by chance, half of them inside git; what came of it."""
    landing, dice = Landing(folder), random.Random(seed)
    chosen: list[Place] = []
    for program in PROGRAMS:
        own = [place for place in landing.places(fault) if place.program == program]
        dice.shuffle(own)
        chosen += own[: -(-most // len(PROGRAMS)) if most else None]
    tally, problems = Tally(), list[str]()
    for place in chosen:
        found, said = landing.one(place, fault)
        tally, problems = tally.plus(found), [*problems, *said]
    return {**tally._asdict(), "steps": len(landing.calls)}, problems
