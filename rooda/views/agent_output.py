"""Prints the agent's output for --verbose; reads the transcript while the agent writes it."""

import codecs
from collections.abc import Callable

from rooda.base import files, secrets
from rooda.base.json import Json

START, END = "--- AI CLI Output Start ---\n", "--- AI CLI Output End ---\n"
_CHUNK = 65_536


class Tail:
    """Prints one transcript at a time as it grows, like `tail -f`."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self.hidden: tuple[str, ...] = ()  # secrets to mask
        self._rest = ""  # text that is not printed yet, since it may be the start of a secret
        self._path = ""
        self._offset = 0
        self._fresh_line = True
        self._decoder = _decoder()
        self._reader: Callable[[bytes], str] | None = None

    @property
    def mid_line(self) -> bool:
        """True if the last line on the screen is one that the agent has not finished."""
        return not self._fresh_line

    def update(self, record: Json) -> None:
        if record["event"] == "agent.started":
            self._path, self._offset, self._fresh_line = record["transcript"], 0, True
            self._decoder, self._reader = _decoder(), _reader(record["output"])
            self._write(START)
        elif record["event"] == "agent.ended" and self._path:
            self.read()
            rest = self._shown(self._decoder.decode(b"", final=True), last=True)
            self._write(rest + (END if self._fresh_line else "\n" + END))
            self._path, self._fresh_line = "", True

    def read(self) -> None:
        """Print what the agent wrote since the last call."""
        if not self._path:
            return
        try:
            with files.reading(self._path) as file:
                file.seek(self._offset)
                while chunk := file.read(_CHUNK):
                    self._offset += len(chunk)
                    if self._reader:
                        self._write(secrets.hide(self._reader(chunk), self.hidden))
                        continue
                    self._fresh_line = chunk.endswith(b"\n")
                    self._write(self._shown(self._decoder.decode(chunk)))
        except OSError:
            return

    def _shown(self, text: str, last: bool = False) -> str:
        text, self._rest = self._rest + text, ""
        if last:
            return secrets.hide(text, self.hidden)
        shown, self._rest = secrets.hide_piece(text, self.hidden)
        return shown


def _decoder() -> codecs.IncrementalDecoder:
    """Return a decoder that keeps an incomplete character for the next chunk."""
    return codecs.getincrementaldecoder("utf-8")("replace")


def _reader(output: str) -> Callable[[bytes], str] | None:
    """Return a function that turns a CLI's JSON records into readable lines; None for a CLI that prints text.

    The function keeps an incomplete record for the next chunk.
    """
    if output == "text":
        return None
    from rooda.agents.gathered import Gathered
    from rooda.agents.transcript import LONGEST, readable_lines

    into, pending = Gathered(), bytearray()

    def read(chunk: bytes) -> str:
        whole, newline, rest = chunk.rpartition(b"\n")
        found = (bytes(pending) + whole).split(b"\n") if newline else []
        if newline:
            pending.clear()
        pending.extend(rest[: LONGEST - len(pending)])  # of a longer line only the first LONGEST bytes are read
        return "".join(f"{line.rstrip()}\n" for line in readable_lines(output, found, into))

    return read
