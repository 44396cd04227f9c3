"""Random histories of `rooda tasks` against a model: commands of several processes at once, SIGKILL anywhere."""

import json
import os
import random
import signal
import time
from pathlib import Path

import psutil
import pytest

from tests.kit.processes import marked
from tests.kit.workspace import Running, Workspace

AGENT = """\
me=$(basename "$(git rev-parse --show-toplevel)")
exec 9>"$FAKE/lock-$me"
flock -n 9 || echo "$me" >>"$FAKE/twice"
echo "$me" >>"$FAKE/begun"
sleep 0.1
echo x >>work; git add work; git commit -qm "work of $me" 9>&-
"""
ASKING = """\
[ -e "$FAKE/asked-$me" ] || { touch "$FAKE/asked-$me"; echo "<question>Go on?</question>"; }
"""


class History:
    """A repository with tasks, what was done to it, and what must be true at its end."""

    def __init__(self, repo: Workspace, seed: int) -> None:
        self.repo, self.dice = repo, random.Random(seed)
        self.wanted: dict[int, int] = {}  # iterations, by task
        self.cancelled: set[int] = set()
        self.kills = self.orders = 0
        self.running: list[Running] = []
        repo.side("iteration", AGENT + (ASKING if seed % 2 else ""))

    def step(self) -> None:
        getattr(self, self.dice.choice(("add", "add", "run", "run", "kill", "kill", "order", "pause")))()

    def add(self) -> None:
        """Two processes add a task at the same time."""
        count = self.dice.choice((1, 2))
        both = [self.repo.start("tasks", "add", f"Task {each}", "-n", str(count)) for each in "ab"]
        for one in both:
            assert one.finish(30) == 0, one.err
            self.wanted[int(one.out.split()[2].rstrip(":"))] = count

    def run(self) -> None:
        """Start a run, whether or not one goes on."""
        self.running.append(self.repo.start("tasks", "run", "-j", "2"))
        self.pause()

    def pause(self) -> None:
        time.sleep(self.dice.random() * 0.8)

    def kill(self) -> None:
        """SIGKILL of a loop, of the scheduler, or of everything."""
        victims = self.dice.choice((self.loops, self.scheduler, self.everything))()
        self.kills += bool(victims)
        for pid in victims:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def loops(self) -> list[int]:
        found = [task["process"]["pid"] for task in self.tasks().values() if task["process"]["pid"]]
        return [pid for pid in found[:1] if psutil.pid_exists(pid)]

    def scheduler(self) -> list[int]:
        path = Path(self.repo.path, ".git/rooda/tasks/run.lock")
        facts = json.loads(path.read_text() or "{}") if path.exists() else {}
        return [facts["pid"]] if facts.get("pid") and psutil.pid_exists(facts["pid"]) else []

    def everything(self) -> list[int]:
        return [*marked(self.repo.mark)]

    def order(self) -> None:
        """Cancel, stop, retry or answer some task, at any time."""
        if not self.wanted:
            return
        self.orders += 1
        number = self.dice.choice(sorted(self.wanted))
        word = self.dice.choice(("cancel", "stop", "retry", "answer", "answer"))
        words = ("answer", str(number), "Yes.") if word == "answer" else ("tasks", word, str(number))
        done = self.repo.rooda(*words, timeout=90)
        assert done.code in (0, 2), done.err
        self.cancelled |= {number} if word == "cancel" and done.code == 0 else set()

    def tasks(self) -> dict[int, dict[str, object]]:  # type: ignore[type-arg]
        folder = Path(self.repo.path, ".git/rooda/tasks")
        return {int(path.stem): json.loads(path.read_text()) for path in folder.glob("[0-9]*.json")}

    def end(self) -> None:
        """Let all that is left finish, with an answer to each question."""
        for one in self.running:
            one.process.wait(60)
        for _ in range(12):
            for number, task in self.tasks().items():
                if task["question"]:
                    self.repo.rooda("answer", str(number), "Yes.")
            done = self.repo.rooda("tasks", "run", "-j", "2", timeout=120)
            if done.code == 0:
                return
        outs = [path.read_text()[-1500:] for path in Path(self.repo.path, ".git/rooda/tasks").glob("*.out")]
        raise AssertionError(json.dumps([*self.tasks().values()], indent=1) + done.out + done.err + "\n".join(outs))

    def check(self) -> None:
        repo, tasks = self.repo, self.tasks()
        assert set(tasks) == set(self.wanted)  # none lost, none doubled
        assert not Path(repo.fake, "twice").exists()
        begun = Path(repo.fake, "begun").read_text().split() if self.wanted else []
        for number, count in self.wanted.items():
            state = "cancelled" if number in self.cancelled else "completed"
            assert tasks[number]["state"] == state, tasks[number]
            if state == "completed":
                branch = str(tasks[number]["branch"])
                made = len(repo.git("log", "--format=%s", f"main..{branch}").split("\n")) - 1
                asked = Path(repo.fake, f"asked-{number}").exists()
                assert count <= begun.count(str(number)) <= count + self.kills + asked + self.orders
                assert 1 <= made <= begun.count(str(number))


SEEDS = [1, 2, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 40))]


@pytest.mark.parametrize("seed", SEEDS)
def test_T_11_random_histories_lose_and_double_nothing(repo: Workspace, seed: int) -> None:
    """Whatever is killed or ordered: each task is worked once at a time, and ends as it must."""
    history = History(repo, seed)
    for _ in range(12):
        history.step()
    history.end()
    history.check()
