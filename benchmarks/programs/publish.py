"""Publishes turns of a task, and pushes as much by hand: `publish.py FOLDER ROUNDS REFS`; prints seconds as JSON.

REFS: so many tasks' refs are in the state remote, packed as a server keeps them.
"""

import json
import os
import subprocess
import sys
import time

from rooda.fleet import chain, publish, restore
from rooda.fleet.chain import TICKET, TURN, Record
from rooda.fleet.mirror import Mirror
from rooda.fleet.publish import Publisher
from rooda.fleet.remote import Remote, Update

FILES, CHANGED = 1000, 3
ENTRY = (
    "commit refs/rooda/task/{0}\ncommitter b <b@c.invalid> {0} +0000\ndata 1\nx\nM 100644 inline t\ndata {1}\n{0}\n\n"
)


def git(folder: str, *words: str, text: str = "") -> str:
    ran = subprocess.run(["git", *words], cwd=folder, input=text, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


def change(folder: str, number: int) -> None:
    for each in range(CHANGED):
        with open(os.path.join(folder, f"d{each}", f"f{each}"), "w", encoding="ascii") as file:
            file.write(f"{number} {each}\n" * 30)


def prepare(folder: str, refs: int) -> tuple[str, str]:
    """Make the remote with its refs, and a clone to push from by hand."""
    remote, clone = os.path.join(folder, "remote.git"), os.path.join(folder, "by-hand")
    git(folder, "init", "-q", "--bare", "-b", "main", remote)
    git(folder, "init", "-q", "-b", "main", clone)
    for number in range(FILES):
        os.makedirs(os.path.join(clone, f"d{number % 50}"), exist_ok=True)
        with open(os.path.join(clone, f"d{number % 50}", f"f{number}"), "w", encoding="ascii") as file:
            file.write(f"{number}\n" * 20)
    git(clone, "config", "user.name", "b")
    git(clone, "config", "user.email", "b@c.invalid")
    git(clone, "add", "-A")
    git(clone, "commit", "-q", "-m", "all")
    git(clone, "push", "-q", remote, "HEAD:refs/heads/main")
    entries = "".join(ENTRY.format(number, len(str(number))) for number in range(2, refs + 1))
    git(remote, "fast-import", "--quiet", text=entries)
    git(remote, "pack-refs", "--all")
    git(remote, "config", "receive.autogc", "false")
    return remote, clone


def push(clone: str, remote: str) -> float:
    """Push by hand; return the seconds that it took."""
    began = time.perf_counter()
    git(clone, "push", "-q", remote, "HEAD:refs/heads/by-hand")
    return time.perf_counter() - began


def main(folder: str, rounds: int, refs: int) -> None:
    remote, clone = prepare(folder, refs)
    mirror = Mirror(os.path.join(folder, "fleet"), "0" * 12, remote)
    mine, never = Remote(mirror), lambda _: False
    mirror.fetch()
    make = lambda number: publish.ticket(mirror, Record(TICKET, number), b"{}\n")  # noqa: E731
    number, tip = mine.create(make, never, first=refs + 1)
    work = os.path.join(folder, "work")
    restore.restore(mirror, mine.entries(tip), work, base=mirror.branch("main"), branch="rooda/1-x")
    secret = {**os.environ, "SOME_API_KEY": "n0t-1n-4ny-f1le-0f-th1s"}
    publisher = Publisher(mirror, work, environ=secret, entries=mine.entries(tip))
    took: dict[str, list[float]] = {"make": [], "publish": [], "push": []}
    for seq in range(1, rounds + 1):
        for each in (work, clone):
            change(each, seq)
        git(clone, "commit", "-q", "-a", "-m", str(seq))
        if seq % 2:  # what comes first finds the caches cold
            took["push"].append(push(clone, remote))
        began = time.perf_counter()
        turn = publisher.turn(tip, Record(TURN, number, seq, 1, "worker"))
        made = time.perf_counter()
        assert mine.turn(Update(number, tip, turn.commit, publisher.objects), never).kind == "done"
        took["publish"].append(time.perf_counter() - began)
        took["make"].append(made - began)
        if not seq % 2:
            took["push"].append(push(clone, remote))
        publisher.done(turn)
        tip = turn.commit
    assert len(mine.entries(tip)) == rounds + 1 and chain.next_seq(mine.entries(tip)) == rounds + 1
    json.dump(took, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
