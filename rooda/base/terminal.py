"""Standard output and error that pass on no control sequence except rooda's own."""

from io import TextIOWrapper
from typing import NoReturn, TextIO


class EscapingStream(TextIOWrapper):
    """A stream that escapes control characters, so that no text of an agent, a file or a commit acts on a terminal.

    rooda's own colours and cursor movements go through `write_exact`, and bytes for a pipe through `write_bytes`.
    """

    def write(self, text: str) -> int:
        if not text.replace("\n", "").isprintable():  # cheap, and true for most texts
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
        """Hidden: libraries that write bytes to it would bypass the escapes."""
        raise AttributeError("this stream takes text")


def write_exact(stream: TextIO, text: str) -> None:
    """Write rooda's own control sequences. Everything else in the text must be escaped already."""
    (stream.write_exact if isinstance(stream, EscapingStream) else stream.write)(text)
