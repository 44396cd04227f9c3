"""Questions while a loop runs: a flag answers, else a terminal, else a line that waits on a pipe, else nobody."""

import os
import select
import sys
from collections.abc import Callable

from rooda.world import person
from rooda.world.signals import Signals

PATIENCE = 1.0  # seconds for a line on a pipe
LOOK = 0.2  # seconds between two looks at the signals while a person thinks
WORDS = {"y": "y", "yes": "y", "n": "n", "no": "n"}
ASK_AGAIN = "Please answer y or n. "


class Asker:
    """Keeps what a pipe has given beyond one line for the next question."""

    def __init__(self, signals: Signals) -> None:
        self._signals = signals
        self._rest = b""

    def answer(self, question: str, hint: str, accepts: Callable[[str], bool]) -> str | None:
        """y, n, or words that `accepts` takes; without a hint any line. None: nobody answers."""
        terminal = person.at_terminal()
        prompt = f"{question} {hint} " if hint else f"{question} "
        while True:
            if terminal:
                sys.stderr.write(prompt)
                sys.stderr.flush()
            line = self._line(None if terminal else PATIENCE)
            if line is None:
                return None
            word = line.strip()
            if not hint or accepts(word):
                return word
            if not word or word.lower() in WORDS:
                return WORDS[word.lower()] if word else ("y" if hint == "[Y/n]" else "n")
            if not terminal:
                return None
            prompt = f"{ASK_AGAIN}{hint} "

    def _line(self, patience: float | None) -> str | None:
        """One line of stdin. A signal ends the wait, so does the end of input."""
        try:
            descriptor = sys.stdin.fileno()
        except (OSError, ValueError, AttributeError):
            return None
        left = patience
        while b"\n" not in self._rest:
            if self._signals.count or (left is not None and left <= 0):
                return None
            if not select.select([descriptor], [], [], LOOK)[0]:
                left = None if left is None else left - LOOK
                continue
            data = _read(descriptor)
            if not data and not self._rest:
                return None
            self._rest += data or b"\n"
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode("utf-8", "replace")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:
        return b""
