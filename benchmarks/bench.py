"""What every goal is measured with: a throwaway venv with rooda in it, the fake agent, workspaces."""

import fcntl
import json
import os
import shutil
import struct
import subprocess
import sys
from contextlib import suppress
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

from benchmarks.measure import Failed, once

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAMS = os.path.join(ROOT, "benchmarks", "programs")
PROCEDURE = "\n[procedures.bench]\n" + "".join(f'{p} = "{p}.md"\n' for p in ("observe", "orient", "decide", "act"))


class Workspace(NamedTuple):
    """A folder to run in. `stamps` is where the fake agent writes when it began and ended."""

    path: str
    prompt: str  # the prompt as a file, for loops that assemble nothing
    env: dict[str, str]

    @property
    def stamps(self) -> str:
        return os.path.join(self.path, "stamps")

    def calls(self) -> list[tuple[int, int, int]]:
        """Start, end and pid of every agent call so far."""
        with open(self.stamps, encoding="ascii") as file:
            return [(int(start), int(end), int(pid)) for start, end, pid in map(str.split, file)]


class Bench:
    """The tools, below one temporary folder."""

    def __init__(self, root: str, quick: bool, rooda: str = "") -> None:
        self.root, self.quick = root, quick
        spread(root)
        self.python = os.path.join(os.path.dirname(rooda), "python") if rooda else self._install()
        self.rooda = os.path.join(os.path.dirname(self.python), "rooda")
        self.agent = self._agent()
        self._count = 0

    def _install(self) -> str:
        """A venv with the checkout in it, not editable, and its wrapper written by the pip that runs here."""
        venv = os.path.join(self.root, "venv")
        python = os.path.join(venv, "bin", "python")
        run([sys.executable, "-m", "venv", "--without-pip", venv])
        run([sys.executable, "-m", "pip", "--quiet", "--python", python, "install", ROOT])
        return python

    def _agent(self) -> str:
        agent = os.path.join(self.root, "agent")
        compiler = shutil.which("cc")
        source = os.path.join(PROGRAMS, "agent.c")
        for how in (["-static"], []):
            command = [compiler or "", "-O2", *how, "-o", agent, source]
            if compiler and subprocess.run(command, capture_output=True, check=False).returncode == 0:
                return agent
        with open(os.path.join(PROGRAMS, "agent.py"), encoding="utf-8") as script, open(agent, "w") as program:
            program.write(f"#!{self.python} -IS\n{script.read()}")
        os.chmod(agent, 0o755)
        return agent

    def nosync(self) -> str:
        """A library with which no sync does anything; "" without a compiler."""
        library, compiler = os.path.join(self.root, "nosync.so"), shutil.which("cc")
        if not compiler or sys.platform != "linux":
            return ""
        run([compiler, "-shared", "-fPIC", "-O2", "-o", library, os.path.join(PROGRAMS, "nosync.c")])
        return library

    @property
    def compiled(self) -> bool:
        with open(self.agent, "rb") as file:
            return file.read(2) != b"#!"

    def workspace(self, name: str, size: int = 8_000, loop: str = "", **env: str) -> Workspace:
        """A folder with the procedure `bench`, whose prompt has about `size` bytes."""
        self._count += 1
        path = os.path.join(self.root, f"{self._count:03d}-{name}-{os.urandom(3).hex()}")  # see `spread`
        os.mkdir(path)
        with open(os.path.join(path, "rooda.toml"), "w", encoding="utf-8") as file:
            file.write(f"[loop]\n{loop}{PROCEDURE}")
        text = "Read the task, change the code, run the tests, and say what is left.\n"
        phase = text * (size // 4 // len(text) + 1)
        for phase_name in ("observe", "orient", "decide", "act"):
            write(os.path.join(path, f"{phase_name}.md"), phase)
        prompt = os.path.join(path, "prompt")
        write(prompt, phase * 4)
        mine = {"PATH": os.environ.get("PATH", os.defpath), "HOME": path, "LANG": "C.UTF-8"}
        mine |= {"ROODA_CACHE_HOME": os.path.join(path, "cache"), "STAMPS": os.path.join(path, "stamps"), **env}
        return Workspace(path, prompt, mine)

    def loop(self, count: int, *options: str) -> list[str]:
        """The command that runs `count` iterations of the procedure with the fake agent."""
        return [self.rooda, "bench", "--fresh", "-n", str(count), "--ai-cmd", self.agent, *options]

    def floor(self, place: Workspace, count: int, *gate: str) -> list[str]:
        return [self.python, os.path.join(PROGRAMS, "floor.py"), self.agent, str(count), place.prompt, *gate]

    def first_loop(self, count: int) -> list[str]:
        """The shell loop that came before: no state, no journal."""
        phases = [word for p in ("observe", "orient", "decide", "act") for word in (f"--{p}", f"{p}.md")]
        script = os.path.join(ROOT, "archive", "rooda.sh")
        bash = shutil.which("bash") or "bash"
        return [bash, script, *phases, "--max-iterations", str(count), "--ai-cmd", self.agent]

    def gaps(self, argv: list[str], place: Workspace) -> list[float]:
        """The gaps of one run of a loop.

        Nothing is deleted between runs: for minutes afterwards ext4 looks at each deleted inode before it makes a file.
        """
        with open(place.stamps, "wb"):
            pass
        once(argv, place.env, place.path)
        return gaps(place)


GET_FLAGS, SET_FLAGS, TOP_OF_TREES = 0x80086601, 0x40086602, 0x20000  # of linux/fs.h; `chattr +T`


def spread(folder: str) -> None:
    """Have ext4 give each folder below this one a block group of its own, by its name; other file systems refuse.

    In a group with recently deleted files, whoever deleted them, creating a file takes up to a millisecond.
    """
    flags, descriptor = bytearray(4), os.open(folder, os.O_RDONLY)
    with suppress(OSError):
        fcntl.ioctl(descriptor, GET_FLAGS, flags)
        fcntl.ioctl(descriptor, SET_FLAGS, struct.pack("I", struct.unpack("I", flags)[0] | TOP_OF_TREES))
    os.close(descriptor)


def gaps(place: Workspace) -> list[float]:
    """Seconds between the end of each agent call and the start of the next."""
    return [(after[0] - before[1]) / 1e9 for before, after in pairwise(place.calls())]


def events(place: Workspace) -> list[dict[str, Any]]:
    """What the only run of a workspace told."""
    runs = os.path.join(place.path, ".rooda", "runs")
    (run,) = os.listdir(runs)
    with open(os.path.join(runs, run, "events.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def time_of(event: dict[str, Any]) -> float:
    return datetime.fromisoformat(str(event["ts"])).timestamp()


def repository(place: Workspace, files: int, ignored: str = "") -> None:
    """So many small files, in 200 folders, in one commit; what measuring needs is ignored."""
    write(os.path.join(place.path, ".gitignore"), f"said\nstamps\ncache/\nprompt\n.local/\n.rooda/\n{ignored}")
    for number in range(files):
        folder = os.path.join(place.path, f"d{number % 200}")
        os.makedirs(folder, exist_ok=True)
        write(os.path.join(folder, f"f{number}"), f"{number}\n" * 20)
    git = ["git", "-C", place.path, "-c", "gc.auto=0"]
    for words in (["init", "-q", "-b", "main"], ["config", "user.name", "b"], ["config", "user.email", "b@c.invalid"]):
        run([*git, *words])
    run([*git, "add", "-A"])
    run([*git, "commit", "-q", "-m", "all"])


def write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def run(argv: list[str]) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"{' '.join(argv)}\n{done.stdout}{done.stderr}")
