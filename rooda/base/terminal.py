"""Writes to stdout and stderr: escapes all control sequences except rooda's own, and copes with a closed stream."""

import os
from io import TextIOWrapper
from typing import NoReturn, TextIO


class EscapingStream(TextIOWrapper):
    """A text stream that escapes control characters, so that an agent, a file or a commit can't control the terminal.

    rooda's own colors and cursor movements go through `write_exact`, and bytes for a pipe through `write_bytes`.
    """

    def write(self, text: str) -> int:
        if not text.replace("\n", "").isprintable():  # cheap, and false for most strings
            from rooda.base.text import escape_text

            super().write(escape_text(text))
        else:
            super().write(text)
        return len(text)

    def write_exact(self, text: str) -> None:
        super().write(text)

    def write_bytes(self, data: bytes) -> None:
        self.flush()
        super().buffer.write(data)
        self.flush()

    @property
    def buffer(self) -> NoReturn:
        """Raise AttributeError, so that libraries don't bypass the escaping by writing bytes to the buffer."""
        raise AttributeError("this stream takes text")


def write_exact(stream: TextIO, text: str) -> None:
    """Write text with rooda's own control sequences unescaped. The caller must have escaped everything else in it."""
    (stream.write_exact if isinstance(stream, EscapingStream) else stream.write)(text)


def silence(stream: TextIO) -> None:
    """Redirect a stream that has lost its reader to /dev/null, so that later output and the flush at exit succeed."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
    except (OSError, ValueError):
        pass
