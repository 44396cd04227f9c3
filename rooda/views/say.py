"""Output of commands, outside of a loop's screen."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rooda.settings.layers import Settings


def say(text: str = "", to_stderr: bool = False, end: str = "\n") -> None:
    """Print a text on stdout, or with `to_stderr` on stderr, at once."""
    stream = sys.stderr if to_stderr else sys.stdout
    stream.write(f"{text}{end}")
    stream.flush()


def warned(settings: "Settings") -> "Settings":
    """Print the warnings of the settings and return them."""
    for text in settings.warnings:
        say(f"WARNING: {text}", to_stderr=True)
    return settings


def say_bytes(data: bytes) -> None:
    """Print bytes on stdout exactly as they are."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.flush()
