"""Faults of `rooda tasks run`: at each of its calls on the files of the tasks it is killed, or the call fails."""

import json
import os
import random
import shutil
from pathlib import Path

from benchmarks.faults.judge import MOST, Tally
from benchmarks.faults.kinds import Json
from benchmarks.faults.steps import FILLING, KILL, READING, build
from tests.kit.processes import marked, until
from tests.kit.workspace import Ran, Workspace

AGENT = """\
me=$(basename "$(git rev-parse --show-toplevel)")
exec 9>"$FAKE/lock-$me"
flock -n 9 || echo "$me" >>"$FAKE/twice"
echo "$me" >>"$FAKE/begun"
echo x >>work; git add work; git commit -qm "work of $me" 9>&-
"""
TASKS = ("1", "2")
TRIES = 4  # further runs, after which all must be completed


class Scheduler:
    """A repository with two tasks, completed with a fault, and then without any."""

    def __init__(self, folder: str) -> None:
        self._folder, self._count = folder, 0
        self._library = build(folder)
        repo = self._made()
        repo.rooda("tasks", "run", env=self._env(repo, 0, KILL), timeout=120)
        rows = Path(repo.root, "steps").read_text(errors="replace").splitlines()
        self.calls = {(int(row.split(" ")[0]), row.split(" ")[2]) for row in rows}
        repo.close()

    def places(self, fault: str) -> list[int]:
        """The numbers of the calls at which this fault makes a difference, in at least one of the processes."""
        if fault == KILL:
            return sorted({number for number, name in self.calls if name not in READING})
        return sorted({number for number, name in self.calls if (name in FILLING if fault == "ENOSPC" else 1)})

    def one(self, at: int, fault: str) -> tuple[Tally, list[str]]:
        """A run with the fault at its call number `at`; what came of it."""
        repo = self._made()
        head = repo.git("rev-parse", "main")
        done = repo.rooda("tasks", "run", env=self._env(repo, at, fault), timeout=120)
        until(lambda: not marked(repo.mark), what="the end of all processes")
        failed = [done.err[-MOST:]] if "Traceback" in done.err + done.out else []
        for _ in range(TRIES):
            done = repo.rooda("tasks", "run", timeout=120)
            if done.code == 0:
                break
        lost = self._lost(repo, done)
        moved = [] if repo.git("rev-parse", "main") == head and not repo.git("status", "--porcelain") else ["the tree"]
        twice = Path(repo.fake, "twice")
        doubled = twice.read_text().split() if twice.exists() else []
        begun = Path(repo.fake, "begun").read_text().split()
        again = [begun.count(each) - 1 for each in TASKS]  # one iteration of each task may be repeated
        lost += [
            f"task {each} was worked {more + 1} times" for each, more in zip(TASKS, again, strict=True) if more > 1
        ]
        redone = sum(map(bool, again))
        tally = Tally(1, len(lost) + len(moved), 0, len(doubled), 0, len(failed), redone)
        repo.close()
        shutil.rmtree(repo.root, ignore_errors=True)
        return tally, [f"{fault} at {at}: {each}" for each in (*lost, *moved, *doubled, *failed)]

    def _lost(self, repo: Workspace, done: Ran) -> list[str]:
        if done.code:
            return [f"not completed: {(done.out + done.err)[-MOST:]}"]
        tasks = [json.loads(Path(repo.path, f".git/rooda/tasks/{each}.json").read_text()) for each in TASKS]
        counts = [len(repo.git("log", "--format=%s", f"main..{task['branch']}").splitlines()) for task in tasks]
        return [f"task {task['id']} has no commit" for task, count in zip(tasks, counts, strict=True) if not count]

    def _made(self) -> Workspace:
        self._count += 1
        root = os.path.join(self._folder, f"tasks-{self._count}")
        os.makedirs(root)
        repo = Workspace(root)
        repo.procedure()
        repo.side("iteration", AGENT)
        repo.git("init", "-q", "-b", "main")
        repo.git("add", "-A")
        repo.git("commit", "-qm", "first")
        for each in TASKS:
            repo.rooda("tasks", "add", f"Task {each}", "-n", "1")
        return repo

    def _env(self, repo: Workspace, at: int, fault: str) -> dict[str, str]:
        import errno

        return {
            "LD_PRELOAD": self._library,
            "FAULTS_ROOTS": os.path.join(repo.path, ".git", "rooda", "tasks"),
            "FAULTS_AT": str(at),
            "FAULTS_DO": fault if fault == KILL else str(getattr(errno, fault)),
            "FAULTS_LOG": os.path.join(repo.root, "steps"),
            "FAULTS_ONCE": os.path.join(repo.root, "met"),
        }


def run(fault: str, folder: str, seed: int = 0, most: int = 0) -> "tuple[Json, list[str]]":
    """This fault at every call, or at so many of them by chance; what came of it."""
    scheduler = Scheduler(folder)
    chosen = scheduler.places(fault)
    random.Random(seed).shuffle(chosen)
    tally, problems = Tally(), list[str]()
    for at in chosen[: most or None]:
        found, said = scheduler.one(at, fault)
        tally, problems = tally.plus(found), [*problems, *said]
    return {**tally._asdict(), "steps": len(scheduler.calls)}, problems
