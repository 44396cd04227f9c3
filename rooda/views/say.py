"""What commands print outside of a loop's own screen."""

import sys


def say(text: str = "", aside: bool = False) -> None:
    """Print a line on stdout, or on stderr if it is `aside`, at once."""
    stream = sys.stderr if aside else sys.stdout
    stream.write(f"{text}\n")
    stream.flush()
