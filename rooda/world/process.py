"""The only starter of processes. Each gets its own session, files for stdin and output, and an end."""

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from rooda.world import clock, descent, files, tree
from rooda.world.fence import Fence
from rooda.world.signals import Signals, suspend_ourselves

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
    exit_grace: float = 0.0  # for one that has said its last word
    finished: Callable[[], bool] | None = None  # has it?
    grace: float = 5.0
    stop: int = signal.SIGTERM
    meanwhile: Callable[[], None] | None = None  # done once, when it runs
    keep: bool = False  # what it leaves behind may live until the run ends
    cap: int = 0  # bytes of output kept, 0 = all
    note: Callable[[int], None] | None = None  # puts the pid on disk before the command begins


class Done(NamedTuple):
    """How it ended. `code` is what a shell would say."""

    code: int
    seconds: float
    ended: str  # exit | finished | timeout | idle | interrupted | not-started
    size: int = 0
    note: str = ""
    swept: int = 0  # processes it left behind, ended by us


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
    """Run to the end, whatever end that is. What it left behind is ended too."""
    try:
        child = _start(spec)
    except OSError as problem:
        return _not_started(problem, spec)
    began = clock.monotonic()
    if spec.meanwhile:
        spec.meanwhile()
    fence = Fence(child.pid, spec.output, spec.timeout, spec.idle_timeout, spec.cap, spec.exit_grace, spec.finished)
    ended = _watch(child.pid, fence, signals, tick)
    if ended != "exit":
        _end(child.pid, spec, signals)
    seconds = clock.monotonic() - began - fence.slept
    swept = _bury(child, spec, signals)
    if signals.count:
        ended = "interrupted"
    code = child.returncode if child.returncode is not None else -signal.SIGKILL
    note = "" if child.returncode is not None else f"process {child.pid} does not die"
    return Done(code if code >= 0 else 128 - code, seconds, ended, fence.size(), note, swept)


def begin(spec: Spec) -> int:
    """Start something that goes on beside us until `end_leftovers`; its pid."""
    return _start(spec).pid


def end_leftovers(signals: Signals, grace: float) -> int:
    """End whatever still descends from us: what calls with `keep` left. How many there were."""
    return _sweep((), grace, signals)


def _start(spec: Spec) -> "subprocess.Popen[bytes]":
    stdin = os.open(spec.stdin, os.O_RDONLY | os.O_CLOEXEC)
    try:
        output = files.ordinary(spec.output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        os.set_blocking(output, True)
        try:
            child = _popen(spec.argv, spec, stdin, output)
        finally:
            os.close(output)
    finally:
        os.close(stdin)
    if spec.note:
        _held_until_noted(child.pid, spec.note)
    return child


def _held_until_noted(pid: int, note: Callable[[int], None]) -> None:
    """It sleeps, in the first moments of its loading, until its identity is on disk. Our death leaves it asleep.

    A stub that waits before its exec would do the same a little earlier, at twice the processor time per call.
    """
    tree.signal_all((pid,), signal.SIGSTOP)
    try:
        note(pid)
    finally:
        tree.signal_all((pid,), signal.SIGCONT)


def _popen(argv: Sequence[str], spec: Spec, stdin: int, output: int) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        argv, cwd=spec.cwd, env=spec.env, stdin=stdin, stdout=output, stderr=output, start_new_session=True
    )


def _not_started(problem: OSError, spec: Spec) -> Done:
    code = NOT_FOUND if isinstance(problem, FileNotFoundError) else NOT_RUNNABLE
    return Done(code, 0.0, "not-started", note=f"{spec.argv[0]}: {problem.strerror or problem}")


def _watch(pid: int, fence: Fence, signals: Signals, tick: Tick | None) -> str:
    """Wait for the child, a signal or a deadline, whichever comes first. A signal from just before the start counts."""
    while not tree.has_exited(pid):
        if signals.count:
            return "interrupted"
        if signals.take_suspend():
            _suspend(fence, signals)
        reason, pause = fence.due()
        if reason:
            return reason
        if tick:
            tick.work()
            pause = tick.every if pause is None else min(pause, tick.every)
        signals.wait(pause)
        tree.reap_strangers(pid)
    if tick:
        tick.work()
    return "exit"


def _suspend(fence: Fence, signals: Signals) -> None:
    """Ctrl+Z: the agent sleeps with us, and time stands still for its limits."""
    began = clock.monotonic()
    below: set[int] = set()
    while new := set(descent.descendants(os.getpid())) - below:  # until nobody is left awake who could start others
        tree.signal_all(new, signal.SIGSTOP)
        below |= new
    suspend_ourselves()
    tree.signal_all(below, signal.SIGCONT)
    signals.take_suspend()  # the guardian's copy of the same Ctrl+Z
    fence.shift(clock.monotonic() - began)


def _end(pid: int, spec: Spec, signals: Signals) -> None:
    """The ladder: the agent's own stop signal, TERM if that was another, KILL. A further signal skips the graces."""
    for number in dict.fromkeys((spec.stop, signal.SIGTERM)):
        tree.signal_group(pid, number)
        if tree.await_exit(pid, spec.grace, signals.wait, lambda: signals.count > 1):
            return
        if signals.count > 1:
            break
    tree.signal_group(pid, signal.SIGKILL)
    tree.await_exit(pid, tree.LAST_WAIT, signals.wait)


def _bury(child: "subprocess.Popen[bytes]", spec: Spec, signals: Signals) -> int:
    """End what the leader left, then reap the leader; unreaped it keeps its group's number from being reused."""
    swept = 0
    if not spec.keep:
        if not descent.PROC:
            tree.signal_group(child.pid, signal.SIGTERM)
        swept = _sweep((child.pid,), spec.grace, signals)
    child.poll()
    return swept


def _sweep(ours: tuple[int, ...], grace: float, signals: Signals) -> int:
    """End every descendant but the children in `ours`. Where orphans don't come to us, only what is still below us."""
    ended: set[int] = set()

    def living() -> list[int]:
        if set(descent.children(os.getpid())) <= set(ours) and all(map(tree.has_exited, ours)):
            return []  # nearly always so, and cheaper found than the rest
        found = tree.living_below(ours)
        ended.update(found)
        return found

    tree.end_all(living, grace, signals.wait, lambda: signals.count > 1)
    return len(ended)


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
            argv,
            input=stdin,
            capture_output=True,
            timeout=timeout,
            env=env,
            cwd=cwd,
            check=False,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired as late:
        return Captured(124, late.stdout or b"", f"no answer within {timeout:g}s".encode())
    except OSError as problem:
        return Captured(NOT_FOUND, b"", str(problem).encode())
    return Captured(done.returncode, done.stdout, done.stderr)
