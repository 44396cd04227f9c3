"""Turns an agent's transcript into readable text: as a whole, or while the agent writes it."""

import codecs
from collections.abc import Callable, Iterator
from itertools import islice

from rooda.base import files, secrets
from rooda.base.json import Json

START, END = "--- AI CLI Output Start ---\n", "--- AI CLI Output End ---\n"
LARGEST = 268_435_456  # bytes of a transcript that are read, from its end
AT_ONCE = 4000  # lines of a transcript that are handled together
_CHUNK = 65_536


class Tail:
    """Prints one transcript at a time as it grows, like `tail -f`."""

    def __init__(self, write: Callable[[str], None], most: int = 0) -> None:
        """`most`: if the transcript already has content, print only this many bytes of it, from its end; 0 = all."""
        self._write, self._most = write, most
        self.hidden: tuple[str, ...] = ()  # secrets to mask
        self._rest = ""  # text that is not printed yet, since it may be the start of a secret
        self._path = ""
        self._offset = 0
        self._fresh_line = True
        self._decoder = _decoder()
        self._reader: Callable[[bytes], str] | None = None

    @property
    def mid_line(self) -> bool:
        """True if the last line on the screen is an unfinished line of the agent's output."""
        return not self._fresh_line

    def update(self, record: Json) -> None:
        if record["event"] == "agent.started":
            self._path, self._offset, self._fresh_line = record["transcript"], self._begin(record["transcript"]), True
            self._decoder, self._reader = _decoder(), _reader(record["output"])
            self._write(START)
        elif record["event"] == "agent.ended" and self._path:
            self.read()
            rest = self._shown(self._decoder.decode(b"", final=True), last=True)
            self._write(rest + (END if self._fresh_line else "\n" + END))
            self._path, self._fresh_line = "", True

    def _begin(self, path: str) -> int:
        return max(files.size(path) - self._most, 0) if self._most else 0

    def read(self) -> None:
        """Print what the agent wrote since the last read."""
        if not self._path:
            return
        try:
            with files.reading(self._path) as file:
                file.seek(self._offset)
                while chunk := file.read(_CHUNK):
                    self._offset += len(chunk)
                    if self._reader:
                        self._write(self._shown(self._reader(chunk)))
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


def readable(output: str, path: str, hidden: tuple[str, ...], limit: int = LARGEST) -> Iterator[str]:
    """Yield a transcript as readable lines with secrets masked. JSON records become text and names of tools.

    `limit`: read only this many bytes, from the end of the transcript.
    """
    rest, found = "", _readable(output, path, limit)
    while some := [*islice(found, AT_ONCE)]:
        text = rest + "\n".join([*some, ""])
        shown, waiting = secrets.hide_piece(text, hidden)  # a secret may continue in the next line
        whole = shown.rfind("\n") + 1
        yield from shown[:whole].split("\n")[:-1]
        rest = shown[whole:] + waiting
    yield from secrets.hide(rest, hidden).split("\n")[:-1]


def _readable(output: str, path: str, limit: int) -> Iterator[str]:
    from rooda.agents.gathered import Gathered
    from rooda.agents.reader import is_read
    from rooda.agents.transcript import LONGEST, readable_lines

    try:
        found = files.lines(path, limit, LONGEST)
        if is_read(output):
            yield from readable_lines(output, found, Gathered())
        else:
            while some := [*islice(found, AT_ONCE)]:
                yield from b"\n".join(some).decode("utf-8", "replace").split("\n")
    except OSError as problem:
        yield f"({path} can't be read: {problem.strerror})"
