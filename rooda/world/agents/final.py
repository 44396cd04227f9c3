"""The last message of an agent call, read again from its transcript when a loop needs the words themselves."""

from rooda.world import files
from rooda.world.agents import reading

LONGEST = 16_777_216  # bytes of a raw command's output; what is cut is its beginning


def text(output: str, transcript: str) -> str:
    """What the agent said last; of a raw command everything that it printed. Nothing if the file can't be read."""
    if reading.is_read(output):
        return reading.facts_of(output, transcript).final
    try:
        return files.tail(transcript, LONGEST).decode("utf-8", "replace")
    except OSError:
        return ""
