"""Starts a program in its own session and exchanges lines with it through pipes, until it ends or a signal arrives."""

import os
import select
import signal
from collections import deque
from collections.abc import Mapping, Sequence
from types import FrameType, TracebackType
from typing import NamedTuple

from rooda.base import clock
from rooda.processes import ending, guardian, supervise
from rooda.processes.signals import ENDING

LINE, ERROR_LINE, ENDED, SIGNAL, LATE = "line", "error line", "ended", "signal", "late"
CHUNK = 65_536  # bytes read at once
LONGEST = 67_108_864  # bytes of a line; a longer one is cut into pieces


class Heard(NamedTuple):
    """A line that the program printed on stdout or stderr, or the reason why there is no line."""

    kind: str
    text: bytes = b""


class Dialogue:
    """A program with pipes as stdin, stdout and stderr. Signals that would end this process are only counted."""

    def __init__(self, argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> None:
        self._argv, self._cwd, self._env = argv, cwd, env
        self._heard: deque[Heard] = deque()
        self._unsent = bytearray()
        self._signals = self._seen = 0
        self._over = False

    def __enter__(self) -> "Dialogue":
        """Start the program. Raises OSError or ValueError if that fails."""
        self._wake, self._wakeup = _pipe()
        signal.set_wakeup_fd(self._wakeup, warn_on_full_buffer=False)
        for number in guardian.not_ignored(ENDING):
            signal.signal(number, self._note)
        signal.signal(signal.SIGCHLD, _do_nothing)  # so that Python writes to the wake-up pipe
        theirs_in, self._in = os.pipe()
        self._out, theirs_out = os.pipe()
        self._err, theirs_err = os.pipe()
        try:
            self.pid = supervise.spawn(self._argv, self._cwd, self._env, (theirs_in, theirs_out, theirs_err))
        finally:
            for end in (theirs_in, theirs_out, theirs_err):
                os.close(end)
        for end in (self._in, self._out, self._err):
            os.set_blocking(end, False)
        self._pieces: dict[int, list[bytes]] = {self._out: [], self._err: []}  # pieces of the last, incomplete line
        self._poll = select.poll()
        for end in (self._wake, *self._pieces):
            self._poll.register(end, select.POLLIN)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._over:
            self.finish(0.0)

    def send(self, line: bytes) -> None:
        """Send a line; the part that the pipe can't take now is sent while `hear` waits."""
        self._unsent += line + b"\n"
        self._write()

    def hear(self, deadline: float | None = None) -> Heard:
        """Return the next line, or the reason why there is none: a signal, the program's end, or the deadline."""
        while True:
            if self._signals > self._seen:
                self._seen += 1
                return Heard(SIGNAL)
            if self._heard:
                return self._heard.popleft()
            if self._out not in self._pieces or self._drained_after_exit():
                return self._heard.popleft() if self._heard else Heard(ENDED)
            left = None if deadline is None else deadline - clock.monotonic()
            if left is not None and left <= 0:
                return Heard(LATE)
            self._wait(left)

    def finish(self, patience: float) -> int:
        """Close stdin, wait for the exit, send SIGTERM, wait again, send SIGKILL; return the exit code.

        Each wait takes at most `patience` seconds; a signal to this process ends the wait at once.
        """
        self._over = True
        self._close_stdin()
        for number in (0, signal.SIGTERM, signal.SIGKILL):
            if number:
                ending.signal_group(self.pid, number)
            deadline = clock.monotonic() + (ending.LAST_WAIT if number == signal.SIGKILL else patience)
            before = self._signals
            while not self.exited and self._signals == before and (left := deadline - clock.monotonic()) > 0:
                self._wait(left)
            if self.exited:
                break
        self._drained_after_exit()
        return self._code()

    @property
    def exited(self) -> bool:
        return ending.has_exited(self.pid)

    def rest(self) -> list[bytes]:
        """Return the lines on stderr that `hear` has not returned yet."""
        lines = [heard.text for heard in self._heard if heard.kind == ERROR_LINE]
        self._heard.clear()
        return lines

    def _code(self) -> int:
        if not self.exited:
            return 128 + signal.SIGKILL
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return code if code >= 0 else 128 - code

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1

    def _wait(self, seconds: float | None) -> None:
        """Sleep until there is something to read or to write, a signal arrives, or the time is over."""
        for descriptor, _ in self._poll.poll(None if seconds is None else seconds * 1000.0 + 0.5):
            if descriptor == self._wake:
                _drain(descriptor)
            elif descriptor == self._in:
                self._write()
            else:
                self._read(descriptor)

    def _drained_after_exit(self) -> bool:
        """Return True once the program has exited, after reading its pipes, which a descendant may keep open."""
        if not self.exited:
            return False
        for descriptor in [*self._pieces]:
            while descriptor in self._pieces and self._read(descriptor):
                pass
        return True

    def _read(self, descriptor: int) -> bool:
        """Read a piece of output and queue its complete lines; False if there was nothing to read."""
        try:
            data = os.read(descriptor, CHUNK)
        except BlockingIOError:
            return False
        pieces = self._pieces[descriptor]
        kind = LINE if descriptor == self._out else ERROR_LINE
        if not data or b"\n" in data or sum(map(len, pieces)) > LONGEST:
            *lines, last = b"".join([*pieces, data]).split(b"\n")
            if not data or (last and not lines):
                lines, last = [*lines, last], b""
            self._heard.extend(Heard(kind, line) for line in lines if line.strip())
            pieces[:] = [last] if last else []
        else:
            pieces.append(data)
        if not data:
            self._poll.unregister(descriptor)
            del self._pieces[descriptor]
        return bool(data)

    def _write(self) -> None:
        """Write as much as the pipe takes, and let `_wait` write the rest."""
        if self._in < 0:
            return
        try:
            while self._unsent:
                del self._unsent[: os.write(self._in, self._unsent[:CHUNK])]
        except BlockingIOError:
            pass
        except OSError:  # the program has closed its stdin
            self._close_stdin()
            return
        if self._unsent:
            self._poll.register(self._in, select.POLLOUT)
        else:
            self._forget(self._in)

    def _close_stdin(self) -> None:
        if self._in >= 0:
            self._forget(self._in)
            os.close(self._in)
            self._in = -1
            self._unsent.clear()

    def _forget(self, descriptor: int) -> None:
        try:
            self._poll.unregister(descriptor)
        except KeyError:
            pass


def _pipe() -> tuple[int, int]:
    ends = os.pipe()
    for end in ends:
        os.set_blocking(end, False)
    return ends


def _drain(descriptor: int) -> None:
    try:
        while os.read(descriptor, 4096):
            pass
    except BlockingIOError:
        pass


def _do_nothing(number: int, frame: FrameType | None) -> None:
    """Handle a signal that only has to end a wait."""
