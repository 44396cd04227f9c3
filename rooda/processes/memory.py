"""What the loop holds while an agent works: as little as possible, for as long as that takes."""

import gc
import sys

from rooda.processes import linux

_M_MMAP_THRESHOLD = -3
_LARGE = 1 << 20


def settle() -> None:
    """What is loaded now stays; what the loop makes is looked through again, and large blocks go back when freed."""
    gc.freeze()
    gc.enable()
    if sys.platform.startswith("linux"):
        linux.libc("mallopt", _M_MMAP_THRESHOLD, _LARGE)  # else glibc learns to keep blocks of a long prompt
