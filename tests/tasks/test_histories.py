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
echo x >>"work-$me"; git add "work-$me"; git commit -qm "work of $me" 9>&-
"""
GATE = 'git rev-parse HEAD >>"$FAKE/green"'
ASKING = """\
[ -e "$FAKE/asked-$me" ] || { touch "$FAKE/asked-$me"; echo "<question>Go on?</question>"; }
"""
STEPS = ("add", "add", "run", "run", "kill", "kill", "order", "edit", "land", "land", "pause")


class History:
    """A repository with tasks, what was done to it, and what must be true at its end."""

    def __init__(self, repo: Workspace, seed: int) -> None:
        self.repo, self.dice = repo, random.Random(seed)
        self.wanted: dict[int, int] = {}  # iterations, by task
        self.cancelled: set[int] = set()
        self.kills = self.orders = 0
        self.running: list[Running] = []
        repo.write("mine.txt", "mine\n")
        self.base = repo.git("rev-parse", "main").strip()
        repo.side("iteration", AGENT + (ASKING if seed % 2 else ""))

    def step(self) -> None:
        getattr(self, self.dice.choice(STEPS))()

    def add(self) -> None:
        """Two processes add a task at the same time."""
        count = self.dice.choice((1, 2))
        both = [self.repo.start("tasks", "add", f"Task {each}", "-n", str(count), "--gate", GATE) for each in "ab"]
        for one in both:
            assert one.finish(30) == 0, one.err
            self.wanted[int(one.out.split()[2].rstrip(":"))] = count

    def run(self) -> None:
        """Start a run, whether or not one goes on."""
        self.running.append(self.repo.start("tasks", "run", "-j", "2"))
        self.pause()

    def land(self) -> None:
        """Start a landing, whether or not one goes on, and whatever runs."""
        self.running.append(self.repo.start("tasks", "land"))
        self.pause()
        self.check_green()

    def edit(self) -> None:
        """Change some task, at any time."""
        if self.wanted:
            number = self.dice.choice(sorted(self.wanted))
            words = self.dice.choice((("--priority", "high"), ("--text", "Another text"), ("--after", "")))
            done = self.repo.rooda("tasks", "edit", str(number), *words, timeout=90)
            assert done.code in (0, 2), done.err

    def check_green(self) -> None:
        """The gates have passed on exactly the commit that the target has."""
        tip = self.repo.git("rev-parse", "main").strip()
        green = Path(self.repo.fake, "green")
        assert tip == self.base or tip in green.read_text().split(), f"{tip} is not green"

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
            landed = self.repo.rooda("tasks", "land", timeout=120)
            if (done.code, landed.code) == (0, 0):
                return
        outs = [path.read_text()[-1500:] for path in Path(self.repo.path, ".git/rooda/tasks").glob("*.out")]
        said = "\n".join((done.both, landed.both, *outs))
        raise AssertionError(json.dumps([*self.tasks().values()], indent=1) + said)

    def check(self) -> None:
        repo, tasks = self.repo, self.tasks()
        assert set(tasks) == set(self.wanted)  # none lost, none doubled
        assert not Path(repo.fake, "twice").exists()
        begun = Path(repo.fake, "begun").read_text().split() if self.wanted else []
        subjects = repo.git("log", "--format=%s", "main").split("\n")
        for number, count in self.wanted.items():
            assert tasks[number]["state"] == ("cancelled" if number in self.cancelled else "landed"), tasks[number]
            made = subjects.count(f"work of {number}")
            if number in self.cancelled:
                assert not made
                continue
            asked = Path(repo.fake, f"asked-{number}").exists()
            assert count <= begun.count(str(number)) <= count + self.kills + asked + self.orders
            assert 1 <= made <= begun.count(str(number))
            assert made == len(repo.read(f"work-{number}").split())
        self.check_green()
        assert repo.git("status", "--porcelain") == "?? mine.txt\n" and repo.read("mine.txt") == "mine\n"


SEEDS = [1, *(pytest.param(seed, marks=(pytest.mark.long, pytest.mark.timeout(900))) for seed in range(2, 40))]


@pytest.mark.parametrize("seed", SEEDS)
def test_T_11_random_histories_lose_and_double_nothing(repo: Workspace, seed: int) -> None:
    """Whatever is killed or ordered: each task is worked once at a time, and ends as it must."""
    history = History(repo, seed)
    for _ in range(12):
        history.step()
    history.end()
    history.check()
