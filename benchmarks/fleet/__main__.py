"""`python -m benchmarks.fleet`: tasks on three workers in network namespaces, under faults of every kind. Needs root.

Turns are counted in git's ref, calls by the agents themselves, in a file outside of every clone. `figures` measures
memory, pace and claims of one worker instead, and needs no root. `python -m benchmarks --readme` puts the results of
complete runs into docs/fleet.md.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.fleet import figures, judge
from benchmarks.fleet.judge import Site, Verdict
from benchmarks.fleet.net import Machine, network
from benchmarks.fleet.place import home, server_words

ROODA = [sys.executable, "-m", "rooda"]
WORKERS = ("blue", "red", "green")
GIT_AWAY = 12.0  # seconds
AGENT = """#!/bin/sh
cat > /dev/null
place=${{PWD%/work*}}
number=${{place##*-}}
worker=${{place%/*}}
worker=${{worker##*/}}
echo "start $number $worker $$ $(date +%s.%N)" >> {calls}
sleep {seconds}
echo "line" >> work.txt
git add -A && git commit -q -m work
echo "end $worker $$ $(date +%s.%N)" >> {calls}
"""


class Campaign:
    """One run: a server, a git daemon, three workers, and one list of faults."""

    def __init__(self, folder: Path, machines: dict[str, Machine], asked: argparse.Namespace) -> None:
        self.folder, self.machines, self.asked = folder, machines, asked
        self.server = machines["server"]
        self.calls = folder / "calls"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.hits: list[tuple[str, float]] = []  # worker and time of each fault
        self.killed: dict[str, list[tuple[float, float]]] = {}
        self.down: dict[str, list[tuple[float, float]]] = {}  # when a fault hit each worker, until it was undone
        self.away: list[tuple[float, float]] = []  # when Temporal or the git server did not answer

    # Setting up

    def begin(self) -> None:
        self.calls.touch()
        agent = self.folder / "agent"
        agent.write_text(AGENT.format(calls=self.calls, seconds=self.asked.turn))
        agent.chmod(0o755)
        git = ["git", "-c", "user.name=me", "-c", "user.email=me@localhost"]
        for words in (
            ["git", "init", "-q", "--bare", "-b", "main", "srv/project.git"],
            ["git", "init", "-q", "-b", "main", "desk"],
        ):
            subprocess.run(words, cwd=self.folder, check=True)
        (self.folder / "desk" / "README.md").write_text("a project\n")
        for words in (["add", "-A"], ["commit", "-q", "-m", "first"], ["push", "-q", "../srv/project.git", "main"]):
            subprocess.run([*git, *words], cwd=self.folder / "desk", check=True)
        url = f"git://{self.server.address}/project.git"
        subprocess.run(["git", "remote", "add", "origin", url], cwd=self.folder / "desk", check=True)
        self.start_git()
        self.start_temporal()
        for name in WORKERS:
            self.start_worker(name)

    def environment(self, name: str) -> dict[str, str]:
        settings = self.folder / "gitconfig"
        settings.write_text("[user]\nname = me\nemail = me@localhost\n[init]\ndefaultBranch = main\n")
        fence = {"ROODA_TEST_FENCE": "off"} if self.asked.fence == "off" else {}
        address = f"temporal://{self.server.address}:7233/default"
        more = f"heartbeat = {self.asked.heartbeat}\ninsecure = true\n"
        own = home(self.folder, name, address, f"git://{self.server.address}/*", more)
        return {**own, **fence, "GIT_CONFIG_GLOBAL": str(settings)}

    def start_git(self) -> None:
        words = [
            "git",
            "daemon",
            "--reuseaddr",
            "--export-all",
            "--enable=receive-pack",
            f"--base-path={self.folder}/srv",
        ]
        self.processes["git"] = self.server.start(words, os.environ, self.folder / "git.log", self.folder)

    def start_temporal(self) -> None:
        words = server_words(str(self.folder / "temporal.db"), "0.0.0.0", 7233)
        self.processes["temporal"] = self.server.start(words, os.environ, self.folder / "temporal.log", self.folder)

    def start_worker(self, name: str) -> None:
        words = [*ROODA, "worker", "-j", str(self.asked.slots), "--name", name]
        log = self.folder / f"{name}.log"
        self.processes[name] = self.machines[name].start(words, self.environment(name), log, self.folder)

    def desk(self, *words: str) -> str:
        """Run a command at the desk, again while the server is away."""
        while True:
            done = subprocess.run(
                ["ip", "netns", "exec", self.server.space, *ROODA, "tasks", *words, "--fleet"],
                cwd=self.folder / "desk", env=self.environment("desk"), capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode == 0:
                return done.stdout
            if "does not answer" not in done.stderr:
                raise SystemExit(f"rooda tasks {' '.join(words)}: {done.stderr}")
            time.sleep(1)

    # Faults

    def hit(self, name: str, seconds: float = 0.0) -> None:
        now = time.time()
        self.hits.append((name, now))
        self.killed.setdefault(name, []).append((now, now + seconds))

    def worker_pid(self, name: str) -> int:
        """The process that works; its parent is the guardian."""
        guardian = self.processes[name].pid
        children = Path(f"/proc/{guardian}/task/{guardian}/children").read_text().split()
        return int(children[0])

    def kill_worker(self, name: str) -> None:
        self.hit(name, 1)
        os.kill(self.worker_pid(name), signal.SIGKILL)
        self.processes[name].wait()
        self.start_worker(name)

    def kill_both(self, name: str) -> None:
        pid = self.worker_pid(name)
        self.hit(name, 1)
        for each in (self.processes[name].pid, pid):
            os.kill(each, signal.SIGKILL)
        self.processes[name].wait()
        time.sleep(self.asked.heartbeat)
        self.start_worker(name)

    def kill_machine(self, name: str) -> None:
        self.hit(name, 1)
        self.machines[name].die()
        self.processes[name].wait()
        time.sleep(self.asked.heartbeat)
        self.machines[name].link(True)
        self.start_worker(name)

    def cut_link(self, name: str) -> None:
        self.hit(name, self.asked.heartbeat)
        self.machines[name].link(False)
        time.sleep(2 * self.asked.heartbeat)
        self.machines[name].link(True)
        self.again(name)

    def freeze(self, name: str) -> None:
        long = self.asked.heartbeat * 4 / 3
        self.hit(name)  # nothing runs there from now on; only at the instant of the thaw may two agents be alive
        machine = self.machines[name]
        machine.signal_all(signal.SIGSTOP)
        time.sleep(long)
        machine.signal_all(signal.SIGCONT)
        self.again(name)

    def stop_worker(self, name: str) -> None:
        pid = self.worker_pid(name)
        self.hit(name, self.asked.heartbeat)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(self.asked.heartbeat * 4 / 3)
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass
        self.again(name)

    def again(self, name: str) -> None:
        """Start a worker again if its guardian has ended it, as its service manager would."""
        last = time.monotonic() + 2 * self.asked.heartbeat
        while self.processes[name].poll() is None and time.monotonic() < last:
            time.sleep(0.2)
        if self.processes[name].poll() is not None:
            self.start_worker(name)

    def stop_temporal(self, _: str) -> None:
        self._signal("temporal", signal.SIGSTOP)
        time.sleep(self.asked.heartbeat * 2 / 3)
        self._signal("temporal", signal.SIGCONT)

    def kill_temporal(self, _: str) -> None:
        self._signal("temporal", signal.SIGKILL)
        self.processes["temporal"].wait()
        time.sleep(2)
        self.start_temporal()

    def stop_git(self, _: str) -> None:
        self._signal("git", signal.SIGKILL)
        self.processes["git"].wait()
        time.sleep(GIT_AWAY)
        self.start_git()

    def hang_git(self, _: str) -> None:
        """The git server takes connections, and answers none."""
        self._signal("git", signal.SIGSTOP)
        time.sleep(GIT_AWAY)
        self._signal("git", signal.SIGCONT)

    def _signal(self, name: str, number: int) -> None:
        """Signal a server and the processes that it has started; each has a session of its own."""
        os.killpg(self.processes[name].pid, number)

    # The run

    def run(self, faults: list[str], seed: int) -> Verdict:
        chance = random.Random(seed)
        listed = self.folder / "tasks.md"
        listed.write_text("".join(f"- [ ] Task {number}\n" for number in range(self.asked.tasks)))
        self.desk("add", "--from", str(listed), "-n", str(self.asked.turns))
        began = time.monotonic()
        thread = threading.Thread(target=self._faults, args=(faults, chance), daemon=True)
        thread.start()
        last = began + self.asked.limit
        while time.monotonic() < last and (thread.is_alive() or self._open()):
            time.sleep(1)
        print(f"    {time.monotonic() - began:.0f} s", end="", flush=True)
        return self.judged()

    def _faults(self, faults: list[str], chance: random.Random) -> None:
        wanted = self.asked.slots * len(WORKERS)
        while len(self.calls.read_text().splitlines()) < wanted:
            time.sleep(0.2)
        for each in faults:
            time.sleep(chance.uniform(1, 2 * self.asked.turn))
            name, began = chance.choice(WORKERS), time.time()
            FAULTS[each](self, name)
            hit = self.away if each in SERVERS else self.down.setdefault(name, [])
            hit.append((began, time.time()))

    def _open(self) -> list[int]:
        found = json.loads(self.desk("--json"))
        return [int(each["name"]) for each in found if each["state"] not in ("completed", "landed")]

    def judged(self) -> Verdict:
        lost = self._open()
        for name in WORKERS:
            if self.processes[name].poll() is None:
                self.processes[name].terminate()
        for name in WORKERS:
            try:
                self.processes[name].wait(30)
            except subprocess.TimeoutExpired:
                pass
        left = sum(len(self.machines[name].pids()) for name in WORKERS)
        bare = self.folder / "srv" / "project.git"
        seqs: list[tuple[str, str]] = []
        for ref in self._git(bare, "for-each-ref", "--format=%(refname)", "refs/rooda/task/").split():
            rows = self._git(bare, "log", "--first-parent", "--format=%s", ref).splitlines()
            seqs += [(ref, row.split(" by ")[0]) for row in rows if row.startswith("turn ")]
        calls = judge.calls_in(self.calls.read_text().splitlines())
        wanted = self.asked.tasks * self.asked.turns
        return Verdict(
            tasks=self.asked.tasks,
            turns=len(set(seqs)),
            wanted=wanted,
            doubled=len(seqs) - len(set(seqs)),
            calls=len(calls),
            repeated=len(calls) - len(set(seqs)),
            together=judge.together(calls, self.killed),
            takeovers=judge.takeovers(calls, self.hits, self._site),
            left=left,
            lost=tuple(lost),
        )

    @property
    def _site(self) -> Site:
        return Site(self.asked.slots, self.asked.heartbeat, WORKERS, self.down, self.away)

    def _git(self, folder: Path, *words: str) -> str:
        return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True).stdout


FAULTS: dict[str, Callable[[Campaign, str], Any]] = {
    "worker killed": Campaign.kill_worker,
    "worker and guardian killed": Campaign.kill_both,
    "machine dies": Campaign.kill_machine,
    "link cut": Campaign.cut_link,
    "machine frozen": Campaign.freeze,
    "worker stopped": Campaign.stop_worker,
    "Temporal stopped": Campaign.stop_temporal,
    "Temporal killed": Campaign.kill_temporal,
    "git server away": Campaign.stop_git,
    "git server hangs": Campaign.hang_git,
}

SERVERS = ("Temporal stopped", "Temporal killed", "git server away", "git server hangs")  # they hit no worker


def schedules(asked: argparse.Namespace) -> dict[str, list[str]]:
    """The runs: no fault, each alone, all in one; or random ones."""
    if asked.random:
        chance = random.Random(asked.seed)
        return {f"random {n + 1}": chance.choices([*FAULTS], k=6) for n in range(asked.random)}
    if asked.fault:
        return {"all in one" if each == "all" else each: [*FAULTS] if each == "all" else [each] for each in asked.fault}
    return {"none": [], **{name: [name] for name in FAULTS}, "all in one": [*FAULTS]}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description=__doc__)
    parser.add_argument("what", nargs="?", choices=("faults", "figures"), default="faults")
    parser.add_argument("--claims", type=int, default=1000, help="with figures: queued tasks")
    parser.add_argument("--results", metavar="DIR", default=results.FOLDER)
    parser.add_argument("--fault", action="append", choices=[*FAULTS, "all"], help="only this fault; repeatable")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="N random schedules instead")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tasks", type=int, default=60)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--turn", type=float, default=2.0, help="seconds that an agent works")
    parser.add_argument("--slots", type=int, default=4, help="loops at once on each worker")
    parser.add_argument("--heartbeat", type=int, default=15)
    parser.add_argument("--limit", type=float, default=900.0, help="seconds for one run")
    parser.add_argument("--fence", choices=("on", "off"), default="on")
    parser.add_argument("--keep", metavar="DIR", help="keep the files of the runs there")
    return parser.parse_args()


def main() -> int:
    asked = options()
    if asked.what == "figures":
        return measured(asked)
    if os.geteuid():
        print("Network namespaces need root.", file=sys.stderr)
        return 2
    held, rows = True, list[dict[str, Any]]()
    print("fault | turns | doubled | repeated calls | together | take-over min / median / max s | left | lost")
    for name, faults in schedules(asked).items():
        with folder_for(asked.keep) as folder, network(["server", *WORKERS]) as machines:
            campaign = Campaign(folder, machines, asked)
            campaign.begin()
            found = campaign.run(faults, asked.seed)
        held = held and found.holds
        rows.append({**found._asdict(), "fault": name, "held": found.holds})
        print(f"\n{row(name, found)}", flush=True)
    if not asked.fault:
        how = {key: getattr(asked, key) for key in ("tasks", "turns", "turn", "slots", "heartbeat", "fence")}
        keep(asked, "random" if asked.random else f"faults, fence {asked.fence}", {"rows": rows, **how})
    return 0 if held else 1


def measured(asked: argparse.Namespace) -> int:
    """Measure the figures; exit code 4 if a goal is missed, as for all benchmarks."""
    with folder_for(asked.keep) as folder:
        found = figures.all_of(folder, asked.claims)
    keep(asked, "figures", {"rows": [{**each._asdict(), "met": each.met} for each in found]})
    return 0 if all(each.met for each in found) else 4


def keep(asked: argparse.Namespace, part: str, found: dict[str, Any]) -> None:
    """Put a part's results into fleet.json, in place of older ones."""
    whole = {**results.read(asked.results, "fleet.json"), part: found}
    os.makedirs(asked.results, exist_ok=True)
    results.replace(os.path.join(asked.results, "fleet.json"), json.dumps(whole, indent=1) + "\n")


@contextlib.contextmanager
def folder_for(kept: str | None) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="rooda-fleet-", dir=kept))
    try:
        yield folder
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)


def row(name: str, found: Verdict) -> str:
    times = found.takeovers
    taken = f"{times[0]:.1f} / {times[len(times) // 2]:.1f} / {times[-1]:.1f}" if times else "none"
    cells = (name, f"{found.turns} of {found.wanted}", found.doubled, found.repeated, found.together, taken, found.left)
    return " | ".join(map(str, (*cells, ", ".join(map(str, found.lost)) or "none")))


if __name__ == "__main__":
    sys.exit(main())
