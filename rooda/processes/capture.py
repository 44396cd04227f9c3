"""Runs short programs, mostly git, to their end and captures their output."""

import os
import select
import signal
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import NamedTuple

from rooda.base import clock
from rooda.errors import Interrupted
from rooda.processes import ending
from rooda.processes.signals import StopRequest
from rooda.processes.supervise import NOT_FOUND, spawn

TIMED_OUT, TOO_MUCH = 124, 125  # exit codes: timed out, printed more than allowed
LOOK = 0.25  # seconds between checks for a signal while the program runs
SHORT_LOOK = 0.01  # seconds between checks where the system does not tell when a program ends
CHUNK = 65_536  # bytes that are read or written at once
TERM_GRACE = 1.0  # seconds between TERM and KILL: a git killed at once leaves its lock files

inherited: list[int] = []  # descriptors that each brief program keeps open: a lock that lasts until the program ends


class Captured(NamedTuple):
    """Exit code and output of a program."""

    code: int
    out: bytes
    err: bytes


def capture(
    argv: Sequence[str],
    *,
    stdin: bytes = b"",
    timeout: float = 30.0,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    brief: bool = True,
    most: int = 0,
    kept: Sequence[int] = (),
    quiet: float = 0.0,
) -> Captured:
    """Run a program and return its exit code and output.

    The code is 127 if it can't start, 124 on timeout or after `quiet` seconds without output, 125 if it prints more
    than `most` bytes; with `most`, stdin is closed and descendants that keep the pipes open are not waited for.
    `kept`: descriptors that the program keeps open. Raises Interrupted at the user's second ending signal, or at the
    first if not `brief`, even if the signal killed the program directly.
    """
    stop_request = StopRequest(1 if brief else 0)
    try:
        child = _Child(argv, env, cwd, (*inherited, *kept) if brief else ())  # others may leave a daemon behind
    except OSError as problem:
        return Captured(NOT_FOUND, b"", str(problem).encode())
    with child:
        talk = _Talk(child, b"" if most else stdin, most + 1 if most else 0)
        try:
            said = _conversation(child, talk, _Limits(timeout, quiet, most), stop_request)
        except Interrupted:
            ending.signal_group(child.pid, signal.SIGTERM)
            talk.wait_for_end(TERM_GRACE)
            raise
        finally:
            talk.close()
    signal_sent = stop_request.asked if said.code < 0 else stop_request.signal if said.code and not brief else 0
    if signal_sent:
        raise Interrupted(signal_sent)
    return said


class _Child:
    """A program in its own session, and this process's ends of its pipes. After an error, leaving `with` kills it."""

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str] | None, cwd: str | None, kept: Sequence[int]
    ) -> None:
        self.code: int | None = None  # the exit code, once the program has ended
        stdin, self.stdin = os.pipe()
        self.stdout, stdout = os.pipe()
        self.stderr, stderr = os.pipe()
        try:
            self.pid = spawn(argv, cwd, os.environ if env is None else env, (stdin, stdout, stderr), kept)
        except BaseException:
            self.close()
            raise
        finally:
            for theirs in (stdin, stdout, stderr):
                os.close(theirs)

    def __enter__(self) -> "_Child":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if problem:
            ending.signal_group(self.pid, signal.SIGKILL)
        self.close()
        while self.code is None:
            self._reap(0)

    def has_ended(self) -> bool:
        if self.code is None:
            self._reap(os.WNOHANG)
        return self.code is not None

    def _reap(self, how: int) -> None:
        try:
            pid, status = os.waitpid(self.pid, how)
        except ChildProcessError:  # somebody else has reaped it
            self.code = 0
        else:
            self.code = os.waitstatus_to_exitcode(status) if pid else None

    def close_stdin(self) -> None:
        if self.stdin >= 0:
            os.close(self.stdin)
            self.stdin = -1

    def close(self) -> None:
        self.close_stdin()
        for pipe in (self.stdout, self.stderr):
            os.close(pipe)


def _conversation(child: _Child, talk: "_Talk", limits: "_Limits", stop_request: StopRequest) -> Captured:
    """Write to a program and read from it until it ends or breaks a limit."""
    begun = heard = clock.monotonic()
    while True:
        size = talk.size
        talk.wait(min(LOOK, max(0.0, limits.timeout - (clock.monotonic() - begun))))
        now = clock.monotonic()
        heard = now if talk.size > size else heard
        flood = 0 < limits.most < talk.longest
        if not flood and child.code is not None and (limits.most or talk.is_silent):
            return Captured(child.code, *talk.said())
        late, mute = now - begun >= limits.timeout, 0 < limits.quiet <= now - heard
        if late or flood or mute:
            ending.signal_group(child.pid, signal.SIGKILL)  # kills its descendants too
            out, err = talk.said()
            if limits.most:
                return Captured(TOO_MUCH if flood else TIMED_OUT, out, err)
            why = f"no answer within {limits.timeout:g}s" if late else f"no progress for {limits.quiet:g}s"
            return Captured(TIMED_OUT, out, why.encode())
        if stop_request.signal:
            raise Interrupted(stop_request.signal)


class _Limits(NamedTuple):
    """The limits of a program: seconds, seconds without output, and bytes of each stream; 0 = no limit."""

    timeout: float
    quiet: float
    most: int


class _Talk:
    """The pipes of a program, and whether it has ended."""

    def __init__(self, child: _Child, stdin: bytes, most: int) -> None:
        """`most`: bytes of each stream that are read; 0 = no limit."""
        self._most = most
        self._child, self._left, self._poll = child, memoryview(stdin), select.poll()
        self._texts = {child.stdout: bytearray(), child.stderr: bytearray()}
        self._open = {*self._texts}
        self._input, self._exit = child.stdin, _exit_descriptor(child.pid)
        for pipe in (*self._texts, self._input):
            os.set_blocking(pipe, False)
        for pipe in (*self._open, *([self._exit] if self._exit >= 0 else [])):
            self._poll.register(pipe, select.POLLIN)
        self._poll.register(self._input, select.POLLOUT)
        self._write()

    @property
    def size(self) -> int:
        return sum(map(len, self._texts.values()))

    @property
    def longest(self) -> int:
        return max(map(len, self._texts.values()))

    @property
    def is_silent(self) -> bool:
        """True once no process has the program's stdout or stderr open for writing."""
        return not self._open

    def said(self) -> tuple[bytes, bytes]:
        out, err = map(bytes, self._texts.values())
        return out, err

    def wait_for_end(self, seconds: float) -> None:
        """Wait until the program has ended, but not longer than `seconds`."""
        begun = clock.monotonic()
        while self._child.code is None and (left := seconds - (clock.monotonic() - begun)) > 0:
            self.wait(left)

    def wait(self, seconds: float) -> None:
        """Wait until the program writes, reads or ends, or the time is over; then read from and write to its pipes.

        Without a descriptor for the program's end, wait at most `SHORT_LOOK` seconds.
        """
        ready = self._poll.poll(1000 * (seconds if self._exit >= 0 else min(seconds, SHORT_LOOK)))
        if any(pipe == self._input for pipe, _ in ready):
            self._write()
        if self._child.has_ended() and self._exit >= 0:  # before the last read
            self._poll.unregister(self._exit)
            os.close(self._exit)
            self._exit = -1
        for pipe in [*self._open]:
            self._read(pipe)

    def _read(self, pipe: int) -> None:
        room = self._most - len(self._texts[pipe]) if self._most else CHUNK
        try:
            data = os.read(pipe, min(CHUNK, room)) if room else b""
        except BlockingIOError:
            return
        self._texts[pipe] += data
        if not data:
            self._open.discard(pipe)
            self._poll.unregister(pipe)

    def _write(self) -> None:
        try:
            self._left = self._left[os.write(self._input, self._left[:CHUNK]) :] if self._left else self._left
        except BlockingIOError:
            return
        except BrokenPipeError:  # it reads no more
            self._left = self._left[:0]
        if not self._left:
            self._poll.unregister(self._input)
            self._input = -1
            self._child.close_stdin()

    def close(self) -> None:
        if self._exit >= 0:
            os.close(self._exit)


def _exit_descriptor(pid: int) -> int:
    """Return a descriptor that becomes readable when the process ends; -1 if the system has none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1
