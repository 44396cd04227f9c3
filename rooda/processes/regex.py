"""Searches for untrusted patterns with a timeout, in a child process: Python can't interrupt endless backtracking."""

import re
import sys
import warnings

from rooda.errors import Interrupted
from rooda.processes import capture

PATIENCE = 20.0  # seconds
SHORT = 10_000  # characters that a single repeat can search quickly
_REPEATS = re.compile(r"(?<!\\)(?:[*+?]|\{\d*,?\d*\})")
_CHILD = """\
import re, sys
length, data = int(sys.stdin.buffer.readline()), sys.stdin.buffer.read()
pattern, text = (each.decode("utf-8", "surrogatepass") for each in (data[:length], data[length:]))
sys.exit(0 if re.search(pattern, text, re.MULTILINE) else 1)
"""  # the pattern is sent by stdin too: an argument can't hold every character


def search(pattern: str, text: str, timeout: float) -> str:
    """Search for a pattern; return "found", "missing" or "timed out".

    An invalid pattern counts as missing. Raises Interrupted on a signal.
    """
    try:
        with warnings.catch_warnings(action="ignore"):
            compiled = re.compile(pattern, re.MULTILINE)
    except (re.error, RecursionError, OverflowError):
        return "missing"
    repeats = len(_REPEATS.findall(pattern))
    if not repeats or (repeats == 1 and "(" not in pattern and len(text) <= SHORT):
        return "found" if compiled.search(text) else "missing"
    given, searched = (each.encode("utf-8", "surrogatepass") for each in (pattern, text))
    data = b"%d\n%s%s" % (len(given), given, searched)
    done = capture.capture([sys.executable, "-ISB", "-c", _CHILD], stdin=data, timeout=timeout or 86_400.0, brief=False)
    return "timed out" if done.code == 124 else "found" if done.code == 0 else "missing"


def matches(pattern: str, text: str) -> bool:
    """True if the pattern is found. An invalid pattern, a timeout and a signal count as not found."""
    try:
        return search(pattern, text, PATIENCE) == "found"
    except Interrupted:
        return False
