"""How large the terminal is."""

import os
from typing import TextIO


def size(stream: TextIO) -> tuple[int, int]:
    """Columns and rows; the usual ones where nobody knows."""
    try:
        found = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return 80, 24
    return found.columns or 80, found.lines or 24


def is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown")
    except (AttributeError, ValueError):
        return False
