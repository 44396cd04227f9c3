"""Prints the output of commands that don't run a loop."""

import sys
from typing import TYPE_CHECKING

from rooda.base.terminal import EscapingStream, write_exact

if TYPE_CHECKING:
    from rooda.settings.layers import Settings
    from rooda.settings.where import Where


LEAST = 12  # columns that a margin leaves for words


def say(text: str = "", to_stderr: bool = False, end: str = "\n") -> None:
    """Print a string to stdout, or to stderr if `to_stderr`, and flush."""
    stream = sys.stderr if to_stderr else sys.stdout
    stream.write(f"{text}{end}")
    stream.flush()


def folded(line: str, margin: str = "    ") -> str:
    """Return a line for stdout; for a terminal, wrap it at spaces and put `margin` before each line after the first.

    A word that is longer than a line is not broken, so that a path can be copied.
    """
    from rooda.views.live import is_terminal, size

    if not is_terminal(sys.stdout):
        return line
    import textwrap

    room, text = size(sys.stdout)[0], line.lstrip(" ")
    fold = textwrap.TextWrapper(room, line[: len(line) - len(text)], break_long_words=False, break_on_hyphens=False)
    fold.subsequent_indent = margin if len(margin) <= room - LEAST else "    "
    return "\n".join(fold.wrap(text))


def screen_size() -> tuple[int, int]:
    """Return the columns and rows of the user's terminal."""
    from rooda.views.live import size

    return size(sys.stderr)


def warned(settings: "Settings") -> "Settings":
    """Print the warnings of the settings and return them."""
    for text in settings.warnings:
        say_here(f"WARNING: {text}")
    return settings


def say_place(here: "Where") -> None:
    """Print the workspace if it is not the current directory, or if the user may expect another workspace."""
    if here.note:
        say_here(here.note)


def say_here(text: str) -> None:
    """Print a line to stderr; with --detach, also on the terminal where the command was typed."""
    from rooda.processes import detach

    say(text, to_stderr=True)
    detach.relay(text)


def say_bytes(data: bytes) -> None:
    """Write bytes to stdout: unchanged to a pipe or file, escaped to a terminal."""
    stream = sys.stdout
    if stream.isatty():
        say(data.decode("utf-8", "replace"), end="")
    elif isinstance(stream, EscapingStream):
        stream.write_bytes(data)
    else:
        stream.flush()
        stream.buffer.write(data)
        stream.flush()


def say_coloured(data: bytes) -> None:
    """Print bytes to stdout with their color sequences; escape all other control sequences.

    Use it only for output whose colors come from rooda or git.
    """
    from rooda.base.text import escape_all_but_colours

    write_exact(sys.stdout, escape_all_but_colours(data.decode("utf-8", "replace")))
    sys.stdout.flush()
