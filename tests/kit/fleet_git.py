"""A repository with a bare remote, and workers that claim and publish a task in it."""

import os
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from rooda.fleet import chain, publish, restore
from rooda.fleet.chain import CLAIM, TICKET, TURN, Record
from rooda.fleet.mirror import Mirror
from rooda.fleet.publish import Publisher, Turn
from rooda.fleet.remote import Remote, Result, Update
from rooda.fleet.restore import Restored

TICKET_TEXT = b'{"text": "fix it"}\n'
WHEN = "2026-02-06T10:00:00Z"
ME = ("-c", "user.name=me", "-c", "user.email=me@localhost", "-c", "commit.gpgsign=false")


def git(folder: str | Path, *args: str, stdin: bytes = b"", env: Mapping[str, str] = {}) -> str:
    command, variables = ["git", *ME, *args], {**os.environ, **env}
    ran = subprocess.run(command, cwd=folder, input=stdin, capture_output=True, check=False, env=variables)
    assert ran.returncode == 0, (args, ran.stderr.decode())
    return ran.stdout.decode("utf-8", "surrogateescape").rstrip("\n")


def wait(seconds: float) -> bool:
    """Never give up."""
    time.sleep(min(seconds, 0.05))
    return False


def give_up(_: float) -> bool:
    return True


def new_remote(folder: Path, files: Mapping[str, str] = {"a.txt": "a\n"}) -> str:
    """Create a bare repository whose branch main has these files."""
    bare, work = folder / "remote.git", folder / "first"
    git(folder, "init", "-q", "--bare", "-b", "main", str(bare))
    git(folder, "init", "-q", "-b", "main", str(work))
    for name, text in files.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)
    git(work, "add", "-A")
    git(work, "commit", "-q", "-m", "first")
    git(work, "push", "-q", str(bare), "HEAD:refs/heads/main")
    return str(bare)


class Worker:
    """A machine: its mirror, its clones, and the tip that it believes in."""

    def __init__(self, home: Path, name: str, url: str, **more: str | bool | float) -> None:
        self.name, self.home = name, home / name
        self.mirror = Mirror(str(self.home), "0123456789ab", url, **more)  # type: ignore[arg-type]
        self.remote = Remote(self.mirror)
        self.tip = ""
        self.root = ""
        self.publisher: Publisher | None = None

    def add(self, text: bytes = TICKET_TEXT, waiting: Callable[[float], bool] = wait) -> int:
        self.mirror.fetch()
        make = lambda number: publish.ticket(self.mirror, Record(TICKET, number, worker=self.name, at=WHEN), text)  # noqa: E731
        return self.remote.create(make, waiting)[0]

    def claim(self, number: int, waiting: Callable[[float], bool] = wait) -> Result:
        """Claim the task after a fetch, as a leg does at its beginning."""
        return self.claim_over(number, self.mirror.fetch(number), waiting)

    def claim_over(self, number: int, tip: str, waiting: Callable[[float], bool] = wait) -> Result:
        record = chain.claim_after(self.remote.entries(tip), self.name, "1.0", WHEN)
        assert record.kind == CLAIM
        made = publish.claim(self.mirror, tip, record)
        result = self.remote.push(Update(number, tip, made), waiting)
        self.tip = made if result.kind == "done" else self.tip
        return result

    def clone(self, prefix: str = "", **more: object) -> Restored:
        """Restore the claimed task into a new clone."""
        entries = self.remote.entries(self.tip)
        number = sum(name.startswith("clone") for name in os.listdir(self.home))
        folder = str(self.home / f"clone{number}")
        base = self.mirror.branch("main")
        branch = "rooda/1-fix-it"
        found = restore.restore(self.mirror, entries, folder, base=base, branch=branch, prefix=prefix, **more)  # type: ignore[arg-type]
        self.root = found.root
        return found

    def begin(self, prefix: str = "", **more: object) -> Publisher:
        entries = self.remote.entries(self.tip)
        self.publisher = Publisher(self.mirror, self.root, prefix, entries=entries, **more)  # type: ignore[arg-type]
        return self.publisher

    def make_turn(self, number: int, **facts: object) -> Turn:
        entries = self.remote.entries(self.tip)
        said = {"seq": chain.next_seq(entries), "fence": entries[-1].record.fence, "worker": self.name, "at": WHEN}
        assert self.publisher
        return self.publisher.turn(self.tip, Record(TURN, number, **{**said, **facts}))  # type: ignore[arg-type]

    def push_turn(self, number: int, turn: Turn, waiting: Callable[[float], bool] = wait) -> Result:
        assert self.publisher
        result = self.remote.turn(Update(number, self.tip, turn.commit, self.publisher.objects), waiting)
        if result.kind == "done":
            self.publisher.done(turn)
            self.tip = turn.commit
        return result

    def turn(self, number: int, **facts: object) -> Result:
        return self.push_turn(number, self.make_turn(number, **facts))


def subjects(remote: str, number: int, prefix: str = "refs/rooda/task/") -> list[str]:
    """The subjects of a task's chain, oldest first."""
    return git(remote, "log", "--first-parent", "--reverse", "--format=%s", f"{prefix}{number}").splitlines()
