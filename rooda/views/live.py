"""Draws the live status line at the bottom of a terminal. It is erased before other lines are printed."""

import os
from collections.abc import Sequence
from typing import TextIO

from rooda.base import clock
from rooda.base.json import Json
from rooda.base.terminal import write_exact
from rooda.base.text import escape_line, format_seconds, truncate

_CLEAR = "\r\x1b[K"
LONGEST_TOOL = 60  # columns
ECHO = 3  # columns left free: an echoed ^C would wrap a full line, and rooda could no longer erase it


class Live:
    """Status line: iteration, its elapsed time, cost and tokens so far, and the running gate or the last tool."""

    def __init__(self, stream: TextIO) -> None:
        from rooda.views.meter import Meter  # not needed by `rooda status`

        self._stream = stream
        self._where = self._gate = self._reason = ""
        self._waits = 0.0
        self._since = clock.monotonic()
        self._meter = Meter()
        self._shown = False

    def update(self, record: Json) -> None:
        """Update the status from an event."""
        event = record["event"]
        self._meter.update(record)
        if event == "iteration.started":
            limit = record["max_iterations"]
            self._where = f"Iteration {record['iteration'] + 1}" + (f"/{limit}" if limit else "")
            self._gate, self._since = "", clock.monotonic()
        elif event == "gate.started":
            self._gate = f"gate {record['gate']}"
        elif event == "gate.ended":
            self._gate = ""
        elif event == "stopping":
            self._gate = "stopping"
        elif event == "resting":
            self._waits = clock.monotonic() + record["seconds"]
            self._reason = f"waiting{f' for {account}' if (account := record.get('account')) else ''}"
        elif event == "rested":
            self._waits = 0.0
        elif event in ("iteration.ended", "run.ended"):
            self._where = ""

    @property
    def _doing(self) -> list[str]:
        """Cost and tokens so far, and the running gate or the last tool."""
        self._meter.read()
        return [*self._meter.used, self._gate or truncate(self._meter.tool, LONGEST_TOOL)]

    def draw(self) -> None:
        if self._waits:
            parts = [self._where, self._reason, f"{format_seconds(self._waits - clock.monotonic())} left"]
        elif self._where:
            parts = [self._where, format_seconds(clock.monotonic() - self._since), *self._doing]
        else:
            self.clear()
            return
        text = escape_line(" · ".join(part for part in parts if part))
        self._write(f"{_CLEAR}{truncate(text, size(self._stream)[0] - ECHO)}")
        self._shown = True

    def clear(self) -> None:
        if self._shown:
            self._write(_CLEAR)
            self._shown = False

    def _write(self, text: str) -> None:
        """Write a string that is already escaped, except for rooda's own control sequences."""
        try:
            write_exact(self._stream, text)
            self._stream.flush()
        except (OSError, ValueError):
            self._where = ""


# Full-screen output for `rooda status --watch`, repainted without scrolling or flicker
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"  # switch to the alternate screen, and back
_TOP, _REST_OF_LINE, _BELOW = "\x1b[H", "\x1b[K", "\x1b[J"


class Repaint:
    """Context manager for full-screen output: each `paint` replaces the one before; the last one stays visible."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._last: Sequence[str] = ()

    def __enter__(self) -> "Repaint":
        self._write(_ENTER)
        return self

    def __exit__(self, *_: object) -> None:
        self._write(_LEAVE)
        self._write("".join(f"{line}\n" for line in self._last))

    def leave(self) -> None:
        self._write(_LEAVE)

    def enter(self) -> None:
        self._write(_ENTER)

    def paint(self, lines: Sequence[str]) -> None:
        self._last = lines = [*map(escape_line, lines)]
        columns, rows = size(self._stream)
        shown = [*lines]
        if len(shown) > rows:
            shown = [*lines[: rows - 1], f"… {len(lines) - rows + 1} more lines"]
        self._write(_TOP + "\n".join(truncate(line, columns - 1) + _REST_OF_LINE for line in shown) + _BELOW)

    def _write(self, text: str) -> None:
        try:
            write_exact(self._stream, text)
            self._stream.flush()
        except OSError:
            pass  # the terminal is gone; SIGHUP will follow


def size(stream: TextIO) -> tuple[int, int]:
    """Return the columns and rows of the terminal; 80 × 24 if they are unknown."""
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
