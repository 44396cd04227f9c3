"""Reads the user's answers to questions from stdin, a terminal or a pipe."""

import os
import select
import sys
from typing import TYPE_CHECKING

from rooda.base import clock
from rooda.base.terminal import silence

if TYPE_CHECKING:
    from rooda.processes.signals import Signals

PIPE_TIMEOUT = 1.0  # seconds to wait for a line from a pipe
HANG_UP_TIMEOUT = 1.0  # seconds to wait for the SIGHUP that follows when a terminal closes


class Stdin:
    """Reads one line of stdin per question, and keeps the following lines of a pipe for the next questions."""

    def __init__(self) -> None:
        self._rest = b""

    def line(self, timeout: float | None, signals: "Signals | None") -> str | None:
        """Read a line; None at end of input, on a timeout or a signal, or without stdin."""
        try:
            descriptor = sys.stdin.fileno()
        except (OSError, ValueError, AttributeError):
            return None
        deadline = None if timeout is None else clock.monotonic() + timeout
        while b"\n" not in self._rest:
            left = None if deadline is None else deadline - clock.monotonic()
            if (signals and signals.count) or (left is not None and left <= 0):
                return None
            if _ready(descriptor, left, signals) and not self._take(descriptor):
                return None
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode("utf-8", "replace")

    def _take(self, descriptor: int) -> bool:
        """Read the available input into the buffer, and add a missing final newline; return False at end of input."""
        try:
            data = os.read(descriptor, 4096)
        except OSError:
            data = b""
        ended = not data and not self._rest
        self._rest += data or b"\n"[ended:]
        return not ended


def _ready(descriptor: int, seconds: float | None, signals: "Signals | None") -> bool:
    if signals:
        ready = signals.wait_for(descriptor, seconds)
        signals.suspend_if_asked()
        return ready
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    except OSError:
        return True  # then reading fails with the same error


_stdin = Stdin()


def at_terminal() -> bool:
    try:
        return sys.stdin is not None and sys.stdin.isatty()
    except ValueError:
        return False


def waiting_answer(signals: "Signals | None" = None) -> str | None:
    """Return a line from piped stdin; None at end of input, on a timeout, or without stdin."""
    return _stdin.line(PIPE_TIMEOUT, signals)


def typed_answer(question: str, signals: "Signals | None" = None) -> str | None:
    """Ask a question on the terminal and read one line; None at end of input, on a signal, or on a hang-up."""
    is_open = _print(question)
    line = _stdin.line(None, signals) if is_open else None
    if line is None and is_open:
        is_open = _print("\n")  # after Ctrl+D the cursor is still on the line of the question
    if not is_open and signals:
        signals.pause(HANG_UP_TIMEOUT)  # otherwise the loop would take the closed terminal for an answer and go on
    return line


def _print(text: str) -> bool:
    """Print to stderr; return False if the terminal was closed."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)
        return False
    return True
