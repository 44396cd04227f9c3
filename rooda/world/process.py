"""The only starter of processes. Each gets its own session, files for stdin and output, and an end."""

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from rooda.world import clock
from rooda.world.signals import Signals
from rooda.world.tree import end_group, has_exited, sweep_group

NOT_FOUND, NOT_RUNNABLE = 127, 126


class Spec(NamedTuple):
    """One process to run: what, where, with which files, and how long."""

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    output: str  # stdout and stderr go to this file
    stdin: str = os.devnull
    timeout: float = 0.0
    idle_timeout: float = 0.0
    grace: float = 5.0
    stop: int = signal.SIGTERM
    meanwhile: Callable[[], None] | None = None  # done once, when it runs


class Done(NamedTuple):
    """How it ended. `code` is what a shell would say."""

    code: int
    seconds: float
    ended: str  # exit | timeout | idle | interrupted | not-started
    size: int = 0
    note: str = ""


class Captured(NamedTuple):
    """What a short helper program said."""

    code: int
    out: bytes
    err: bytes


class Tick(NamedTuple):
    """Something to do every so often while a process runs. Without one there are no wake-ups at all."""

    every: float
    work: Callable[[], None]


def run(spec: Spec, signals: Signals, tick: Tick | None = None) -> Done:
    """Run to the end, whatever end that is. What it left in its group is ended too."""
    began, seen = clock.monotonic(), signals.count
    try:
        child = _start(spec)
    except OSError as problem:
        return _not_started(problem, spec, clock.monotonic() - began)
    if spec.meanwhile:
        spec.meanwhile()
    ended = _watch(child.pid, spec, signals, seen, tick)
    seconds = clock.monotonic() - began
    if ended != "exit":
        end_group(child.pid, spec.stop, spec.grace, signals)
        seconds = clock.monotonic() - began
    sweep_group(child, spec.grace)
    if signals.count > seen:
        ended = "interrupted"
    code = child.returncode if child.returncode is not None else -signal.SIGKILL
    return Done(code if code >= 0 else 128 - code, seconds, ended, _size(spec.output))


def _start(spec: Spec) -> "subprocess.Popen[bytes]":
    stdin = os.open(spec.stdin, os.O_RDONLY | os.O_CLOEXEC)
    try:
        output = os.open(spec.output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o666)
        try:
            return subprocess.Popen(
                spec.argv, cwd=spec.cwd, env=spec.env, stdin=stdin, stdout=output, stderr=output, start_new_session=True
            )
        finally:
            os.close(output)
    finally:
        os.close(stdin)


def _not_started(problem: OSError, spec: Spec, seconds: float) -> Done:
    code = NOT_FOUND if isinstance(problem, FileNotFoundError) else NOT_RUNNABLE
    return Done(code, seconds, "not-started", note=f"{spec.argv[0]}: {problem.strerror or problem}")


def _watch(pid: int, spec: Spec, signals: Signals, seen: int, tick: Tick | None) -> str:
    """Wait for the child, a signal or a deadline, whichever comes first."""
    fence = Fence(spec)
    while not has_exited(pid):
        if signals.count > seen:
            return "interrupted"
        reason, pause = fence.due()
        if reason:
            return reason
        if tick:
            tick.work()
            pause = tick.every if pause is None else min(pause, tick.every)
        signals.wait(pause)
    if tick:
        tick.work()
    return "exit"


class Fence:
    """The time limits of one call: wall time, and time without new output."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._end = clock.monotonic() + spec.timeout if spec.timeout else None
        self._size = 0
        self._grown = self._looked = clock.monotonic()

    def due(self) -> tuple[str, float | None]:
        """The limit that has passed, if any, and how long to wait before asking again."""
        now = clock.monotonic()
        pauses = []
        if self._end is not None:
            if now >= self._end:
                return "timeout", None
            pauses.append(self._end - now)
        if self._spec.idle_timeout:
            quiet = self._quiet(now)
            if quiet >= self._spec.idle_timeout:
                return "idle", None
            pauses.append(self._spec.idle_timeout - quiet)
        return "", min(pauses, default=None)

    def _quiet(self, now: float) -> float:
        """Seconds since the transcript grew; the file's own time only refines what was seen, so a clock may jump."""
        try:
            facts = os.stat(self._spec.output)
        except OSError:
            return now - self._grown
        if facts.st_size != self._size:
            self._size = facts.st_size
            age = clock.now() - facts.st_mtime
            self._grown = now - min(max(age, 0.0), now - self._looked)
        self._looked = now
        return now - self._grown


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def capture(
    argv: Sequence[str],
    *,
    stdin: bytes = b"",
    timeout: float = 30.0,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
) -> Captured:
    """A short helper program (git, a token count): its exit code and what it said. 127 if it can't be run."""
    try:
        done = subprocess.run(
            argv, input=stdin, capture_output=True, timeout=timeout, env=env, cwd=cwd, check=False, start_new_session=True
        )
    except subprocess.TimeoutExpired as late:
        return Captured(124, late.stdout or b"", f"no answer within {timeout:g}s".encode())
    except OSError as problem:
        return Captured(NOT_FOUND, b"", str(problem).encode())
    return Captured(done.returncode, done.stdout, done.stderr)
