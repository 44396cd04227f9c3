"""The last message of an agent call, read again from its transcript when a loop needs the words themselves."""

from rooda.world import files
from rooda.world.agents import reading

LONGEST = 16_777_216  # bytes of a raw command's output; what is cut is its beginning


def text(output: str, transcript: str) -> str:
    """What the agent said last; of a raw command everything that it printed. Nothing if the file can't be read."""
    return _read(output, transcript, "replace")[0]


def whole(output: str, transcript: str, exact: bool = False) -> str | None:
    """The same for who needs all of it: None if it is too long for that. `exact`: bytes that are no UTF-8 survive."""
    said, cut = _read(output, transcript, "surrogateescape" if exact else "replace")
    return None if cut else said


def _read(output: str, transcript: str, errors: str) -> tuple[str, bool]:
    """The text, and whether something of it is missing."""
    if reading.is_read(output):
        found = reading.gathered(output, transcript)
        return found.final, found.cut
    try:
        data = files.tail(transcript, LONGEST + 1)
    except OSError:
        return "", False
    return data[-LONGEST:].decode("utf-8", errors), len(data) > LONGEST
