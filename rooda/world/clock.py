"""The only reader of clocks."""

import time

monotonic = time.monotonic
now = time.time
sleep = time.sleep


def rfc3339(seconds: float) -> str:
    """UTC with whole seconds and a Z, the form of every state file."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def local(seconds: float) -> time.struct_time:
    """Local time, for lines that people read."""
    return time.localtime(seconds)


def rfc3339_milli(seconds: float) -> str:
    """UTC with milliseconds, the form of events."""
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{int(seconds % 1 * 1000):03d}Z"


def compact(seconds: float) -> str:
    """UTC as part of a file name."""
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(seconds))
