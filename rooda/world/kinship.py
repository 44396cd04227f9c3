"""What the kernel does for a parent: orphans come to it, its death is told to its child. Linux; elsewhere nothing."""

import sys

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> bool:
    """From now on descendants whose parent dies become our children. False where that can't be had."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def be_told_of_parents_death(number: int) -> bool:
    """The kernel sends us this signal when our parent dies."""
    return _prctl(_PR_SET_PDEATHSIG, number)


def _prctl(option: int, value: int) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    try:
        return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False
