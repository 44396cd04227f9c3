"""Watches the workspace's files during a goal: counts edits, and detects changes to the files that verify the work."""

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence

from rooda.base import clock, files
from rooda.base.json import loads
from rooda.loops.goal.world import Fingerprint
from rooda.processes.supervise import Periodic

SKIPPED = {
    *(".git", ".loop", ".rooda", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv"),
    *(".tox", ".mypy_cache", ".ruff_cache", ".pytest_cache"),
}
LOCKS = {  # lock files without a known suffix
    *("package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "packages.lock.json", "go.sum", "go.work.sum"),
    *("Package.resolved", ".terraform.lock.hcl"),
}
LOOK = 0.25  # seconds between two scans
REST = 10  # wait this many times as long as the last scan took, to keep scans of large workspaces cheap
MOST = 50_000  # most files watched


def with_edit_watch(watch: "Watch", other: Periodic | None) -> Periodic:
    """Combine the periodic file scan with `other`, the screen's periodic work, if any."""

    def work() -> None:
        watch.look()
        if other:
            other.work()

    return Periodic(min(LOOK, other.every) if other else LOOK, work)


def folders(top: str) -> Iterator[str]:
    """Yield the folder `top` and all folders below it, except tool folders such as .git and node_modules."""
    for place, _ in _walk(top):
        yield place


def written_after(top: str, then: float) -> Iterator[str]:
    """Yield the files below `top` that were written after the time `then`."""
    for place, names in _walk(top):
        for path in (os.path.join(place, name) for name in names):
            try:
                facts = os.stat(path)
            except OSError:
                continue
            if stat.S_ISREG(facts.st_mode) and facts.st_mtime > then:
                yield path


def is_counted(path: str) -> bool:
    """True if edits of the file count: not a lock file or an editor's temporary file."""
    known = os.path.basename(path) in LOCKS
    return not known and not path.endswith((".lock", ".lockb", ".lockfile", ".swp", ".tmp", "~"))


def relative_counts(workspace: str, counts: Mapping[str, int]) -> dict[str, int]:
    """Return the agent's reported edit counts, keyed by paths relative to the workspace."""
    top = os.path.realpath(workspace)
    found: dict[str, int] = {}
    for path, count in counts.items():
        try:
            whole = os.path.realpath(os.path.join(top, path))
        except ValueError:  # an invalid path
            continue
        near = os.path.relpath(whole, top)
        inside = near.split(os.sep)[0] != os.pardir
        if not inside or not SKIPPED.intersection(near.split(os.sep)):
            name = near if inside else whole
            found[name] = found.get(name, 0) + count
    return found


class Watch:
    """Counts file writes since `begin` by size and mtime; several writes between two scans count once."""

    def __init__(self, workspace: str) -> None:
        self._workspace = workspace
        self._rested = 0.0
        self._seen: dict[str, tuple[int, int]] = {}
        self._counts: dict[str, int] = {}

    def begin(self) -> None:
        self._seen = dict(self._marks())
        self._counts = {}

    def look(self) -> None:
        if clock.monotonic() >= self._rested:
            self._look()

    def _look(self) -> None:
        began = clock.monotonic()
        for path, mark in self._marks():
            if self._seen.get(path) != mark:
                self._seen[path] = mark
                shown = os.path.relpath(path, self._workspace)
                self._counts[shown] = self._counts.get(shown, 0) + 1
        now = clock.monotonic()
        self._rested = now + REST * (now - began)

    def _marks(self) -> Iterator[tuple[str, tuple[int, int]]]:
        left = MOST
        for place in folders(self._workspace):
            try:
                entries = [entry for entry in os.scandir(place) if entry.is_file(follow_symlinks=False)]
                for entry in entries:
                    if is_counted(entry.path):
                        facts = entry.stat(follow_symlinks=False)
                        yield entry.path, (facts.st_size, facts.st_mtime_ns)
            except OSError:
                continue
            left -= len(entries)
            if left <= 0:
                return

    def counts(self) -> dict[str, int]:
        """Scan once more and return the number of writes per path, relative to the workspace."""
        self._look()
        return dict(self._counts)


# The files that verify the work.
MOST_HASHED, LARGEST = 5000, 4_194_304  # files hashed; bytes of a file that is hashed
_CHECKING = re.compile(
    r"(?:^|/)(?:tests?|specs?|__tests__|checks)/.|(?:^|/)(?:tests?|check|verify|conftest)(?:[_.-][^/]*)?$"
    r"|(?:^|/)[^/]*[_.-](?:tests?|specs?)\.[^/]+$|(?:^|/)[^/]*[a-z0-9]Tests?\.[a-z]+$",
)
_RECIPES = {  # files that define a command's targets or scripts, in the command's search order
    **dict.fromkeys(("make", "gmake"), ("GNUmakefile", "makefile", "Makefile")),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), ("package.json",)),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "rake": ("Rakefile", "rakefile"),
    "tox": ("tox.ini",),
    "nox": ("noxfile.py",),
}
_PART = re.compile(r"&&|\|\||[;&|()\n]")


def fingerprint_files(workspace: str, commands: Sequence[str]) -> tuple[Fingerprint, ...]:
    """Hash the test files and the files that define these commands."""
    found = []
    defining = (path for command in commands for path in recipes(command))
    for path in dict.fromkeys([*defining, *_candidates(workspace)]):
        if sha := _hash(os.path.join(workspace, path)):
            found.append(Fingerprint(path, sha))
        if len(found) >= MOST_HASHED:
            break
    return tuple(sorted(found))


def changed(workspace: str, before: Sequence[Fingerprint]) -> tuple[str, ...]:
    """Return the paths of the fingerprinted files that were changed or deleted."""
    return tuple(each.path for each in before if _hash(os.path.join(workspace, each.path)) != each.sha256)


def verifies(path: str) -> bool:
    """True if the path looks like a test or check."""
    return bool(_CHECKING.search(path))


def recipes(command: str) -> tuple[str, ...]:
    """Return the paths of files, existing or not, that define a command such as `make check` or `npm test`."""
    found: list[str] = []
    folder = ""
    for words in map(str.split, _PART.split(command)):
        if words[:1] == ["cd"] and len(words) == 2:
            folder = os.path.join(folder, words[1].strip("\"'"))
        name = next((os.path.basename(word) for word in words if os.path.basename(word) in _RECIPES), "")
        if name:
            inside = os.path.join(folder, _option(words, "-C"))
            chosen = _option(words, "-f", "--file=", "--makefile=")
            found += [os.path.join(inside, each) for each in ([chosen] if chosen else _RECIPES[name])]
    return tuple(dict.fromkeys(map(os.path.normpath, found)))


def _walk(top: str) -> Iterator[tuple[str, list[str]]]:
    for place, names, others in os.walk(top):
        names[:] = [name for name in names if name not in SKIPPED]
        yield place, others


def _candidates(workspace: str) -> Iterator[str]:
    for place in folders(workspace):
        try:
            names = [entry.name for entry in os.scandir(place) if entry.is_file(follow_symlinks=False)]
        except OSError:
            continue
        for name in names:
            path = os.path.relpath(os.path.join(place, name), workspace)
            if verifies(path):
                yield path


def _scripts(data: bytes) -> bytes:
    """Return only the scripts of package.json, because the rest changes with every dependency."""
    try:
        found = loads(data)
    except ValueError:
        return data
    return json.dumps(found.get("scripts"), sort_keys=True).encode() if isinstance(found, dict) else data


def _hash(path: str) -> str:
    try:
        if os.stat(path).st_size > LARGEST:
            return f"{os.stat(path).st_size} bytes"
        data = files.read_ours(path)
        return files.sha256(_scripts(data) if os.path.basename(path) == "package.json" else data)
    except (OSError, ValueError):  # an invalid path
        return ""


def _option(words: list[str], *names: str) -> str:
    """Return the value of the first of these options, attached to its name or in the next word; "" if absent."""
    for place, word in enumerate(words):
        for name in names:
            if word.startswith(name):
                value = word.removeprefix(name) or " ".join(words[place + 1 : place + 2])
                return value.strip("\"'")
    return ""
