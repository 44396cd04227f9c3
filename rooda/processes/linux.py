"""Makes Linux system calls: adopt orphans, signal a parent's death, mark processes. No effect on other systems."""

import errno
import sys

from rooda.base import files

_LEAST_MARK = 1 << 60
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> bool:
    """Become the parent of orphaned descendants; False if the system doesn't support that."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def signal_on_parent_death(number: int) -> bool:
    """Have the kernel send this process a signal when its parent dies; False if the system doesn't support that."""
    return _prctl(_PR_SET_PDEATHSIG, number)


_CLONE_NEWUSER, _CLONE_NEWNET, _NS_GET_USERNS = 0x10000000, 0x40000000, 0xB701


def join_network(pid: int) -> None:
    """Move this process into the network of `pid`, a process that this user started in a sandbox.

    Raises OSError on failure.
    """
    network = files.open_proc(f"/proc/{pid}/ns/net")
    owner = libc("ioctl", network, _NS_GET_USERNS)
    if owner is None or owner < 0:
        raise OSError(errno.ENOTSUP, "the kernel can't report which user namespace owns a network namespace")
    for descriptor, kind in ((owner, _CLONE_NEWUSER), (network, _CLONE_NEWNET)):
        if libc("setns", descriptor, kind) != 0:
            raise OSError(errno.EPERM, "the network of the sandbox can't be joined")


def mark_self(run: str) -> bool:
    """Mark this process and its future descendants with the run's number; False if that is not possible.

    The mark is a resource limit without effect: over 36,000 years of CPU time for a real-time process. Unlike an
    environment variable it can't be cleared by accident, and unlike a PID it is never reused.
    """
    if not sys.platform.startswith("linux"):
        return False
    import resource

    try:
        soft, hard = resource.getrlimit(resource.RLIMIT_RTTIME)
        if hard != resource.RLIM_INFINITY or (soft != hard and soft < _LEAST_MARK):
            return False  # the user set this limit on purpose
        resource.setrlimit(resource.RLIMIT_RTTIME, (mark_number(run), hard))
    except (OSError, ValueError):
        return False
    return True


def mark_number(run: str) -> int:
    return _LEAST_MARK + int(files.sha256(run.encode())[:14], 16)


def _prctl(option: int, value: int) -> bool:
    return sys.platform.startswith("linux") and libc("prctl", option, value, 0, 0, 0) == 0


def libc(function: str, *arguments: int) -> int | None:
    """Call a function of the C library; None if the function or ctypes is missing."""
    try:
        import ctypes

        return int(getattr(ctypes.CDLL(None), function)(*arguments))
    except (ImportError, OSError, AttributeError):
        return None


_M_MMAP_THRESHOLD = -3
_LARGE = 1 << 20


def return_large_blocks() -> None:
    """Make glibc return freed blocks of 1 MB and more to the system; otherwise it keeps them after a long prompt."""
    if sys.platform.startswith("linux"):
        libc("mallopt", _M_MMAP_THRESHOLD, _LARGE)
