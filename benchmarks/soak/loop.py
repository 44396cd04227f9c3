"""One loop of a soak: begun, gone on with, struck, looked at."""

import glob
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterable
from typing import NamedTuple

from benchmarks.measure import Failed, until
from benchmarks.soak.kinds import Kind, furnish
from benchmarks.soak.watch import Watch

SOFT = {"TERM": signal.SIGTERM, "INT": signal.SIGINT, "HUP": signal.SIGHUP}
STRIKES = ("kill loop", "kill guardian", "kill both", "kill all", *SOFT, "stop", "stop --now", "pause")
PATIENCE = 60.0
SOON = 0.5
REFUSED = (2, 3)  # exit codes of a start that was none
ALONE = ("kill both", "kill all")  # nobody is left who could end the agents; the next start does


class Tally(NamedTuple):
    """What went wrong. All must stay 0."""

    lost: int = 0  # a counter that went back, or a run that vanished
    corrupt: int = 0  # a file that can't be read
    doubled: int = 0  # an agent that found one of another run at work
    orphaned: int = 0  # processes that were alive when they had no right to be
    hung: int = 0  # loops that did not end, or did not begin to work
    refused: int = 0  # starts that ended with a traceback, or that were refused

    def plus(self, **more: int) -> "Tally":
        return self._replace(**{name: getattr(self, name) + number for name, number in more.items()})


class Loop:
    """A workspace with one kind of loop in it."""

    def __init__(self, kind: Kind, root: str, python: str, moods: str, dice: random.Random, watch: Watch) -> None:
        self.kind, self.folder = kind, os.path.join(root, kind.name)
        self.tally, self.struck, self.starts, self.runs = Tally(), dict.fromkeys(STRIKES, 0), 0, 0
        self.notes: list[str] = []
        self._python, self._dice, self._watch = python, dice, watch
        self._last = ""  # what was done to it
        self._before = ("", 0)
        self._process: subprocess.Popen[bytes] | None = None
        self._detached = False
        self._leftover: set[int] = set()  # alive when the present run began
        self._made = 0  # calls before it
        self.turns = 0
        os.mkdir(self.folder)
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "agent.py")
        keep = ("PATH", "LANG")
        git = {"GIT_CONFIG_NOSYSTEM": "1", "HOME": root, "TMPDIR": os.path.join(root, "tmp")}
        self.env = {**{k: os.environ[k] for k in keep if k in os.environ}, **git, "SOAK": self.folder}
        furnish(self.folder, f"{python} -IS {script} {self.folder} {moods}", self.env)

    # what it does

    def start(self) -> None:
        """Go on with the run that is open, or begin another; in the background or not."""
        self._away()
        resumed = self.open()
        if not resumed:
            self.runs += 1
            if self.kind.name == "flow":
                self._main()
        words = self.kind.resume if resumed else self.kind.begin(self.runs)
        self._leftover, self._made = set(self._watch.living(self.folder)), len(self.calls())
        self.starts += 1
        self._last = f"start {self.starts}"
        self._detached = self._dice.random() < 0.4
        self._process = self._rooda(*words, *(["--detach"] if self._detached else []))

    def open(self) -> bool:
        """Is there a run to go on with? What `rooda status --json` says."""
        done = self._rooda("status", "--json")
        done.wait()
        try:
            return any(row["state"] != "completed" for row in json.loads(self._said()))
        except ValueError:
            self._wrong("refused", f"status --json: exit {done.returncode}: {self._said()!r}")
            return False

    def check(self) -> None:
        """Once an agent of the present run is at work, nobody of an earlier one is."""
        if self._leftover and len(self.calls()) > self._made:
            living = self._watch.living(self.folder)
            if left := {pid: living[pid] for pid in self._leftover if pid in living}:
                self._wrong("orphaned", f"beside the next run: {left}", len(left))
            self._leftover = set()

    def alive(self) -> bool:
        starting = self._process is not None and self._process.poll() is None
        return bool(self._watch.loops(self.folder)) or starting

    def strike(self) -> None:
        """End it one way or another, wait, and look at what it leaves."""
        how = self._dice.choice(STRIKES)
        if self._detached:
            self._away()  # who kills the command that starts it has not hit the loop
        pids = self._watch.loops(self.folder)
        if not pids:
            return
        self.struck[how] += 1
        self._last = how
        if how == "pause":
            self._pause()
            return
        self._hit(how, pids)
        if self._ended(how):
            self.look()

    def look(self) -> None:
        """Nobody lives on, nothing is lost, all files are whole."""
        if self._last not in ALONE and (left := self._left()):
            self._wrong("orphaned", f"after {self._last}: {left}", len(left))
        broken = [path for path in self._files(self.kind.json) if not _whole(path)]
        broken += [path for path in self._files(self.kind.lines) if not _whole_lines(path)]
        if broken:
            self._wrong("corrupt", f"{broken}", len(broken))
            return
        which, count = self.kind.counter(self.folder)
        if which == self._before[0] and count < self._before[1]:
            self._wrong("lost", f"{which}: {self._before[1]} became {count}")
        self.turns += count - self._before[1] if which == self._before[0] else count
        self._before = (which, count)
        text = self._said()
        code = self._process.returncode if self._process else None
        if "Traceback" in text or code in REFUSED:
            self._wrong("refused", f"exit {code}: {text[-2000:]}")

    def calls(self) -> list[list[str]]:
        try:
            with open(os.path.join(self.folder, "calls"), encoding="ascii") as file:
                return [line.split() for line in file if line.endswith("\n")]
        except FileNotFoundError:
            return []

    def finish(self) -> None:
        """End it if it runs, go on once more until an agent is called, end it for good; nobody is left."""
        for _ in range(2):
            if self.alive():
                self._hit("TERM", self._watch.loops(self.folder))
                self._ended("the end")
                self.look()
            if not _:
                self.start()
                self.worked()
        for path in self._files((".rooda/runs/*/console.log",)):
            with open(path, encoding="utf-8", errors="replace") as console:
                if "Traceback" in (text := console.read()):
                    self._wrong("refused", text[-2000:])
        doubled = os.path.join(self.folder, "doubled")
        if os.path.exists(doubled):
            with open(doubled, encoding="ascii") as file:
                found = file.read().splitlines()
            self._wrong("doubled", "; ".join(found), len(found))

    def worked(self) -> None:
        """After a start an agent is called, unless the loop ends or waits for an account before."""
        before = len(self.calls())

        def moved() -> bool:
            return len(self.calls()) > before or not self.alive()

        try:
            until(moved, PATIENCE, "an agent call")
        except Failed:
            self._wrong("hung", f"no call after start {self.starts}")

    # how

    def _left(self) -> dict[int, str]:
        """Who is alive although the loop has ended; the dying are given a moment.

        Not those whom an earlier run left, if this one was ended before its first call, and so perhaps before them.
        """
        earlier = self._leftover if len(self.calls()) == self._made else set()
        try:
            until(lambda: not {*self._watch.living(self.folder)} - earlier, SOON, "nobody")
            return {}
        except Failed:
            living = self._watch.living(self.folder)
            return {pid: f"{self._watch.state(pid)} {said}" for pid, said in living.items() if pid not in earlier}

    def _away(self) -> None:
        """A start that was cut off may have left its --detach command; it ends by itself."""
        if self._process:
            self._process.wait(PATIENCE)

    def _main(self) -> None:
        """Back to where flows begin; as a person would, after a git that was killed."""
        lock = os.path.join(self.folder, ".git", "index.lock")
        for _ in range(2):
            if os.path.exists(lock):
                os.unlink(lock)
            done = subprocess.run(
                ["git", "checkout", "-q", "-f", "main"], cwd=self.folder, capture_output=True, text=True, check=False
            )
            if not done.returncode:
                return
        self._wrong("refused", f"git checkout: {done.stderr}")

    def _rooda(self, *words: str) -> "subprocess.Popen[bytes]":
        with open(os.path.join(self.folder, "said"), "wb") as said:
            return subprocess.Popen(
                [self._python, "-m", "rooda", *words],
                cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                start_new_session=True,
            )  # fmt: skip

    def _said(self) -> str:
        with open(os.path.join(self.folder, "said"), encoding="utf-8", errors="replace") as said:
            return said.read()

    def _hit(self, how: str, pids: list[int]) -> None:
        if how.startswith("stop"):
            self._rooda(*how.split()).wait()
            return
        if how == "kill all":
            pids = [*pids, *self._watch.living(self.folder)]
        chosen = {"kill loop": pids[1:2] or pids, "kill both": pids[:2], "kill all": pids}.get(how, pids[:1])
        _kill(chosen, SOFT.get(how, signal.SIGKILL))

    def _pause(self) -> None:
        self._rooda("pause").wait()
        time.sleep(self._dice.random())
        self._rooda("continue").wait()

    def _ended(self, how: str) -> bool:
        try:
            until(lambda: not self.alive(), PATIENCE, "the end")
            return True
        except Failed:
            self._wrong("hung", f"after {how}: {self._watch.living(self.folder)}")
            _kill(self._watch.living(self.folder))
            return False

    def _files(self, patterns: tuple[str, ...]) -> list[str]:
        return [path for each in patterns for path in glob.glob(os.path.join(self.folder, each))]

    def _wrong(self, what: str, text: str, count: int = 1) -> None:
        self.tally = self.tally.plus(**{what: count})
        self.notes.append(f"{time.strftime('%H:%M:%S')} {self.kind.name} {what}: {text}")


def _kill(pids: Iterable[int], number: int = signal.SIGKILL) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def _whole(path: str) -> bool:
    try:
        with open(path, encoding="utf-8") as file:
            json.load(file)
        return True
    except FileNotFoundError:  # it was there a moment ago: its loop is over
        return True
    except ValueError:
        return False


def _whole_lines(path: str) -> bool:
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    try:
        for line in lines[:-1]:
            json.loads(line)
        return True
    except ValueError:
        return False
