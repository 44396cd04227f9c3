"""sd_notify: rooda reports a loop's start, progress, life and end to a service manager."""

import os
import signal
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.background import HOLD, began, detached, kill_all, rows
from tests.kit.workspace import Workspace, until


class Manager:
    """A service manager's socket."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(f"\0{address[1:]}" if address.startswith("@") else address)
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._heard: list[str] = []
        self.senders: set[int] = set()

    @property
    def heard(self) -> list[str]:
        """Every message so far."""
        while True:
            try:
                data, ((_, _, facts),), _, _ = self.socket.recvmsg(65_536, socket.CMSG_SPACE(12))
                self._heard.append(data.decode())
                self.senders.add(struct.unpack("3i", facts)[0])
            except BlockingIOError:
                return self._heard


@pytest.fixture(params=["file", "abstract"])
def manager(ws: Workspace, request: pytest.FixtureRequest) -> Iterator[Manager]:
    made = Manager(f"{ws.root}/s" if request.param == "file" else f"@rooda-test-{os.getpid()}")
    yield made
    made.socket.close()


def test_begun_how_far_and_ended(ws: Workspace, manager: Manager) -> None:
    """READY at the start, STATUS at each iteration, STOPPING at the end; agents and gates don't see the variables."""
    ws.procedure("build", gates={"look": "env > gate-env"})
    env = {"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "1"}
    assert ws.rooda("build", "-n", "2", env=env).code == 0
    assert [line for text in manager.heard for line in text.split("\n")] == [
        *("READY=1", "STATUS=build: started", "STATUS=build: iteration 1/2", "STATUS=build: iteration 2/2"),
        *("STOPPING=1", "STATUS=build: ended (max-iterations)"),
    ]
    seen = "".join(ws.calls[0].env) + ws.read("gate-env")
    assert "NOTIFY_SOCKET" not in seen and "WATCHDOG" not in seen


def test_the_watchdog_is_notified_while_an_agent_works(ws: Workspace) -> None:
    """WATCHDOG=1 is sent while the agent runs, if WATCHDOG_PID names the loop, its guardian or nothing."""
    manager = Manager(f"{ws.root}/s")
    ws.side(1, HOLD)
    env = {"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "200000"}
    running = ws.start("build", "-n", "1", env=env)
    until(lambda: manager.heard.count("WATCHDOG=1") > 3, what="the beats")
    running.signal(signal.SIGTERM)
    assert running.finish() == 143
    assert manager.heard[-1].startswith("STOPPING=1")
    assert manager.senders == {running.pid}  # by default systemd hears only the process that it started
    manager.socket.close()


@pytest.mark.parametrize("address", ["/nowhere/socket", "relative", "@", "\n"])
def test_a_missing_manager_is_ignored(ws: Workspace, address: str) -> None:
    """A missing manager does not affect the loop, and rooda prints nothing about it."""
    ran = ws.rooda("build", "-n", "1", env={"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "nonsense"})
    assert (ran.code, ran.notes) == (0, "")


def test_without_a_manager_the_loop_never_wakes(ws: Workspace) -> None:
    """Without a watchdog the loop never wakes up while its agent runs."""
    ws.side(1, HOLD)
    running = ws.start("build", "-n", "1", env={"WATCHDOG_USEC": "1000"})
    began(ws)
    until(lambda: rows(ws)[0]["phase"] == "agent", what="the wait")

    def switches() -> int:
        loop = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()[0]
        facts = Path(f"/proc/{loop}/status").read_text().splitlines()
        return sum(int(row.split()[1]) for row in facts if "ctxt_switches" in row)

    before = switches()
    assert [switches() for _ in range(200)][-1] == before
    running.signal(signal.SIGTERM)
    running.finish()


def test_the_main_process_of_the_service(ws: Workspace) -> None:
    """`resume --all --wait`: READY when the loops run; SIGTERM ends them and saves their states."""
    manager = Manager(f"{ws.root}/s")
    detached(ws)
    kill_all(ws)
    os.remove(f"{ws.fake}/began")
    service = ws.start("resume", "--all", "--wait", env={"NOTIFY_SOCKET": manager.address})
    began(ws)
    until(lambda: manager.heard, what="READY")
    assert manager.heard == ["READY=1\nSTATUS=loops: build"] and "Resumed build" in service.out
    assert service.process.poll() is None
    service.signal(signal.SIGTERM)
    assert service.finish() == 0 and not ws.leftovers()
    assert manager.heard[-1] == "STOPPING=1\nSTATUS=ending build"
    state = ws.state()
    assert state and state["status"] == "interrupted"
    assert ws.rooda("resume", "--all").lines[0].startswith("Resumed build")
    assert ws.rooda("stop").code == 0
    manager.socket.close()


def test_the_service_ends_with_its_last_loop(ws: Workspace) -> None:
    """It does not wait forever, and does not wait at all if there is nothing to resume."""
    manager = Manager(f"{ws.root}/s")
    env = {"NOTIFY_SOCKET": manager.address}
    assert ws.rooda("resume", "--all", "--wait", env=env).code == 0
    assert manager.heard == ["READY=1\nSTATUS=nothing was cut off"]
    detached(ws)
    kill_all(ws)
    service = ws.start("resume", "--all", "--wait", env=env)
    until(lambda: "Resumed build" in service.out, what="the resume")
    assert ws.rooda("stop").code == 0
    assert service.finish(10) == 0
    manager.socket.close()
