"""Reads the process table: descendants, processes of a run, identity. Uses /proc on Linux and psutil on macOS."""

import os
from collections.abc import Container, Iterator
from functools import cache
from typing import NamedTuple

from rooda.base import clock, files
from rooda.processes import linux

PROC = os.path.isdir("/proc/self/task")
_LISTED = os.path.exists(f"/proc/self/task/{os.getpid()}/children")  # not every kernel has this file


class ProcessInfo(NamedTuple):
    """State, parent, group and session of a process."""

    pid: int
    state: bytes
    parent: int
    group: int
    session: int


def children(pid: int) -> list[int]:
    """Return the PIDs of direct children, including zombies."""
    if not PROC:
        return _psutil_children(pid, recursive=False)
    if not _LISTED:
        return [info.pid for info in all_processes() if info.parent == pid]
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += map(int, files.read_long_proc(f"/proc/{pid}/task/{thread}/children").split())
    except OSError:  # the process has exited
        pass
    return found


def descendants(pid: int, excluded: Container[int] = ()) -> list[int]:
    """Return the PIDs of all descendants, parents first, without those in `excluded` and their descendants."""
    if not PROC:
        return [each for each in _psutil_children(pid, recursive=True) if each not in excluded]
    found: dict[int, None] = {}  # used as an ordered set
    queue = [pid]
    for member in queue:
        below = [child for child in children(member) if child not in found and child not in excluded]
        found.update(dict.fromkeys(below))
        queue += below
    return list(found)


def is_zombie(pid: int) -> bool:
    """True if no process runs under this PID: it is a zombie, or gone."""
    info = info_of(pid)
    return info is None or info.state in (b"Z", b"X")


def all_processes() -> Iterator[ProcessInfo]:
    """Yield all visible processes of the machine; none if there is no /proc."""
    for entry in os.listdir("/proc") if PROC else ():
        if entry.isdigit() and (info := info_of(int(entry))):
            yield info


def cpu_seconds(pids: list[int]) -> float:
    """Return the CPU time of these processes and their reaped children; 0 if there is no /proc."""
    ticks = 0
    for pid in pids:
        try:
            ticks += sum(map(int, files.read_proc(f"/proc/{pid}/stat").rpartition(b")")[2].split()[11:15]))
        except OSError:
            continue
    return ticks / os.sysconf("SC_CLK_TCK")


def memory(pids: list[int]) -> int:
    """Return the bytes of memory that these processes use; shared pages count for each. 0 if there is no /proc."""
    pages = 0
    for pid in pids:
        try:
            pages += int(files.read_proc(f"/proc/{pid}/statm").split()[1])
        except (OSError, IndexError):
            continue
    return pages * os.sysconf("SC_PAGE_SIZE")


def first_inside(pid: int) -> int:
    """Return the first process of the sandbox whose outer process is `pid`; before it exists, `pid`.

    It leads the group of the sandboxed program and ignores signals.
    """
    return next(iter(children(pid)), pid)


def marked_with(run: str, others: set[int]) -> Iterator[int]:
    """Yield the PIDs of processes marked with this run, in their environment or by a resource limit.

    Marks survive re-parenting. Newest first, since a process that keeps forking and exiting is soon gone. PIDs in
    `others` are skipped, and each process without the mark is added to them, which makes the next search faster.
    """
    if not PROC:
        yield from _psutil_marked(run)
        return
    name, limit = f"ROODA_RUN={run}".encode(), b" %d " % linux.mark_number(run)
    for entry in reversed(os.listdir("/proc")):
        if not entry.isdigit() or int(entry) in others:
            continue
        if limit in _read(entry, "limits") or name in _read(entry, "environ").split(b"\0"):
            yield int(entry)
        else:
            others.add(int(entry))


def last_pid() -> int:
    """Return the last PID assigned. If a search does not change it, no process was started during the search."""
    return int((_read("", "loadavg").split() or [b"0"])[-1])


def _read(pid: str, name: str) -> bytes:
    try:
        return files.read_long_proc(f"/proc/{pid}/{name}")
    except OSError:
        return b""


def own_ancestry() -> set[int]:
    """Return the PIDs of this process and its ancestors, which it must never end."""
    found, pid = {os.getpid()}, os.getppid()
    while pid > 0 and pid not in found:
        found.add(pid)
        info = info_of(pid)
        pid = info.parent if info else 0
    return found


def info_of(pid: int) -> ProcessInfo | None:
    if not PROC:
        return _psutil_info(pid)
    try:
        state, parent, group, session = files.read_proc(f"/proc/{pid}/stat").rpartition(b")")[2].split()[:4]
    except (OSError, ValueError):
        return None
    return ProcessInfo(pid, state, int(parent), int(group), int(session))


def is_stopped(pid: object) -> bool:
    """True if the process is stopped by Ctrl+Z or `rooda pause`."""
    info = info_of(pid) if isinstance(pid, int) else None
    return info is not None and info.state in (b"T", b"t")


def stopped_states(pid: object) -> set[bool]:
    """Return the set of `is_stopped` for a process and its children; for a run, these are the guardian and the loop."""
    return {is_stopped(each) for each in [pid, *children(pid)]} if isinstance(pid, int) else set()


def _psutil_info(pid: int) -> ProcessInfo | None:
    import psutil

    try:
        process = psutil.Process(pid)
        state = {psutil.STATUS_ZOMBIE: b"Z", psutil.STATUS_STOPPED: b"T"}.get(process.status(), b"S")
        return ProcessInfo(pid, state, process.ppid(), os.getpgid(pid), os.getsid(pid))
    except (psutil.Error, OSError):
        return None


def _psutil_children(pid: int, recursive: bool) -> list[int]:
    import psutil

    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=recursive)]
    except psutil.Error:
        return []


def _psutil_marked(run: str) -> list[int]:
    import psutil

    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("ROODA_RUN") == run:
                found.append(process.pid)
        except (psutil.Error, OSError):
            continue
    return found


# Identity: a PID can be reused, so it identifies a process only with its start time and boot.


def identity_of(pid: int) -> dict[str, object]:
    """Return the PID, the start time and the boot of a live process; the start time is None if unknown."""
    return {"pid": pid, "start": start_of(pid), "boot": boot()}


def start_of(pid: int) -> int | float | None:
    """Return the start time: ticks since boot on Linux, unaffected by clock changes; elsewhere psutil's time."""
    try:
        return int(files.read_proc(f"/proc/{pid}/stat").rpartition(b")")[2].split()[19])
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
    """Return the seconds since the process started, unaffected by clock changes; None if unknown."""
    start = start_of(pid)
    return None if not isinstance(start, int) else max(clock.uptime() - start / os.sysconf("SC_CLK_TCK"), 0.0)


@cache
def boot() -> str:
    """Return an identifier of the current boot."""
    try:
        return files.read_proc("/proc/sys/kernel/random/boot_id").decode("ascii").strip()
    except OSError:
        pass
    import psutil

    return str(int(psutil.boot_time()))


def is_alive(facts: dict[str, object]) -> bool:
    """True if the process that `facts` identify is still running."""
    pid = facts.get("pid")
    if not isinstance(pid, int) or pid <= 0 or facts.get("boot") != boot():
        return False
    start = start_of(pid)
    return start is not None and start == facts.get("start") and not is_zombie(pid)
