"""`python -m benchmarks.kills [--kills 1000]`: SIGKILL at random moments, and what it cost.

A loop with a fast agent is killed again and again: the loop, its guardian, both, or their whole group, also during
start-up and while the state is written. After each kill the next start goes on. The result is `results/kills.json`.
"""

import argparse
import json
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from typing import Any, NamedTuple

TARGETS = ("loop", "guardian", "both", "group")
STARTING, RUNNING = "while it starts", "while it runs"
AGENT = """\
word=$1
read -r before <alive && grep -q "$word" "/proc/$before/cmdline" 2>/dev/null && echo "$before" >>doubled
echo $$ >alive
echo "$ROODA_ITERATION $ROODA_RUN" >>calls
sh -c 'sleep 1000; :' "$word" &
exit 0
"""
SETTINGS = "[procedures.build]\nkill_grace = 1\n" + "".join(
    f'{phase} = "{phase}"\n' for phase in ("observe", "orient", "decide", "act")
)


class Failed(Exception):
    """Something that is neither a kill nor its consequence."""


class Tally(NamedTuple):
    """What the kills have cost. Everything but `redone` must be 0; `redone` at most one per kill."""

    lost: int = 0  # a counter that went back, or a state file that vanished
    corrupted: int = 0  # a state file that can't be read
    redone: int = 0  # iterations that were begun again
    redone_twice: int = 0  # more than one for one kill
    orphaned: int = 0  # processes of an earlier run that were alive beside the next one
    doubled: int = 0  # an agent that found another at work

    def plus(self, **more: int) -> "Tally":
        return self._replace(**{name: getattr(self, name) + number for name, number in more.items()})


class Campaign:
    """One workspace, many kills."""

    def __init__(self, folder: str, seed: int, python: str = sys.executable) -> None:
        self.folder, self.python = folder, python
        self.random = random.Random(seed)
        self.word = f"kills-{uuid.uuid4().hex}"
        self.tally = Tally()
        self.by_target = dict.fromkeys(TARGETS, 0)
        self.by_moment = dict.fromkeys((STARTING, RUNNING), 0)
        self._counter = 0
        self._runs: set[str] = set()  # all before the present one
        for name, text in {"agent": AGENT, "rooda.toml": SETTINGS, "calls": "", "alive": "0\n", "doubled": ""}.items():
            self._write(name, text)
        for phase in ("observe", "orient", "decide", "act"):
            self._write(phase, f"{phase}\n")
        keep = ("PATH", "LANG")
        self.env = {"HOME": folder, "ROODA_CACHE_HOME": folder, **{k: os.environ[k] for k in keep if k in os.environ}}

    def kill(self) -> None:
        """Start, kill at a random moment, look."""
        before = self.calls()
        process = self._start("1000000")
        starting = self.random.random() < 0.4
        if not starting:
            self._await(lambda: len(self.calls()) > len(before), process)
        time.sleep(self.random.random() * (0.15 if starting else 0.02))
        target = self.random.choice(TARGETS)
        self._strike(process, target)
        self.by_target[target] += 1
        self.by_moment[RUNNING if len(self.calls()) > len(before) else STARTING] += 1
        process.wait()
        self._look(before, target)

    def finish(self) -> bool:
        """The run goes to its limit, and leaves nobody and nothing."""
        before = self.calls()
        process = self._start(str(self._counter + 3))
        process.wait()
        after = self.calls()
        self._judge(before, after)
        ended = process.returncode == 0 and not os.path.exists(self._state) and not self._living()
        return ended and after[-1][0] == self._counter + 3

    def calls(self) -> list[tuple[int, str]]:
        """Iteration and run of all agent calls so far. One of a run that was killed may be noted late."""
        with open(os.path.join(self.folder, "calls"), encoding="ascii") as file:
            return [(int(number), run) for number, run in map(str.split, file.read().split("\n")[:-1])]

    @property
    def _state(self) -> str:
        return os.path.join(self.folder, ".rooda", "state", "build.json")

    def _start(self, limit: str) -> "subprocess.Popen[bytes]":
        self._runs |= self._noted() | {run for _, run in self.calls()}
        way = ["resume", "build"] if os.path.exists(self._state) else ["build"]
        with open(os.path.join(self.folder, "said"), "wb") as said:
            return subprocess.Popen(
                [self.python, "-m", "rooda", *way, "-n", limit, "--ai-cmd", f"sh agent {self.word}"],
                cwd=self.folder,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    def _noted(self) -> set[str]:
        """The run that the ledger names: its agent may be alive and not have said a word yet."""
        try:
            with open(os.path.join(self.folder, ".rooda", "state", "build.lock"), encoding="utf-8") as file:
                return {str(json.load(file).get("run"))}
        except (OSError, ValueError):
            return set()

    def _strike(self, process: "subprocess.Popen[bytes]", target: str) -> None:
        try:
            with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
                loop = [int(pid) for pid in file.read().split()[:1]]
        except OSError:
            loop = []
        if target == "group":
            os.killpg(process.pid, signal.SIGKILL)
            return
        guardian = [process.pid] if target != "loop" or not loop else []  # it has not forked yet
        for pid in guardian + (loop if target != "guardian" else []):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def _look(self, before: list[tuple[int, str]], target: str) -> None:
        """What the kill has done to the state, and who is left."""
        begun = self._judge(before, self.calls())
        if begun and target == "loop":  # the guardian has ended before us, and its descendants before it
            self.tally = self.tally.plus(orphaned=len(self._living()))
        try:
            with open(self._state, "rb") as file:
                counter = json.loads(file.read())["iteration"]
        except FileNotFoundError:
            counter = 0
        except (ValueError, KeyError, TypeError):
            self.tally = self.tally.plus(corrupted=1)
            return
        self.tally = self.tally.plus(lost=int(counter < self._counter))
        self._counter = counter

    def _judge(self, before: list[tuple[int, str]], after: list[tuple[int, str]]) -> bool:
        """What the session that has just ended began with, if it came so far: which call, and beside whom."""
        new = after[len(before) :]
        late = [number for number, run in new if run in self._runs]  # by a survivor of an earlier one
        fresh = [number for number, run in new if run not in self._runs]
        if fresh:
            orphans = [run for run in self._living().values() if run in self._runs]
            begun = [number for number, _ in before] + late
            back = begun[-1] - fresh[0] + 1 if begun else 0
            more = {"redone": max(0, back), "redone_twice": int(back > 1), "lost": int(back < 0)}
            self.tally = self.tally.plus(orphaned=len(orphans), **more)
        with open(os.path.join(self.folder, "doubled"), encoding="ascii") as file:
            self.tally = self.tally._replace(doubled=len(file.read().split()))
        return bool(fresh)

    def _living(self) -> dict[int, str]:
        """The agents and their children that are alive, and the run that each belongs to."""
        word, found = self.word.encode(), {}
        for entry in os.listdir("/proc"):
            try:
                if entry.isdigit() and word in _words(entry, "cmdline"):
                    mark = next(each for each in _words(entry, "environ") if each.startswith(b"ROODA_RUN="))
                    found[int(entry)] = mark.decode().partition("=")[2]
            except (OSError, StopIteration):  # it is about to be gone
                continue
        return found

    def _await(self, condition: Any, process: "subprocess.Popen[bytes]") -> None:
        deadline = time.monotonic() + 30
        while not condition():
            if process.poll() is not None or time.monotonic() > deadline:
                with open(os.path.join(self.folder, "said"), encoding="utf-8", errors="replace") as said:
                    raise Failed(f"no agent call; exit {process.poll()}:\n{said.read()}")
            time.sleep(0.001)

    def _write(self, name: str, text: str) -> None:
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)


def _words(entry: str, name: str) -> list[bytes]:
    with open(f"/proc/{entry}/{name}", "rb") as file:
        return file.read().split(b"\0")


def run(kills: int, seed: int, folder: str, python: str = sys.executable) -> dict[str, Any]:
    """So many kills, then to the end; what came of it."""
    began = time.monotonic()
    campaign = Campaign(folder, seed, python)
    for _ in range(kills):
        campaign.kill()
    completed = campaign.finish()
    return {
        "v": 1,
        "kills": kills,
        "seed": seed,
        "targets": campaign.by_target,
        "moments": campaign.by_moment,
        "calls": len(campaign.calls()),
        **campaign.tally._asdict(),
        "completed": completed,
        "seconds": round(time.monotonic() - began, 1),
        "python": f"Python {platform.python_version()}",
        "system": f"{platform.system()} {platform.machine()}",
    }


def main() -> int:
    """Exit 0 when nothing was lost that may not be lost."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rooda-kills-") as folder:
        found = run(asked.kills, asked.seed, os.path.realpath(folder))
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "results", "kills.json")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(found, file, indent=1)
        file.write("\n")
    print(json.dumps(found, indent=1))
    return int(not harmless(found))


def harmless(found: dict[str, Any]) -> bool:
    """What a kill may cost: the iteration that it met, begun once more."""
    never = ("lost", "corrupted", "redone_twice", "orphaned", "doubled")
    return bool(found["completed"]) and not any(found[name] for name in never) and found["redone"] <= found["kills"]


if __name__ == "__main__":
    sys.exit(main())
