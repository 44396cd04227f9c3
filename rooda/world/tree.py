"""Ending what a process started: stop signal to its group, a grace, then KILL."""

import os
import signal
import subprocess
from collections.abc import Iterator

from rooda.world import clock
from rooda.world.signals import Signals

LAST_WAIT = 1.0  # after KILL; what is still there then can't be ended by anyone


def end_group(pid: int, stop: int, grace: float, signals: Signals) -> None:
    """The ladder for a running leader: `stop`, `grace` seconds, KILL. A further signal skips the grace."""
    seen = signals.count
    signal_group(pid, stop)
    deadline = clock.monotonic() + grace
    while not has_exited(pid) and signals.count == seen and (left := deadline - clock.monotonic()) > 0:
        signals.wait(left)
    if has_exited(pid):
        return
    signal_group(pid, signal.SIGKILL)
    deadline = clock.monotonic() + LAST_WAIT
    while not has_exited(pid) and (left := deadline - clock.monotonic()) > 0:
        signals.wait(left)


def sweep_group(child: "subprocess.Popen[bytes]", grace: float) -> None:
    """End what the leader left in its group, then reap the leader. Costs two calls when nothing is left."""
    pid = child.pid
    signal_group(pid, signal.SIGTERM)  # the unreaped leader still holds the group's number
    child.poll()
    deadline = clock.monotonic() + grace
    while _group_lives(pid):
        if clock.monotonic() >= deadline:
            signal_group(pid, signal.SIGKILL)
            break
        clock.sleep(0.005)


def signal_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not os.path.isdir("/proc/self") or any(_running_members(group))


def _running_members(group: int) -> Iterator[int]:
    """Members that are not zombies: an orphan's body may wait long for a lazy init."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == group and fields[0] not in (b"Z", b"X"):
                yield int(entry)


def has_exited(pid: int) -> bool:
    """True once the child is dead; it stays unreaped, so that its pid and group can't be recycled."""
    if not hasattr(os, "waitid"):  # macOS before Python 3.13
        return _exited_without_waitid(pid)
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _exited_without_waitid(pid: int) -> bool:
    import psutil

    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True
