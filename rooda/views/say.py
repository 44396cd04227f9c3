"""Output of commands, outside of a loop's screen."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rooda.settings.layers import Settings


def say(text: str = "", aside: bool = False, end: str = "\n") -> None:
    """Print a text on stdout, or on stderr if it is `aside`, at once."""
    stream = sys.stderr if aside else sys.stdout
    stream.write(f"{text}{end}")
    stream.flush()


def warned(settings: "Settings") -> "Settings":
    """Print the warnings of the settings and return them."""
    for text in settings.warnings:
        say(f"WARNING: {text}", aside=True)
    return settings


def say_bytes(data: bytes) -> None:
    """Print bytes on stdout exactly as they are."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.flush()
