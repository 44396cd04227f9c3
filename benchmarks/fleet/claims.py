"""Lets one worker claim many queued tasks in git, without their loops: `claims ADDRESS FOLDER COUNT SLOTS`.

Prints the seconds from the beginning of each leg to its pushed claim as JSON, in the order of the claims.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

from rooda import __version__
from rooda.fleet import chain, publish
from rooda.fleet.chain import TICKET, Record
from rooda.fleet.engine import Engine
from rooda.fleet.mirror import Mirror
from rooda.fleet.names import task_workflow
from rooda.fleet.port import Desk, Order, Place, Wish, parse_address
from rooda.fleet.remote import DONE, Remote, Update
from rooda.fleet.serve import Host, serve
from rooda.tasks import model
from rooda.tasks.model import Task

STAMP = "2026-01-01T00:00:00Z"
AT_ONCE = 200  # refs in one push
OVER = {"kind": "ended", "code": 0, "facts": {"session": "s", "state": "completed", "iteration": 1}, "head": "abc"}


def main(address: str, folder: str, count: int, slots: int) -> None:
    mirror = Mirror(os.path.join(folder, "fleet"), "0" * 12, os.path.join(folder, "origin.git"))
    remote, key = Remote(mirror), os.urandom(6).hex()
    mirror.fetch()
    queued(mirror, count)
    engine = Engine(parse_address(address))
    for number in range(1, count + 1):
        task = model.encode(Task(number, f"task {number}", "text", "main"))
        engine.submit(Wish(task_workflow(key, str(number)), {"v": 1, "number": number}, task, key, pool=key))
    engine.close()
    took, lock = list[float](), threading.Lock()

    def leg(order: Order, desk: Desk) -> dict[str, object]:
        began, number = time.monotonic(), int(order.ticket["number"])
        desk.record({})
        tip = mirror.fetch(number)
        made = publish.claim(mirror, tip, chain.claim_after(remote.entries(tip), "bench", __version__, STAMP))
        assert remote.push(Update(number, tip, made), lambda _: False).kind == DONE
        with lock:
            took.append(time.monotonic() - began)
            if len(took) == count:
                os.kill(os.getpid(), signal.SIGTERM)
        return {**OVER, "worker": "bench"}

    serve(parse_address(address), True, Host(Place("bench", key, slots), leg, lambda _: None))
    print(json.dumps(took), flush=True)
    os._exit(0)


def queued(mirror: Mirror, count: int) -> None:
    """Make the refs of all tasks."""
    made = [publish.ticket(mirror, Record(TICKET, number), b"{}\n") for number in range(1, count + 1)]
    specs = [f"{commit}:{mirror.ref(number)}" for number, commit in enumerate(made, 1)]
    for begin in range(0, count, AT_ONCE):
        words = ["git", f"--git-dir={mirror.folder}", "push", "-q", mirror.url, *specs[begin : begin + AT_ONCE]]
        subprocess.run(words, check=True, capture_output=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
