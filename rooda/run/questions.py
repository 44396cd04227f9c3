"""Asking the person at the other end of stdin. Nobody there is an answer too."""

import os
import select
import sys
from typing import TYPE_CHECKING

from rooda.base import clock

if TYPE_CHECKING:
    from rooda.processes.signals import Signals

PATIENCE = 1.0  # seconds for a line on a pipe


class Stdin:
    """Its lines, one for each question. What a pipe has given beyond one is kept for the next."""

    def __init__(self) -> None:
        self._kept = b""

    def line(self, patience: float | None, ears: "Signals | None") -> str | None:
        """None: end of input, nothing in time, a signal, or no stdin at all."""
        try:
            descriptor = sys.stdin.fileno()
        except (OSError, ValueError, AttributeError):
            return None
        deadline = None if patience is None else clock.monotonic() + patience
        while b"\n" not in self._kept:
            left = None if deadline is None else deadline - clock.monotonic()
            if (ears and ears.count) or (left is not None and left <= 0):
                return None
            if _ready(descriptor, left, ears) and not self._take(descriptor):
                return None
        line, _, self._kept = self._kept.partition(b"\n")
        return line.decode("utf-8", "replace")

    def _take(self, descriptor: int) -> bool:
        """False at the end of input, unless a last line has none."""
        try:
            data = os.read(descriptor, 4096)
        except OSError:
            data = b""
        ended = not data and not self._kept
        self._kept += data or b"\n"[ended:]
        return not ended


def _ready(descriptor: int, seconds: float | None, ears: "Signals | None") -> bool:
    if ears:
        ready = ears.wait_for(descriptor, seconds)
        ears.suspend_if_asked()
        return ready
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    except OSError:
        return True  # who reads will see


_stdin = Stdin()


def at_terminal() -> bool:
    try:
        return sys.stdin is not None and sys.stdin.isatty()
    except ValueError:
        return False


def waiting_answer(ears: "Signals | None" = None) -> str | None:
    """A line that waits on a piped stdin, or None: end of input, nothing in time, or no stdin at all."""
    return _stdin.line(PATIENCE, ears)


def typed_answer(question: str, ears: "Signals | None" = None) -> str | None:
    """One line from the terminal; None at end of input. While a loop runs its ears end the wait as well."""
    sys.stderr.write(question)
    sys.stderr.flush()
    line = _stdin.line(None, ears)
    if line is None:
        sys.stderr.write("\n")  # Ctrl+D leaves the cursor behind the question
    return line
