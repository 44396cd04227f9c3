"""Ends processes and all their descendants: stop signal, grace, KILL."""

import os
import signal
from collections.abc import Callable, Collection, Iterable

from rooda.base import clock
from rooda.processes import table

LAST_WAIT = 1.0  # seconds to wait after KILL; a process still alive then counts as one that can't be killed
spared: set[int] = set()  # children left running with their descendants: background hooks
Pause = Callable[[float], None]  # sleeps up to this many seconds, less if a child ends or a signal arrives


def signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        pass


def is_in_group(pid: int, group: int) -> bool:
    try:
        return os.getpgid(pid) == group
    except (ProcessLookupError, PermissionError):
        return False


def signal_all(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass


def await_exits(
    pids: Collection[int], seconds: float, pause: Pause, impatient: Callable[[], bool] = lambda: False
) -> bool:
    """Wait until these children have exited and return True; False on timeout or as soon as `impatient()` is true."""
    deadline = clock.monotonic() + seconds
    while not all(map(has_exited, pids)):
        left = deadline - clock.monotonic()
        if left <= 0 or impatient():
            return False
        pause(left)
    return True


def end_all(living: Callable[[], list[int]], grace: float, pause: Pause, impatient: Callable[[], bool]) -> bool:
    """End all processes that `living` finds: send TERM, wait, then send KILL. False if one can't be killed."""
    found = living()
    if not found:
        return True
    signal_all(found, signal.SIGTERM)
    signal_all(found, signal.SIGCONT)  # a stopped process does not handle TERM
    deadline = clock.monotonic() + grace
    while (left := deadline - clock.monotonic()) > 0 and not impatient():
        pause(min(left, 0.05))
        if not living():
            return True
    return kill_all(living, pause)


def kill_all(living: Callable[[], list[int]], pause: Pause) -> bool:
    """Send KILL until `living` finds none, without pausing while new processes appear. False if one can't be killed."""
    before: list[int] = []
    end = hopeless = clock.monotonic() + LAST_WAIT
    end += 10 * LAST_WAIT
    while found := living():
        now = clock.monotonic()
        if found != before:
            hopeless = now + LAST_WAIT
        elif now >= hopeless:
            return False
        else:
            pause(0.01)
        if now >= end:
            return False
        for pid in found:
            kill(pid)
        before = found
    return True


def await_deaths(pause: Pause) -> None:
    """Wait a fraction of a second for the end of all descendants, then kill those that remain."""
    for _ in range(100):
        if not living_below():
            return
        pause(0.002)
    kill_all(living_below, pause)


def kill(pid: int) -> None:
    """Kill a process. If it is in another session, also kill its group, so that no member can escape by forking."""
    try:
        if os.getsid(pid) != os.getsid(0):
            os.killpg(os.getpgid(pid), signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def living_below(ours: Collection[int] = ()) -> list[int]:
    """Return the live descendants except the children in `ours`.

    Retries, because a search can miss the children of a dying process.
    """
    for _ in range(100):
        reap_orphans(ours)
        found = [pid for pid in table.descendants(os.getpid(), spared) if pid not in ours]
        alive = [pid for pid in found if not table.is_zombie(pid)]
        if alive or not found:
            return alive
    return []


def reap_while_waiting(ours: Collection[int]) -> None:
    """Reap orphans while the children in `ours` run, so that zombies don't pile up.

    Costs only one system call if there are no orphans.
    """
    while hasattr(os, "waitid"):
        try:
            dead = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if dead is None or dead.si_pid in ours or dead.si_pid in spared:
                return
            os.waitpid(dead.si_pid, os.WNOHANG)
        except ChildProcessError:
            return


def reap_orphans(ours: Iterable[int]) -> None:
    """Reap zombies that were re-parented to us, but not the children in `ours`, which their starters reap."""
    known = {*ours, *spared}
    for pid in table.children(os.getpid()):
        if pid not in known and table.is_zombie(pid):
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass


def has_exited(pid: int) -> bool:
    """True once the child has exited. Does not reap it, so that its PID and group can't be reused."""
    if hasattr(os, "waitid"):
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    return table.is_zombie(pid)  # macOS before Python 3.13
