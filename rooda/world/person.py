"""Asking the person at the other end of stdin. Nobody there is an answer too."""

import os
import select
import sys


def at_terminal() -> bool:
    try:
        return sys.stdin is not None and sys.stdin.isatty()
    except ValueError:
        return False


def waiting_answer(seconds: float = 1.0) -> str | None:
    """A line that waits on a piped stdin, or None: end of input, nothing in time, or no stdin at all."""
    try:
        descriptor = sys.stdin.fileno()
        ready, _, _ = select.select([descriptor], [], [], seconds)
        line = b""
        while ready and not line.endswith(b"\n") and (sign := os.read(descriptor, 1)):  # the next line is for others
            line += sign
    except (OSError, ValueError, AttributeError):
        return None
    return line.decode("utf-8", "replace").split("\n")[0] if line else None


def typed_answer(question: str) -> str | None:
    """One line from the terminal; None at end of input."""
    sys.stderr.write(question)
    sys.stderr.flush()
    try:
        line = sys.stdin.readline()
    except UnicodeDecodeError:
        return "?"
    if not line:
        sys.stderr.write("\n")  # Ctrl+D leaves the cursor behind the question
        return None
    return line.rstrip("\n")
