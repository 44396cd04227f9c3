"""How often each file of the workspace is written during an agent call: inotify on Linux, else looking now and then.

An agent whose output names its edits is believed before either (`world/goal_reply.py`).
"""

import os
import stat
import struct
from collections.abc import Iterator, Mapping
from typing import Protocol

from rooda.world.process import Tick

SKIPPED = {
    *(".git", ".loop", ".rooda", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv"),
    *(".tox", ".mypy_cache", ".ruff_cache", ".pytest_cache"),
}
LOCKS = {  # those whose names do not say it at their end
    *("package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "packages.lock.json", "go.sum", "go.work.sum"),
    *("Package.resolved", ".terraform.lock.hcl"),
}
LOOK = 0.25  # seconds between two looks
MOST = 50_000  # folders or files watched
READS = 100  # of one look: more than the kernel keeps for us
_MODIFY, _CLOSE_WRITE, _MOVED_TO, _CREATE, _IS_FOLDER = 0x2, 0x8, 0x80, 0x100, 0x40000000
_FLAGS = 0o2000000 | os.O_NONBLOCK  # IN_CLOEXEC


class Watch(Protocol):
    """Counts writes from `begin` on."""

    source: str

    def begin(self) -> None: ...

    def look(self) -> None:
        """Take what has happened so far."""

    def counts(self) -> dict[str, int]:
        """How often each path below the workspace was written."""

    def close(self) -> None: ...


def watch(workspace: str) -> Watch:
    """The best there is here."""
    try:
        return Inotify(workspace)
    except (ImportError, OSError, AttributeError, ValueError):
        return Polling(workspace)


def ticking(watch: Watch, other: Tick | None) -> Tick:
    """Both what the screen wants and a look at the files."""

    def work() -> None:
        watch.look()
        if other:
            other.work()

    return Tick(min(LOOK, other.every) if other else LOOK, work)


def folders(top: str) -> Iterator[str]:
    """The folder and those below it, without those that nobody writes by hand."""
    for place, _ in _walk(top):
        yield place


def written_after(top: str, then: float) -> Iterator[str]:
    """The files in these folders that are newer. What vanishes while it is looked at is passed over."""
    for place, names in _walk(top):
        for path in (os.path.join(place, name) for name in names):
            try:
                facts = os.stat(path)
            except OSError:
                continue
            if stat.S_ISREG(facts.st_mode) and facts.st_mtime > then:
                yield path


def _walk(top: str) -> Iterator[tuple[str, list[str]]]:
    for place, names, others in os.walk(top):
        names[:] = [name for name in names if name not in SKIPPED]
        yield place, others


def counted(path: str) -> bool:
    """Lock files and the temporary files of editors are nobody's work."""
    known = os.path.basename(path) in LOCKS
    return not known and not path.endswith((".lock", ".lockb", ".lockfile", ".swp", ".tmp", "~"))


def below(workspace: str, counts: Mapping[str, int]) -> dict[str, int]:
    """What an agent says it wrote, by the paths that we use: a file has one name, and is below the workspace or not."""
    top = os.path.realpath(workspace)
    found: dict[str, int] = {}
    for path, count in counts.items():
        try:
            whole = os.path.realpath(os.path.join(top, path))
        except ValueError:  # what no file can be called
            continue
        near = os.path.relpath(whole, top)
        inside = near.split(os.sep)[0] != os.pardir
        if not inside or not SKIPPED.intersection(near.split(os.sep)):
            name = near if inside else whole
            found[name] = found.get(name, 0) + count
    return found


class Inotify:
    """Exact per write; an editor that saves by renaming counts once."""

    source = "inotify"

    def __init__(self, workspace: str) -> None:
        import ctypes

        self._workspace = workspace
        self._library = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._library.inotify_init1(_FLAGS)
        if self._descriptor < 0:
            raise OSError("inotify is not available")
        self._folders: dict[int, str] = {}
        self._counts: dict[str, int] = {}
        try:
            for place in folders(workspace):
                self._add(place)
        except OSError:
            self.close()
            raise

    def _add(self, folder: str) -> None:
        wanted = _CLOSE_WRITE | _MOVED_TO | _CREATE
        wanted |= _MODIFY  # not counted; the kernel drops an event that is like the unread one before it
        number = self._library.inotify_add_watch(self._descriptor, os.fsencode(folder), wanted)
        if number >= 0:
            self._folders[number] = folder
        elif folder == self._workspace or len(self._folders) >= MOST or not os.path.isdir(folder):
            pass
        else:
            raise OSError("the kernel watches no more folders for us")

    def begin(self) -> None:
        self.look()
        self._counts = {}

    def look(self) -> None:
        """What comes while we look is for the next look: who writes faster than we read must not hold up the loop."""
        made: dict[str, None] = {}
        for _ in range(READS):
            data, place = self._read(), 0
            while place < len(data):
                number, mask, _, length = struct.unpack_from("iIII", data, place)
                name = data[place + 16 : place + 16 + length].rstrip(b"\0")
                place += 16 + length
                self._take(number, mask, os.fsdecode(name), made)
            if not data:
                break
        for path in made:
            self._enter(path)

    def _read(self) -> bytes:
        try:
            return os.read(self._descriptor, 65_536)
        except OSError:
            return b""

    def _take(self, number: int, mask: int, name: str, made: dict[str, None]) -> None:
        folder = self._folders.get(number)
        if folder is None or not name:
            return
        path = os.path.join(folder, name)
        if mask & _IS_FOLDER:
            if mask & (_CREATE | _MOVED_TO) and name not in SKIPPED:
                made[path] = None
        elif mask & (_CLOSE_WRITE | _MOVED_TO) and counted(path):
            self._count(path)

    def _enter(self, path: str) -> None:
        """A new folder: what is in it already was written before we could look."""
        try:
            for place in folders(path):
                self._add(place)
        except OSError:
            return
        for place in folders(path):
            try:
                entries = [entry for entry in os.scandir(place) if entry.is_file(follow_symlinks=False)]
            except OSError:  # agents make folders and remove them again
                continue
            for entry in entries:
                if counted(entry.path):
                    self._count(entry.path)

    def _count(self, path: str) -> None:
        shown = os.path.relpath(path, self._workspace)
        self._counts[shown] = self._counts.get(shown, 0) + 1

    def counts(self) -> dict[str, int]:
        self.look()
        return dict(self._counts)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class Polling:
    """A lower bound: two writes between two looks count once."""

    source = "polling"

    def __init__(self, workspace: str) -> None:
        self._workspace = workspace
        self._seen: dict[str, tuple[int, int]] = {}
        self._counts: dict[str, int] = {}

    def begin(self) -> None:
        self._seen = dict(self._marks())
        self._counts = {}

    def look(self) -> None:
        for path, mark in self._marks():
            if self._seen.get(path) != mark:
                self._seen[path] = mark
                shown = os.path.relpath(path, self._workspace)
                self._counts[shown] = self._counts.get(shown, 0) + 1

    def _marks(self) -> Iterator[tuple[str, tuple[int, int]]]:
        left = MOST
        for place in folders(self._workspace):
            try:
                entries = [entry for entry in os.scandir(place) if entry.is_file(follow_symlinks=False)]
                for entry in entries:
                    if counted(entry.path):
                        facts = entry.stat(follow_symlinks=False)
                        yield entry.path, (facts.st_size, facts.st_mtime_ns)
            except OSError:
                continue
            left -= len(entries)
            if left <= 0:
                return

    def counts(self) -> dict[str, int]:
        self.look()
        return dict(self._counts)

    def close(self) -> None:
        """Nothing is open."""
