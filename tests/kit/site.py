"""A small fleet: a bare repository, a desk with a checkout of it, and machines that run `rooda worker`."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from .fleet_git import git
from .processes import until

ROODA = [sys.executable, "-m", "rooda"]
BEAT = 5
LOOK = 1.5  # seconds after which a task is looked at although nothing has happened
# Notes each call outside of every clone, waits for a file that the test makes, and commits one line of work.
AGENT = """#!/bin/sh
cat > "$NOTES/prompt.$$"
env > "$NOTES/env.$$"
echo "$ROODA_RUN $ROODA_ITERATION $$" >> "$NOTES/calls"
[ ! -e "$NOTES/script.sh" ] || . "$NOTES/script.sh"
while [ -e "$NOTES/hold" ]; do sleep 0.05; done
echo "line" >> work.txt
git add -A && git -c user.name=agent -c user.email=agent@localhost commit -q -m "work $ROODA_ITERATION"
"""


class Site:
    """Everything of one test. The calls that agents made are counted outside of all clones and of Temporal."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder, self.address = folder, address
        self.origin, self.desk, self.notes = folder / "origin.git", folder / "desk" / "project", folder / "notes"
        self.notes.mkdir(parents=True)
        (folder / "agent").write_text(AGENT)
        (folder / "agent").chmod(0o755)
        git(folder, "init", "-q", "--bare", "-b", "main", str(self.origin))
        git(folder, "clone", "-q", str(self.origin), str(self.desk))
        self.commit({"README.md": "a project\n"})
        self.home("desk")
        self._workers: list[subprocess.Popen[bytes]] = []

    def commit(self, texts: dict[str, str]) -> None:
        for name, text in texts.items():
            (self.desk / name).parent.mkdir(parents=True, exist_ok=True)
            (self.desk / name).write_text(text)
        git(self.desk, "add", "-A")
        git(self.desk, "commit", "-q", "-m", "a step")
        git(self.desk, "push", "-q", "origin", "HEAD:main")

    def home(self, name: str, fleet: str = "", worker: str = "", more: str = "", sandbox: str = "off") -> Path:
        """Write the settings of one machine's user."""
        home = self.folder / "homes" / name
        (home / "config").mkdir(parents=True, exist_ok=True)
        walls = f'sandbox = "{sandbox}"' if sandbox else ""
        (home / "config" / "rooda.toml").write_text(
            f'[loop]\nagent = "tester"\n{walls}\n'
            f"[agents.tester]\ncommand = {json.dumps(str(self.folder / 'agent'))}\n"
            f'[fleet]\naddress = "{self.address}"\nheartbeat = {BEAT}\n{fleet}\n'
            f'[fleet.worker]\nrepositories = ["{self.origin}"]\n{worker}\n{more}\n'
        )
        return home

    def environment(self, name: str, **more: str) -> dict[str, str]:
        home = self.folder / "homes" / name
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("ROODA_", "XDG_", "GIT_"))}
        own = {"HOME": str(home), "ROODA_CONFIG_HOME": str(home / "config"), "NOTES": str(self.notes)}
        return {**kept, **own, "GIT_CONFIG_GLOBAL": str(self._git_settings()), **more}

    def _git_settings(self) -> Path:
        path = self.folder / "gitconfig"
        if not path.exists():
            path.write_text("[user]\nname = tester\nemail = tester@localhost\n[init]\ndefaultBranch = main\n")
        return path

    def worker(self, name: str, slots: int = 2, pool: str = "", **more: str) -> "subprocess.Popen[bytes]":
        """Start a worker on a machine of its own; wait until it has said that it works."""
        if not (self.folder / "homes" / name).exists():
            self.home(name)
        log = self.folder / f"{name}.log"
        words = [*ROODA, "worker", "-j", str(slots), "--name", name, *(["--pool", pool] if pool else [])]
        with open(log, "ab") as out:
            process = subprocess.Popen(
                words,
                cwd=self.folder,
                env=self.environment(name, **more),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        self._workers.append(process)
        until(lambda: log.exists() and f"Worker {name}" in log.read_text(), 30, "the worker's first line")
        return process

    def rooda(self, *words: str, code: int | None = 0, **more: str) -> "subprocess.CompletedProcess[str]":
        """Run a command at the desk; `code` is the exit code that the test expects."""
        done = subprocess.run(
            [*ROODA, *words], cwd=self.desk, env=self.environment("desk", **more), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=100,
        )  # fmt: skip
        assert code is None or done.returncode == code, (words, done.returncode, done.stdout, done.stderr, self.logs())
        return done

    def tasks(self, *words: str, code: int | None = 0, **more: str) -> str:
        done = self.rooda("tasks", *words, "--fleet", code=code, **more)
        return done.stdout + done.stderr

    def task(self, number: int) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.rooda("tasks", "show", str(number), "--json", "--fleet").stdout)
        return found

    def until(self, number: int, *states: str, seconds: float = 60) -> dict[str, Any]:
        """Wait until a task is in one of these states. Asking costs half a second of CPU: ask after each change."""
        seen: list[int] = []
        asked = 0.0

        def found() -> Any:
            nonlocal seen, asked
            if (now := self._traces()) == seen and time.monotonic() - asked < LOOK:
                return None
            seen, asked = now, time.monotonic()
            return (task := self.task(number))["state"] in states and task

        return until(found, seconds, f"{states}: {self.logs()}")  # type: ignore[no-any-return]

    def _traces(self) -> list[int]:
        """Times at which workers last wrote, agents began a call, or somebody pushed."""
        places = (*self.folder.glob("*.log"), self.notes, *(self.origin / "refs").rglob("*"))
        return [place.stat().st_mtime_ns for place in places if place.exists()]

    def logs(self) -> str:
        return "".join(path.read_text() for path in sorted(self.folder.glob("*.log")))

    @property
    def calls(self) -> list[str]:
        path = self.notes / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def hold(self) -> None:
        (self.notes / "hold").touch()

    def release(self) -> None:
        (self.notes / "hold").unlink()

    def chain(self, number: int) -> list[str]:
        """The subjects of a task's ref, oldest first."""
        rows = git(self.origin, "log", "--first-parent", "--reverse", "--format=%s", f"refs/rooda/task/{number}")
        return rows.splitlines()

    def record(self, number: int) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(git(self.origin, "show", f"refs/rooda/task/{number}:task.json"))
        return found

    def end(self) -> None:
        for process in self._workers:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self._workers:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def kill_worker(process: "subprocess.Popen[bytes]") -> None:
    """Kill the process that works, with SIGKILL; its guardian is `process`."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for child in children:
        os.kill(int(child), signal.SIGKILL)
