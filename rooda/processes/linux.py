"""What the kernel does for a parent: orphans come to it, its death is told to its child. Linux; elsewhere nothing."""

import gc
import sys

from rooda.base import files

_LEAST_MARK = 1 << 60
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> bool:
    """From now on descendants whose parent dies become our children. False where that can't be had."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def signal_on_parent_death(number: int) -> bool:
    """The kernel sends us this signal when our parent dies."""
    return _prctl(_PR_SET_PDEATHSIG, number)


def mark_self(run: str) -> bool:
    """Brand ourselves, and thus all that we start, with a number of this run.

    It is a limit that stops nobody: processor time of a real-time process, set to 36,000 years and some. Unlike the
    environment nobody cleans it away, and unlike a pid nobody else gets it.
    """
    if not sys.platform.startswith("linux"):
        return False
    import resource

    try:
        soft, hard = resource.getrlimit(resource.RLIMIT_RTTIME)
        if hard != resource.RLIM_INFINITY or (soft != hard and soft < _LEAST_MARK):
            return False  # somebody means it
        resource.setrlimit(resource.RLIMIT_RTTIME, (mark_number(run), hard))
    except (OSError, ValueError):
        return False
    return True


def mark_number(run: str) -> int:
    return _LEAST_MARK + int(files.sha256(run.encode())[:14], 16)


def _prctl(option: int, value: int) -> bool:
    return sys.platform.startswith("linux") and libc("prctl", option, value, 0, 0, 0) == 0


def libc(function: str, *arguments: int) -> int | None:
    """Call the C library; None where it has no such function, or Python no ctypes."""
    try:
        import ctypes

        return int(getattr(ctypes.CDLL(None), function)(*arguments))
    except (ImportError, OSError, AttributeError):
        return None


# What the loop holds while an agent works: as little as possible, for as long as that takes.
_M_MMAP_THRESHOLD = -3
_LARGE = 1 << 20


def settle_memory() -> None:
    """What is loaded now stays; what the loop makes is looked through again, and large blocks go back when freed."""
    gc.freeze()
    gc.enable()
    if sys.platform.startswith("linux"):
        libc("mallopt", _M_MMAP_THRESHOLD, _LARGE)  # else glibc learns to keep blocks of a long prompt
