"""Ending what a process started: a stop signal, a grace, then KILL, down to the last descendant."""

import os
import signal
from collections.abc import Callable, Collection, Iterable

from rooda.base import clock
from rooda.processes import table

LAST_WAIT = 1.0  # after KILL; what is still there then can't be ended by anyone
spared: set[int] = set()  # children that are left alone with all below them: hooks that work beside a run
Pause = Callable[[float], None]  # sleeps at most so long, less if a child ends or a signal arrives


def signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        pass


def signal_all(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass


def await_exits(
    pids: Collection[int], seconds: float, pause: Pause, impatient: Callable[[], bool] = lambda: False
) -> bool:
    """True once these children are dead; False when the time is over or patience ends."""
    deadline = clock.monotonic() + seconds
    while not all(map(has_exited, pids)):
        left = deadline - clock.monotonic()
        if left <= 0 or impatient():
            return False
        pause(left)
    return True


def end_all(living: Callable[[], list[int]], grace: float, pause: Pause, impatient: Callable[[], bool]) -> bool:
    """TERM, grace, then KILL again and again until `living` finds nobody. False if somebody can't be killed."""
    found = living()
    if not found:
        return True
    signal_all(found, signal.SIGTERM)
    signal_all(found, signal.SIGCONT)  # a stopped process takes no TERM
    deadline = clock.monotonic() + grace
    while (left := deadline - clock.monotonic()) > 0 and not impatient():
        pause(min(left, 0.05))
        if not living():
            return True
    return _kill_all(living, pause)


def _kill_all(living: Callable[[], list[int]], pause: Pause) -> bool:
    """KILL until nobody is left; without a pause while new ones come. False if somebody can't be killed."""
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


def kill(pid: int) -> None:
    """With its group, if that can't be ours: nobody escapes from a group by forking while it is killed."""
    try:
        if os.getsid(pid) != os.getsid(0):
            os.killpg(os.getpgid(pid), signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def living_below(ours: Collection[int] = ()) -> list[int]:
    """Who lives below us, but for the children in `ours`. While one dies its children may go unseen: look again."""
    for _ in range(100):
        reap_orphans(ours)
        found = [pid for pid in table.descendants(os.getpid(), spared) if pid not in ours]
        alive = [pid for pid in found if not table.is_zombie(pid)]
        if alive or not found:
            return alive
    return []


def reap_while_waiting(ours: Collection[int]) -> None:
    """Bury orphans that died while `ours` lives on, so that they don't pile up. Costs one call when there are none."""
    while hasattr(os, "waitid"):
        try:
            dead = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if dead is None or dead.si_pid in ours or dead.si_pid in spared:
                return
            os.waitpid(dead.si_pid, os.WNOHANG)
        except ChildProcessError:
            return


def reap_orphans(ours: Iterable[int]) -> None:
    """Bury the dead that were re-parented to us; `ours` are buried by those who started them."""
    known = {*ours, *spared}
    for pid in table.children(os.getpid()):
        if pid not in known and table.is_zombie(pid):
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass


def has_exited(pid: int) -> bool:
    """True once the child is dead; it stays unreaped, so that its pid and group can't be recycled."""
    if hasattr(os, "waitid"):
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    return table.is_zombie(pid)  # macOS before Python 3.13
