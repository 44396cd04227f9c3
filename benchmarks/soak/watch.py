"""What a soak looks at while it runs: the loops' processes, their memory and open files; and whether that is flat."""

import os
import statistics
from typing import Any, NamedTuple

from benchmarks import processes

PAGE = "page"  # the role of the page
SETTLED = 3.0  # seconds after which a process has done what it does at its start
GAIN = {"memory": 2.0, "files": 1.0}  # what a process may have more at the end of a soak: MB, open files


class Seen(NamedTuple):
    """One look at one process."""

    at: float  # seconds since the soak began
    role: str  # loop kind, and guardian or loop
    pid: int
    age: float
    memory: float  # MB that are its own
    files: int


class Watch:
    """The processes of the loops, told from all others by what stands in their environment."""

    def __init__(self, root: str) -> None:
        self.seen: list[Seen] = []
        self._root = root.encode()
        self._born: dict[int, float] = {}

    def living(self, folder: str = "") -> dict[int, str]:
        """All live processes of the soak, or of one workspace, with their command lines."""
        mark, found = b"SOAK=" + (folder.encode() or self._root), {}
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            marks = [word for word in _words(pid, "environ") if word.startswith(mark)]
            if marks and (command := _words(pid, "cmdline")):
                found[pid] = os.fsdecode(b" ".join(command))
        return found

    def state(self, pid: int) -> str:
        """What there is to say of a process that should not be there."""
        marks = [word.decode() for word in _words(pid, "environ") if word.startswith((b"ROODA_", b"SOAK"))]
        return f"parent {processes.parent(pid)}, {' '.join(marks)}"

    def loops(self, folder: str) -> list[int]:
        """The guardian and its loop; first the guardian. Detached, it has a parent that is not rooda too."""
        ours = {pid for pid, command in self.living(folder).items() if " -m rooda " in f"{command} "}
        parents = {pid: processes.parent(pid) for pid in ours}
        return sorted(ours, key=lambda pid: (parents[pid] in ours, pid))

    def look(self, kind: str, folder: str, now: float) -> None:
        for pid, role in zip(self.loops(folder), ("guardian", "loop"), strict=False):
            self.note(f"{kind} {role}", pid, now)

    def note(self, role: str, pid: int, now: float) -> None:
        """Note memory and open files of a process, unless it has just ended."""
        age = now - self._born.setdefault(pid, now)
        try:
            files = len(os.listdir(f"/proc/{pid}/fd"))
            self.seen.append(Seen(now, role, pid, age, processes.private(pid) / 1e6, files))
        except OSError:
            return

    def flat(self) -> dict[str, Any]:
        """Memory and open files by the soak's clock and by a process's age, without the page, which shows ever more."""
        settled = [each for each in self.seen if each.age >= SETTLED and each.role != PAGE]
        if not settled:
            return {"looks": 0}
        found: dict[str, Any] = {"looks": len(settled), "processes": len({each.pid for each in settled})}
        for role in sorted({each.role for each in settled}):
            found["most"] = {**found.get("most", {}), role: max(e.memory for e in settled if e.role == role)}
        span = max(each.at for each in settled)
        for what, limit in GAIN.items():
            by_role = _slope([(each.at, float(getattr(each, what)), each.role) for each in settled])
            by_age = _slope([(each.age, float(getattr(each, what)), str(each.pid)) for each in settled])
            gained = round(by_role[0] * span, 3)
            found[what] = {
                "median": round(statistics.median(getattr(each, what) for each in settled), 2),
                "most": round(max(getattr(each, what) for each in settled), 2),
                "per_hour": round(by_role[0] * 3600, 3),
                "per_hour_error": round(by_role[1] * 3600, 3),
                "per_hour_of_a_process": round(by_age[0] * 3600, 3),
                "gained": gained,
                "flat": gained <= limit,
            }
        return found

    def page(self) -> dict[str, float]:
        """Memory of the page at its most, and how much a process gains with its age."""
        settled = [each for each in self.seen if each.age >= SETTLED and each.role == PAGE]
        if not settled:
            return {}
        gain = _slope([(each.age, each.memory, str(each.pid)) for each in settled])[0]
        return {"most": round(max(each.memory for each in settled), 2), "per_hour_of_a_process": round(gain * 3600, 3)}

    def course(self, buckets: int = 30) -> list[dict[str, float]]:
        """The medians over the loops' processes, their guardians left out, bucket by bucket, to draw."""
        settled = [each for each in self.seen if each.age >= SETTLED and each.role.endswith("loop")]
        end = max((each.at for each in settled), default=0.0) + 1e-9
        rows = []
        for bucket in range(buckets):
            part = [each for each in settled if bucket <= each.at / end * buckets < bucket + 1]
            if part:
                middle = {what: round(statistics.median(getattr(each, what) for each in part), 3) for what in GAIN}
                rows.append({"minutes": round((bucket + 0.5) * end / buckets / 60, 2), **middle})
        return rows


def _words(pid: int, name: str) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read().split(b"\0")[:-1]
    except OSError:
        return []


def _slope(points: list[tuple[float, float, str]]) -> tuple[float, float]:
    """Least squares within groups: how much y grows with x, and the standard error of that."""
    groups: dict[str, list[tuple[float, float]]] = {}
    for x, y, group in points:
        groups.setdefault(group, []).append((x, y))
    pairs = []
    for members in groups.values():
        middle_x, middle_y = (statistics.fmean(values) for values in zip(*members, strict=True))
        pairs += [(x - middle_x, y - middle_y) for x, y in members]
    spread = sum(x * x for x, _ in pairs)
    if not spread:
        return 0.0, 0.0
    slope = sum(x * y for x, y in pairs) / spread
    left = sum((y - slope * x) ** 2 for x, y in pairs)
    free = max(1, len(pairs) - len(groups) - 1)
    return slope, (left / free / spread) ** 0.5
