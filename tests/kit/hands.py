"""Workers of a fleet with scripted legs: in a thread of the test, or as a process with its guardian."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from rooda.fleet import names
from rooda.fleet.port import Desk, Lost, Order, Place, Wish, parse_address
from rooda.tasks import model
from rooda.tasks.model import Task

from .processes import until

BEAT = 5.0
DONE = {"kind": "ended", "code": 0, "facts": {"session": "s", "state": "completed", "iteration": 1}, "head": "abc"}


def wish(key: str, number: int, **more: Any) -> Wish:
    """A task to submit; `ticket` and fields of Wish may be given."""
    task = model.encode(Task(number, f"task {number}", f"do {number}", "main"))
    fields = {"ticket": {"v": 1, "number": number}, "task": task, "key": key, "pool": key, **more}
    return Wish(names.task_workflow(key, f"id{number}"), **fields)


def number_of(order: Order) -> int:
    return int(order.ticket["number"])


AGENT = """# works for some seconds, or, if they are negative, until the test lets it go
import os, sys, time
seconds = float(sys.argv[1])
time.sleep(max(seconds, 0))
while seconds < 0 and not os.path.exists(os.path.join(os.path.dirname(__file__), "go")):
    time.sleep(0.02)
"""


class Hand:
    """A worker in a thread of this process."""

    def __init__(self, address: str, key: str, work: Callable[[Order, Desk], Any], slots: int = 4, **more: Any) -> None:
        from rooda.fleet.serve import Host

        self.said: list[str] = []
        place = Place(more.pop("name", "w"), key, slots, more.pop("beat", BEAT))
        self._host = Host(place, work, self.said.append, **more)
        self._address, self._ready = parse_address(address), threading.Event()
        self._thread = threading.Thread(target=self._main, daemon=True)

    def _main(self) -> None:
        from rooda.fleet.serve import Server

        async def main() -> None:
            self.loop = asyncio.get_running_loop()
            self.server = Server(self._address, True, self._host)
            self._ready.set()
            await self.server.run()

        asyncio.run(main())

    def __enter__(self) -> "Hand":
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, *problem: object) -> None:
        self.drain("now")

    def drain(self, when: str = "turn") -> None:
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self.server.drain, when)
        self._thread.join(60)
        assert not self._thread.is_alive()


class Crew:
    """Worker processes whose legs keep their turns in a folder: one file a turn, which can be made once."""

    def __init__(self, folder: str, address: str, key: str, beat: float = BEAT) -> None:
        self.folder, self.address, self.key, self.beat = folder, address, key, beat
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, slots: int = 2, address: str = "", **env: str) -> "subprocess.Popen[bytes]":
        """Start a worker; its legs take the ticket's `seconds` for each of its `turns`."""
        words = [sys.executable, "-m", "tests.kit.hands", address or self.address, self.key, name]
        words += [str(slots), str(self.beat), self.folder]
        environ = {**os.environ, "PYTHONPATH": os.getcwd(), **env}
        with open(os.path.join(self.folder, f"{name}.out"), "ab") as out:
            process = subprocess.Popen(words, env=environ, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        self.running.append(process)
        return process

    def go(self) -> None:
        """Let the agents that wait for it go on."""
        with open(os.path.join(self.folder, "go"), "w"):
            pass

    def said(self, name: str) -> str:
        with open(os.path.join(self.folder, f"{name}.out")) as file:
            return file.read()

    def lines(self) -> list[dict[str, Any]]:
        """What happened: call (an agent began), turn (published), refused (another was quicker), lost, heard."""
        try:
            with open(os.path.join(self.folder, "log")) as file:
                return [json.loads(line) for line in file]
        except FileNotFoundError:
            return []

    def of(self, what: str) -> list[dict[str, Any]]:
        return [each for each in self.lines() if each["what"] == what]

    def end(self) -> None:
        """End all workers, also those that a test has stopped."""
        from rooda.processes import ending, table

        for process in self.running:
            below = table.descendants(process.pid) if process.poll() is None else []
            ending.signal_all([process.pid, *below] if process.poll() is None else [], signal.SIGKILL)
            process.wait()


def worker_below(guardian: int) -> int:
    """PID of the worker process."""
    from rooda.processes import table

    until(lambda: bool(table.children(guardian)), 30)
    return table.children(guardian)[0]


def agents(folder: str) -> list[int]:
    """PIDs of the scripted agents of a crew that live."""
    from rooda.processes import table

    return [each.pid for each in table.all_processes() if f"{folder}/agent" in " ".join(map(str, _words(each.pid)))]


def _words(pid: int) -> list[str]:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().decode(errors="replace").split("\0")
    except OSError:
        return []


class _Legs:
    """The scripted leg of a worker process."""

    def __init__(self, name: str, folder: str) -> None:
        self.name, self.folder = name, folder

    def log(self, what: str, order: Order, **more: Any) -> None:
        fields = {"what": what, "by": self.name, "task": number_of(order), "leg": order.leg, "at": time.monotonic()}
        line = json.dumps({**fields, **more}) + "\n"
        with open(os.path.join(self.folder, "log"), "a") as file:
            file.write(line)

    def __call__(self, order: Order, desk: Desk) -> Any:
        self.log("begin", order)
        try:
            return self._turns(order, desk)
        except Lost:
            self.log("lost", order)
            raise

    def _turns(self, order: Order, desk: Desk) -> Any:
        desk.record({})
        ticket = order.ticket
        for turn in range(1, int(ticket.get("turns", 1)) + 1):
            place = os.path.join(self.folder, f"{number_of(order)}-{turn}")
            if os.path.exists(place):
                continue
            if amount := ticket.get("amount"):
                desk.money({"ask": "reserve", "call": f"{order.workflow}-{turn}", "agent": "demo", "amount": amount})
            self.log("call", order, turn=turn)
            agent = subprocess.Popen([sys.executable, "-S", f"{self.folder}/agent", str(ticket.get("seconds", 0.2))])
            if agent.wait() < 0:
                raise Lost("the agent was killed, and so will this worker be")  # it must not publish meanwhile
            try:
                os.close(os.open(place, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                self.log("refused", order, turn=turn)
                return {"kind": "lost", "why": "another worker was quicker"}
            self.log("turn", order, turn=turn)
            desk.record({"turn": turn, "iteration": turn, "cost": 0.1 * turn})
            if orders := desk.orders(0):
                self.log("heard", order, orders=orders)
                return {"kind": "handed-back", "why": orders[-1].get("why", ""), "facts": {"session": "s"}}
        return {**DONE, "facts": {**DONE["facts"], "iteration": ticket.get("turns", 1)}}


def main(address: str, key: str, name: str, slots: str, beat: str, folder: str) -> None:
    from rooda.processes import dead_man

    with open(os.path.join(folder, "agent"), "w") as file:
        file.write(AGENT)
    dead_man.start()
    from rooda.fleet.serve import Host, serve

    place = Place(name, key, int(slots), float(beat))
    fenced = os.environ.get(dead_man.FENCE) != "off"
    host = Host(place, _Legs(name, folder), lambda text: print(text, flush=True), None, dead_man.prove, fenced)
    code = serve(parse_address(address), True, host)
    dead_man.announce_exit(code)
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    main(*sys.argv[1:])
