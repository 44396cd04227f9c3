"""What the system says of live processes: private memory, wake-ups, processor time. Linux only."""

import os
from typing import NamedTuple


class Use(NamedTuple):
    """Summed over some processes."""

    private: int  # bytes that would be free if they ended
    wakeups: int  # voluntary context switches so far
    cpu: float  # seconds so far


def readable() -> bool:
    return os.path.exists("/proc/self/smaps_rollup")


def family(pid: int) -> list[int]:
    """The process and its descendants in its own session: agents and gates have sessions of their own."""
    children: dict[int, list[int]] = {}
    session = _stat(pid)[3]
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (fields := _stat(int(entry))) and fields[3] == session:
            children.setdefault(int(fields[1]), []).append(int(entry))
    found = [pid]
    for member in found:
        found += children.get(member, [])
    return found


def whole(pid: int, without: set[int]) -> list[int]:
    """The process and all its descendants, but for some and theirs."""
    found = [pid]
    for member in found:
        for task in _listed(f"/proc/{member}/task"):
            try:
                with open(f"/proc/{member}/task/{task}/children", encoding="ascii") as file:
                    found += [int(child) for child in file.read().split() if int(child) not in without]
            except OSError:
                continue
    return found


def marked(mark: str) -> list[int]:
    """Live processes, zombies left out, with NAME=VALUE in their environment."""
    wanted, found = mark.encode(), []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                if wanted in file.read().split(b"\0"):
                    found.append(int(entry))
        except OSError:
            continue
    return found


def use(pids: list[int]) -> Use:
    return Use(sum(map(private, pids)), sum(map(_wakeups, pids)), sum(map(_cpu, pids)))


def private(pid: int) -> int:
    """Unique set size, bytes."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Private_"))


def _wakeups(pid: int) -> int:
    """Those of all its threads."""
    count = 0
    for task in _listed(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/status", encoding="utf-8", errors="replace") as file:
            count += next(int(line.split()[1]) for line in file if line.startswith("voluntary_ctxt_switches"))
    return count


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _cpu(pid: int) -> float:
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat from the state on; empty when the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def parent(pid: int) -> int:
    """0 when the process is gone."""
    fields = _stat(pid)
    return int(fields[1]) if fields else 0
