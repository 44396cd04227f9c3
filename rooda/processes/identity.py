"""Which process a pid meant: pid alone is no proof, pid with start time and boot is."""

import os

from rooda.base import clock, files


def of(pid: int) -> dict[str, object]:
    """pid, start and boot of a live process; start is None when it can't be told."""
    return {"pid": pid, "start": start_of(pid), "boot": boot()}


def start_of(pid: int) -> int | float | None:
    """Start time: clock ticks since boot on Linux, which no clock change moves; else psutil's."""
    try:
        return int(files.of_kernel(f"/proc/{pid}/stat").rpartition(b")")[2].split()[19])
    except FileNotFoundError:
        if os.path.isdir("/proc/self"):
            return None
    except OSError:
        return None
    import psutil

    try:
        return float(psutil.Process(pid).create_time())
    except psutil.Error:
        return None


def age(pid: int) -> float | None:
    """Seconds since a process began, by a clock that nobody sets; None where that can't be told."""
    start = start_of(pid)
    return None if not isinstance(start, int) else max(clock.uptime() - start / os.sysconf("SC_CLK_TCK"), 0.0)


def boot() -> str:
    """Names this boot of the machine."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        pass
    import psutil

    return str(int(psutil.boot_time()))


def is_alive(facts: dict[str, object]) -> bool:
    """True if the process that `facts` were taken of still lives."""
    pid = facts.get("pid")
    if not isinstance(pid, int) or pid <= 0 or facts.get("boot") != boot():
        return False
    start = start_of(pid)
    return start is not None and start == facts.get("start")
