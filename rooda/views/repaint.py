"""One picture after the other at the same place of a terminal: nothing scrolls or flickers, the cursor comes back."""

from collections.abc import Sequence
from typing import TextIO

from rooda.base.text import cut
from rooda.views.window import size

_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"  # a page of its own, and back
_TOP, _REST_OF_LINE, _BELOW = "\x1b[H", "\x1b[K", "\x1b[J"


class Repaint:
    """A with-block. Each picture overwrites the one before, cut to the window; the last one stays on the screen."""

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
        """For the time of a Ctrl+Z."""
        self._write(_LEAVE)

    def enter(self) -> None:
        self._write(_ENTER)

    def paint(self, lines: Sequence[str]) -> None:
        self._last = lines
        columns, rows = size(self._stream)
        shown = [*lines]
        if len(shown) > rows:
            shown = [*lines[: rows - 1], f"… {len(lines) - rows + 1} more lines"]
        self._write(_TOP + "\n".join(cut(line, columns - 1) + _REST_OF_LINE for line in shown) + _BELOW)

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            pass  # the terminal is gone; the signal that says so is on its way
