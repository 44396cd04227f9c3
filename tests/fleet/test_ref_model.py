"""Random histories of two workers at one task, against a model; pushes that break in the middle; git that is killed."""

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from rooda.errors import RoodaError
from rooda.fleet import chain
from rooda.fleet.chain import TURN
from rooda.fleet.mirror import Unreachable
from rooda.fleet.remote import Update
from tests.kit.fleet_git import Worker, git, give_up, new_remote, subjects, wait
from tests.kit.processes import until

LONG = [pytest.param(seed, marks=pytest.mark.long) for seed in range(100, 160)]


class Model:
    """What the remote must have after each operation, and what each worker believes."""

    def __init__(self) -> None:
        self.chain = ["ticket"]  # ids of the commits
        self.said = ["ticket of 1 by blue"]
        self.fence = self.seq = 0

    def push(self, old: str, new: str, subject: str) -> str:
        if self.chain[-1] != old:
            return "done" if self.chain[-1] == new else "refused"
        self.chain.append(new)
        self.said.append(subject)
        return "done"


class Player:
    """One of two workers, with a turn that it has made and maybe pushed."""

    def __init__(self, worker: Worker, model: Model) -> None:
        self.worker, self.model = worker, model
        self.made: tuple[str, str, str] | None = None  # old tip, commit and subject of the last update
        worker.tip = worker.mirror.fetch(1)
        worker.clone()
        worker.begin()

    def fetch(self) -> None:
        self.worker.tip = self.worker.mirror.fetch(1)
        assert self.worker.tip == self.model.chain[-1]

    def claim(self) -> None:
        """Claim over what this worker believes to be the tip."""
        entries = self.worker.remote.entries(self.worker.tip)
        old, fence = self.worker.tip, chain.next_fence(entries)
        kind = self.worker.claim_over(1, old).kind
        git_tip = git(self.worker.mirror.url, "rev-parse", "refs/rooda/task/1")
        expected = self.model.push(old, git_tip, f"claim {fence} of 1 by {self.worker.name}")
        assert kind == ("refused" if old != self.model.chain[-2] or git_tip != self.worker.tip else expected)

    def make(self) -> None:
        """Make a turn; its push may be lost."""
        seq = chain.next_seq(self.worker.remote.entries(self.worker.tip))
        turn = self.worker.make_turn(1)
        self.made = (self.worker.tip, turn.commit, f"turn {seq} of 1 by {self.worker.name}")

    def push(self) -> None:
        """Push the last update, maybe for the second time."""
        if self.made:
            old, new, subject = self.made
            assert self.worker.publisher
            update = Update(1, old, new, self.worker.publisher.objects)
            kind = self.worker.remote.turn(update, wait).kind
            assert kind == self.model.push(old, new, subject)
            self.worker.tip = new if kind == "done" else self.worker.tip


@pytest.mark.parametrize("seed", [1, 2, *LONG])
def test_FL_01_random_histories_of_two_workers(seed: int, tmp_path: Path) -> None:
    """After every operation the remote's chain is the model's: late, lost and doubled pushes change nothing."""
    dice = random.Random(seed)
    url = new_remote(tmp_path)
    workers = [Worker(tmp_path, name, url) for name in ("blue", "green")]
    workers[0].add()
    model = Model()
    model.chain = [git(url, "rev-parse", "refs/rooda/task/1")]
    players = [Player(worker, model) for worker in workers]
    for _ in range(12 if seed < 100 else 40):
        player = dice.choice(players)
        tip = model.chain[-1]
        operation = dice.choice([player.fetch, player.claim, player.make, player.push, player.push])
        if operation == player.claim and player.worker.tip != tip:
            assert player.worker.claim_over(1, player.worker.tip).kind == "refused"
        else:
            operation()
        assert git(url, "rev-parse", "refs/rooda/task/1") == model.chain[-1]
    assert subjects(url, 1) == model.said
    assert git(url, "log", "--first-parent", "--reverse", "--format=%H", "refs/rooda/task/1").split() == model.chain
    records = [entry.record for entry in workers[0].remote.entries(workers[0].mirror.fetch(1))]
    assert [record.seq for record in records if record.kind == TURN] == sorted(
        {r.seq for r in records if r.kind == TURN}
    )
    git(url, "fsck", "--strict", "--connectivity-only")


class Proxy:
    """Forwards connections to a port, and cuts the next one after so many bytes from one of its ends.

    While `hangs`, such a connection stays open instead, and so does every later one: nothing moves.
    """

    def __init__(self, port: int) -> None:
        self._port, self._listener = port, socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.cut: tuple[str, int] | None = None  # ("up" | "down", bytes) for the next connection
        self.hangs = False
        self.held: list[socket.socket] = []
        self.moved: list[dict[str, int]] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if self.hangs and not self.cut:
                    self.held.append(near)
                    continue
                far = socket.create_connection(("127.0.0.1", self._port))
                cut, self.cut = self.cut, None
                counts = {"up": 0, "down": 0}
                self.moved.append(counts)
                for way, ends in (("up", (near, far)), ("down", (far, near))):
                    limit = cut[1] if cut and cut[0] == way else -1
                    threading.Thread(target=self._forward, args=(way, *ends, limit, counts), daemon=True).start()

    def _forward(
        self, way: str, source: socket.socket, target: socket.socket, limit: int, counts: dict[str, int]
    ) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                data = data if limit < 0 else data[: limit - counts[way]]
                target.sendall(data)
                counts[way] += len(data)
                if counts[way] == limit:
                    break
            if limit >= 0 and self.hangs:
                self.held += [source, target]
            elif limit >= 0:
                for each in (source, target):
                    each.shutdown(socket.SHUT_RDWR)
            else:
                target.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Proxy]:
    """A proxy in front of a git server for the repository `remote.git`."""
    new_remote(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    words = ["git", "daemon", "--reuseaddr", "--export-all", "--enable=receive-pack", "--listen=127.0.0.1"]
    server = subprocess.Popen(
        [*words, f"--port={port}", f"--base-path={tmp_path}", str(tmp_path)],
        start_new_session=True,
        stderr=subprocess.PIPE,
    )

    def answers() -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return True
        return False

    until(answers, what="the git server")
    found = Proxy(port)
    yield found
    found.close()
    os.killpg(server.pid, signal.SIGKILL)
    server.communicate()


@pytest.mark.parametrize("cuts", [5, pytest.param(80, marks=pytest.mark.long)])
def test_FL_01_a_push_that_is_cut_leaves_the_old_tip_or_the_new_one(cuts: int, proxy: Proxy, tmp_path: Path) -> None:
    """Wherever the connection breaks, in either direction: the turn counts once, and the remote is whole."""
    url = f"git://127.0.0.1:{proxy.port}/remote.git"
    blue = Worker(tmp_path, "blue", url, insecure=True)
    remote = str(tmp_path / "remote.git")
    number = blue.add()
    blue.claim(number)
    blue.clone()
    blue.begin()
    before = len(proxy.moved)
    Path(blue.root, "a.txt").write_text("0\n")
    assert blue.turn(number).kind == "done"
    moved = proxy.moved[before]
    count = 1
    for way in ("up", "down"):
        for place in range(cuts):
            limit = max(1, (place + 1) * moved[way] // cuts - (place == cuts - 1))
            Path(blue.root, "a.txt").write_text(f"{way} {place}\n")
            old, turn = blue.tip, blue.make_turn(number)
            proxy.cut = (way, limit)
            first = blue.push_turn(number, turn, give_up if place % 2 else wait)
            tip = git(remote, "rev-parse", "refs/rooda/task/1")
            assert tip in (old, turn.commit) and (first.kind == "done") <= (tip == turn.commit)
            assert blue.push_turn(number, turn).kind == "done"
            count += 1
            assert len(subjects(remote, 1)) == 2 + count
    git(remote, "fsck", "--strict", "--connectivity-only")


@pytest.mark.parametrize(("way", "part"), [("up", 0.0), ("up", 0.6), ("up", 0.8), ("down", 0.5), ("down", 0.8)])
def test_FL_10_a_remote_that_hangs_is_asked_again(way: str, part: float, proxy: Proxy, tmp_path: Path) -> None:
    """The connection of a push stays open and says nothing more: the push is given up, and counts once in the end."""
    blue = Worker(tmp_path, "blue", f"git://127.0.0.1:{proxy.port}/remote.git", insecure=True, quiet=0.5)
    remote = str(tmp_path / "remote.git")
    number = blue.add()
    blue.claim(number)
    blue.clone()
    blue.begin()
    before = len(proxy.moved)
    assert blue.turn(number).kind == "done"
    whole = proxy.moved[before][way]
    Path(blue.root, "a.txt").write_text("changed\n")
    turn, waits = blue.make_turn(number), list[float]()
    proxy.hangs, proxy.cut = True, (way, int(whole * part))

    def goes_on(seconds: float) -> bool:
        waits.append(seconds)
        proxy.hangs = False
        return False

    assert blue.push_turn(number, turn, goes_on).kind == "done"
    assert waits and len(proxy.held) >= 2
    proxy.hangs = True
    with pytest.raises(Unreachable, match="no progress"):
        blue.mirror.fetch(number)
    proxy.hangs = False
    assert blue.mirror.fetch(number) == turn.commit
    assert subjects(remote, 1)[2:] == ["turn 1 of 1 by blue", "turn 2 of 1 by blue"]
    git(remote, "fsck", "--strict", "--connectivity-only")


def test_FL_10_a_slow_remote_gets_more_time(tmp_path: Path) -> None:
    """A hook of the remote that says nothing for longer than a push waits: later tries wait longer, and one arrives."""
    url = new_remote(tmp_path)
    blue = Worker(tmp_path, "blue", url, quiet=0.5)
    number = blue.add()
    blue.claim(number)
    blue.clone()
    blue.begin()
    hook = Path(url, "hooks", "pre-receive")
    hook.write_text(f"#!/bin/sh\ncat > /dev/null; echo >> {tmp_path}/asked; sleep 1.5\n")
    hook.chmod(0o755)
    assert blue.turn(number).kind == "done"
    tries = len((tmp_path / "asked").read_text())
    assert blue.turn(number).kind == "done"
    assert tries > 1 and len((tmp_path / "asked").read_text()) == tries + 1
    assert subjects(url, 1)[2:] == ["turn 1 of 1 by blue", "turn 2 of 1 by blue"]


SPY = """#!/bin/sh
n=$(cat {folder}/count 2>/dev/null || echo 0); n=$((n + 1)); echo $n >{folder}/count
if [ $n -eq {victim} ]; then
    echo "$@" >{folder}/killed
    {git} "$@" & pid=$!
    [ {delay} = 0 ] || sleep {delay}
    kill -9 $pid; wait $pid; kill -9 $$
fi
exec {git} "$@"
"""


def leg(worker: Worker) -> None:
    """What a leg does: fetch, claim, clone, and two turns with some work."""
    until(lambda: worker.claim(1).kind == "done", what="a claim")  # a push of a killed worker may still arrive
    root = Path(worker.clone().root)
    worker.begin(environ={**os.environ, "MY_API_KEY": "n0t-1n-4ny-f1le"})
    for name in ("one", "two"):
        (root / f"{name}-{worker.name}").write_text(name)
        assert worker.turn(1).kind == "done"


VICTIMS = [(2, "0"), (9, "0.005"), (26, "0.005"), (38, "0.01")]
VICTIMS_LONG = [
    pytest.param(n, delay, marks=pytest.mark.long) for n in range(1, 60) for delay in ("0", "0.004", "0.03")
]


@pytest.mark.parametrize(("victim", "delay"), [*VICTIMS, *VICTIMS_LONG])
def test_FL_01_git_may_be_killed_at_any_call(
    victim: int, delay: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The leg fails with a sentence or goes on; the next leg on the same mirror works, and no turn counts twice."""
    url = new_remote(tmp_path)
    Worker(tmp_path, "desk", url).add()
    spy = tmp_path / "bin" / "git"
    spy.parent.mkdir()
    spy.write_text(SPY.format(folder=tmp_path, victim=victim, delay=delay, git=shutil.which("git")))
    spy.chmod(0o755)
    with monkeypatch.context() as patch, suppress(RoodaError, AssertionError):
        patch.setenv("PATH", f"{spy.parent}{os.pathsep}{os.environ['PATH']}")
        leg(Worker(tmp_path, "blue", url))
    assert (tmp_path / "killed").exists() or int((tmp_path / "count").read_text()) < victim
    leg(Worker(tmp_path, "blue", url))
    said = subjects(url, 1)
    assert [row for row in said if row.startswith("turn")] == [
        f"turn {n} of 1 by blue" for n in range(1, 1 + sum(row.startswith("turn") for row in said))
    ]
    git(url, "fsck", "--strict", "--connectivity-only")


SCRIPT = """
import sys
from pathlib import Path
from tests.fleet.test_ref_model import leg
from tests.kit.fleet_git import Worker
folder, url = sys.argv[1:]
while True:
    leg(Worker(Path(folder), "blue", url))
    print("done", flush=True)
"""


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kills", [2, pytest.param(40, marks=pytest.mark.long)])
def test_FL_01_a_worker_may_be_killed_at_any_moment(kills: int, tmp_path: Path) -> None:
    """After SIGKILL of a worker with all its git processes, at random moments, the next one goes on from the ref."""
    url = new_remote(tmp_path)
    green = Worker(tmp_path, "green", url)
    green.add()
    dice = random.Random(kills)
    script = tmp_path / "leg.py"
    script.write_text(SCRIPT)
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    for _ in range(kills):
        words = [sys.executable, str(script), str(tmp_path), url]
        worker = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, start_new_session=True)
        assert worker.stdout
        worker.stdout.readline()  # it works
        with suppress(subprocess.TimeoutExpired):
            worker.wait(dice.random())
        os.killpg(worker.pid, signal.SIGKILL)
        worker.communicate()
    leg(Worker(tmp_path, "blue", url))
    assert green.claim(1).kind == "done"
    records = [entry.record for entry in green.remote.entries(green.tip)]
    turns = [record.seq for record in records if record.kind == TURN]
    assert turns == [*range(1, len(turns) + 1)] and len(turns) >= 2 * kills
    assert [record.fence for record in records] == sorted(record.fence for record in records)
    git(url, "fsck", "--strict", "--connectivity-only")
