"""One workspace with one loop of some kind: started, resumed, killed, and looked at."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from typing import NamedTuple

from benchmarks.faults.kinds import Failed, Json, Kind, git

AGENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "agent.sh")
UNDECIDED = 3  # exit code: a person must decide first
PATIENCE = 60.0  # seconds until a process counts as hung


class Call(NamedTuple):
    """A line that the agent has noted."""

    run: str
    what: str  # begin | end
    key: str


class Ended(NamedTuple):
    """A command that is over."""

    code: int  # as a shell would say it, negative for a signal
    said: str


class Site:
    """A folder `work` to run in, `notes` of the agent, `said` with all output."""

    def __init__(self, kind: Kind, folder: str, like: str = "") -> None:
        """A new one; `like`: a copy of that one's folder, as it is now."""
        self.kind, self.folder = kind, folder
        self.word = f"faults-{uuid.uuid4().hex}"
        self.work, self.notes, self.said = (os.path.join(folder, name) for name in ("work", "notes", "said"))
        keep = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
        self.env = {**keep, "HOME": folder, "ROODA_CACHE_HOME": folder, "FAULTS_MARK": self.word}
        self.env["FAULTS_NOTES"] = self.notes
        if like:
            shutil.copytree(like, folder, symlinks=True)
        else:
            os.makedirs(os.path.join(self.notes, "alive"))
            kind.prepare(self.work, shlex.join(["sh", AGENT]))

    # doing

    def start(self, *words: str, env: "dict[str, str] | None" = None) -> "subprocess.Popen[bytes]":
        with open(self.said, "wb") as said:
            return subprocess.Popen(
                [sys.executable, "-m", "rooda", *words],
                cwd=self.work,
                env=self.env | (env or {}),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    def next(self, env: "dict[str, str] | None" = None) -> "subprocess.Popen[bytes]":
        """What a person would type now: a start, or a resume if there is something to resume."""
        begun = self.kind.begun(self.work)
        return self.start(*(self.kind.resume(self.work) if begun else self.kind.start), env=env)

    def ended(self, process: "subprocess.Popen[bytes]") -> Ended:
        try:
            code = process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise Failed(f"hung: {process.args!r}\n{self.heard()}") from None
        return Ended(code, self.heard())

    def do(self, *words: str) -> Ended:
        return self.ended(self.start(*words))

    def finish(self) -> Ended:
        """From wherever it is to its end."""
        ended = self.ended(self.next())
        return self.ended(self.next()) if self.was_late(ended) and not self.kind.over(self.work) else ended

    def was_late(self, ended: Ended) -> bool:
        """Did a run whose guardian was killed still write its state, or end? Then a start or a resume is refused."""
        if ended.code == UNDECIDED and self.kind.begun(self.work):
            return True
        return ended.code == self.kind.finished and self.kind.over(self.work)

    def codes(self, ended: Ended) -> tuple[int, ...]:
        """Those with which a command that nobody disturbed may end."""
        return (0, ended.code) if self.was_late(ended) else (0,)

    # looking

    def heard(self) -> str:
        with open(self.said, encoding="utf-8", errors="replace") as file:
            return file.read()

    def calls(self) -> list[Call]:
        """What the agents have noted so far. One of a run that was killed may note something late."""
        return [Call(*line.split(" ", 2)) for line in self._noted("calls")]

    def begun(self) -> list[Call]:
        return [call for call in self.calls() if call.what == "begin"]

    def paid(self) -> int:
        """How many calls `rooda usage` counts over all sessions."""
        ended = self.do("usage", "--json")
        return int(json.loads(ended.said)["total"]["calls"])

    def doubled(self) -> list[str]:
        """The calls that found an agent of another run at work."""
        return self._noted("doubled")

    def _noted(self, name: str) -> list[str]:
        try:
            with open(os.path.join(self.notes, name), encoding="utf-8") as file:
                return file.read().split("\n")[:-1]
        except FileNotFoundError:
            return []

    def living(self) -> dict[int, str]:
        """Everybody of this site that is alive, with the run that each belongs to ("" for none)."""
        mark, found = f"FAULTS_MARK={self.word}".encode(), {}
        for entry in filter(str.isdigit, os.listdir("/proc")):
            environ = _proc(entry, "environ")  # empty for a zombie
            if mark in environ:
                runs = [each[10:].decode() for each in environ if each.startswith(b"ROODA_RUN=")]
                found[int(entry)] = runs[-1] if runs else ""
        return found

    def gone(self, seconds: float = 15.0) -> bool:
        """Is nobody alive, now or very soon?"""
        return until(lambda: not self.living(), seconds)

    def clear(self) -> int:
        """End everybody who is left; how many they were."""
        left = self.living()
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return len(left)

    def corrupt(self) -> list[str]:
        """Files of the loop that can't be read, or lack what they must hold."""
        problems = []
        for path in self.files((*self.kind.public, ".rooda")):
            name = os.path.basename(path)
            expected = self.kind.keys.get(name) if not path.startswith(".rooda/runs/") else None
            if name == "events.jsonl" or expected is not None:
                problems += [f"{path}: {each}" for each in self._faults(path, expected or {})]
        return problems

    def _faults(self, path: str, keys: "dict[str, type | tuple[type, ...]]") -> list[str]:
        with open(os.path.join(self.work, path), encoding="utf-8", errors="replace") as file:
            text = file.read()
        if path.endswith(".jsonl") and text and not text.endswith("\n"):
            return ["its last line is torn"]
        return [
            why for each in (text.splitlines() if path.endswith(".jsonl") else [text]) if (why := _fault(each, keys))
        ]

    def files(self, folders: "tuple[str, ...] | None" = None) -> list[str]:
        found = []
        for top in folders or self.kind.public:
            for folder, _, names in os.walk(os.path.join(self.work, top)):
                found += [os.path.relpath(os.path.join(folder, name), self.work) for name in names]
        return sorted(found)

    def end(self) -> Json:
        """All that a run leaves, without what differs from run to run: the public files, the work, the commits."""
        texts = {masked(path): self._masked(path) for path in self.files() if not path.endswith(".lock")}
        skip = (".git", ".rooda", *self.kind.public)
        for folder, folders, names in os.walk(self.work):
            folders[:] = [name for name in folders if name not in skip]
            paths = [os.path.relpath(os.path.join(folder, name), self.work) for name in names if name != "rooda.toml"]
            texts |= {path: self._masked(path) for path in paths}
        if self.kind.git:
            log = git(self.work, "log", "--format=%s%n%b", "--reverse")
            refs = sorted({*masked(git(self.work, "for-each-ref", "--format=%(refname)")).splitlines()})
            texts |= {"log": masked(log), "refs": "\n".join(refs), "status": git(self.work, "status", "--porcelain")}
        return texts

    def _masked(self, path: str) -> str:
        with open(os.path.join(self.work, path), encoding="utf-8", errors="replace") as file:
            return masked(file.read())


VARYING = {
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)": "TIME",
    r"\bcourses-\d{8}-\d{6}\b": "RUN",
    r"\b\d{8}T\d{6}Z-goal-\w+": "RUN",
    r"\brun_\d{8}_\d{3}\b": "RUN",
    r"\bai-loop/do-it(?:-\d+)?(?![\w-])": "BRANCH",  # a start that was killed before its run began leaves its own
    r"\b[0-9a-f]{40}\b": "COMMIT",
    r'"calls": \d+,\s+"unknown": \d+': "PAID",  # the cut off ones are paid too
    r'"elapsed": [\d.]+': "ELAPSED",
}


def masked(text: str) -> str:
    """Without times, durations, hashes of commits and names of runs."""
    for pattern, word in VARYING.items():
        text = re.sub(pattern, word, text)
    return text


def _fault(text: str, keys: "dict[str, type | tuple[type, ...]]") -> str:
    try:
        found = json.loads(text)
    except ValueError as problem:
        return str(problem)
    if not isinstance(found, dict):
        return "it is no object"
    wrong = [key for key, kind in keys.items() if not isinstance(found.get(key), kind)]
    return f"without {', '.join(wrong)}" if wrong else ""


def _proc(entry: str, name: str) -> list[bytes]:
    try:
        with open(f"/proc/{entry}/{name}", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def until(condition: Callable[[], bool], seconds: float) -> bool:
    """Does it come true in time?"""
    deadline = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < deadline:
        time.sleep(0.002)
    return found
