"""Detects cheaply whether anything that a workspace can start has changed since it was last trusted.

A start compares the files' stats (inode, size, times) with those of the previous start, and loads the rest of the
trust code only if the stats of a file differ. A run makes the same comparison at its end.
"""

import json
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rooda import __version__
from rooda.base import clock, dirs, files
from rooda.base.workspace_files import upward
from rooda.processes import table
from rooda.settings import layers
from rooda.settings.layers import Settings

if TYPE_CHECKING:
    from rooda.settings.trust_search import Seen, Source

RUN = "run-"  # prefix of the file that a run keeps next to the record
UNCHANGED = "unchanged.json"
TIMES, RUNS = "ran.json", 500  # file with the times of the latest runs, and how many it keeps
MOST = 300  # paths; a larger workspace is searched in full at each start
COARSE = 0.01  # seconds by which file timestamps may lag behind the clock
YOUNG = 0.1  # seconds; a file that changed more recently could change again without a new timestamp


def record_folder(top: str) -> str:
    """Return the folder of the trust record for `top`; "" if there is no state folder."""
    return dirs.state("trust", files.sha256(files.to_bytes(top))[:32])


def top_of(workspace: str) -> str:
    """Return the folder that a trust record applies to: the repository's root, or else the workspace."""
    return os.path.realpath(upward(workspace)[-1])


def unchanged(settings: Settings, config: str | None) -> list[Any] | None:
    """Return the facts of the last start if nothing can have changed since, else None."""
    folder = record_folder(top_of(settings.workspace))
    if not folder or any(name.startswith(RUN) for name in files.list_folder(folder)):
        return None
    try:
        known = json.loads(files.read_ours(os.path.join(folder, UNCHANGED)))
        return known["facts"] if _is_same(known, settings, config) else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _is_same(known: dict[str, Any], settings: Settings, config: str | None) -> bool:
    return (
        known["key"] == _key(settings, config)
        and all(_names(folder) == names for folder, names in known["names"].items())
        and all([*files.fingerprint(path)] == facts for path, facts in known["files"].items())
        and all(os.path.realpath(path) == real for path, real in known["links"].items())
    )


def _key(settings: Settings, config: str | None) -> list[Any]:
    near = layers.workspace_file(settings.workspace)  # a settings file that is nearer may have been created
    return [__version__, config, settings.workspace, upward(settings.workspace), near]


def _names(folder: str) -> list[str]:
    """Return the names in a folder that may belong to an agent's own files; a new name causes a full search."""
    return sorted(name for name in files.list_folder(folder) if name[0] in ".oO")


def remember(settings: Settings, config: str | None, seen: "Seen", facts: list[Any], links: Iterable[str]) -> None:
    """Save the trusted facts, with the stats of all files that the facts may come from."""
    folders = upward(settings.workspace)
    paths = {os.path.abspath(source.path) for source in seen.sources.values()}
    paths |= {layer.path for layer in settings.layers if layer.path}
    paths |= {source.path for source in layers.find(settings.workspace, config, os.environ)}
    paths |= {inner for path in [*paths] for inner in _folders_between(path, folders)}
    paths |= {os.path.join(folder, name) for folder in folders for name in _names(folder)}
    for path in [*paths]:
        if os.path.basename(path) not in (".git", ".rooda") and os.path.isdir(path):
            paths.update(_folders_in(path, MOST - len(paths)))
    found = {path: files.fingerprint(path) for path in paths if os.path.basename(path) not in (".git", ".rooda")}
    newest = max((facts_of[-1] for facts_of in found.values() if facts_of), default=0)
    if len(found) > MOST or newest / 1e9 > clock.now() - YOUNG:
        forget(seen.top)
        return
    known = {
        "key": _key(settings, config),
        "names": {folder: _names(folder) for folder in folders},
        "files": found,
        "links": {path: os.path.realpath(path) for path in links},
        "facts": facts,
    }
    write(record_folder(seen.top), UNCHANGED, known)


def _folders_between(path: str, folders: list[str]) -> list[str]:
    """Return the folders between a file and the nearest of `folders` above it; [] if none of `folders` is above it."""
    found = []
    while (path := os.path.dirname(path)) not in folders and path != os.path.dirname(path):
        found.append(path)
    return found if path in folders else []


def _folders_in(folder: str, most: int) -> list[str]:
    found: list[str] = []
    for place, inner, _ in os.walk(folder):
        found += [os.path.join(place, name) for name in inner]
        if len(found) > most:
            break
    return found


def forget(top: str) -> None:
    """Make the next start search the whole workspace."""
    remove(record_folder(top), UNCHANGED)


def write(folder: str, name: str, data: Any) -> str:
    """Write a file of a trust record; return an error if the state folder can't be written, else ""."""
    if not folder:
        return "no home folder"
    try:
        files.make_folder(folder)
        files.replace_unsynced(os.path.join(folder, name), json.dumps(data).encode() + b"\n", 0o600)
    except OSError as problem:
        return f"{problem.filename or folder}: {problem.strerror or problem}"
    return ""


def remove(folder: str, name: str) -> None:
    """Delete a file of a trust record, if there is one."""
    with suppress(OSError):
        files.remove(os.path.join(folder, name))


# Runs


def place(top: str, workspace: str) -> dict[str, Any]:
    """Return the folders of a run with their inodes, which stay the same if a folder is moved."""
    folders = (os.path.realpath(workspace), top)
    return {"top": top, "places": [[folder, *files.fingerprint(folder)[:2]] for folder in folders]}


def places_of(note: dict[str, Any]) -> list[list[Any]]:
    """Return the workspace and the repository of a run: path, device and inode; [] if the note is damaged."""
    return [each for each in _rows(note.get("places")) if len(each) == 3 and isinstance(each[0], str)]


def _rows(found: Any) -> list[list[Any]]:
    return [each for each in found if isinstance(each, list)] if isinstance(found, list) else []


def save_note(run: str, where: dict[str, Any], began: float, facts: list[Any], part: str = "") -> None:
    """Save the facts at the start of a run."""
    note = {**where, "process": table.identity_of(os.getpid()), "began": began, "facts": facts}
    write(os.path.join(record_folder(where["top"]), part), f"{RUN}{run}.json", note)


def times(folders: Collection[str]) -> Iterator[tuple[float, float]]:
    """Yield the start and end of each recent loop in these folders, even if a folder had another path then."""
    own, inodes = {*map(record_folder, folders)}, [[*files.fingerprint(folder)[:2]] for folder in folders]
    home = dirs.state("trust")
    for record in [os.path.join(home, name) for name in files.list_folder(home)] if home else ():
        for began, ended, *inode in _rows_of_times(record):
            if record in own or inode in inodes:
                yield float(began), float(ended)


def _rows_of_times(record: str) -> list[list[Any]]:
    try:
        found = json.loads(files.read_ours(os.path.join(record, TIMES)))
    except (OSError, ValueError, RecursionError):
        return []
    return [row for row in _rows(found) if len(row) == 4 and all(isinstance(each, int | float) for each in row)]


def add_time(top: str, note: dict[str, Any], began: float, ended: float) -> None:
    """Record when a loop ran in a repository; `note` has the inode of the repository's folder."""
    inode = next((each[1:] for each in places_of(note)[1:]), [0, 0])
    row = [min(began, ended), max(began, ended), *inode]
    write(record_folder(top), TIMES, [*_rows_of_times(record_folder(top)), row][-RUNS:])


class Watch:
    """Saves the facts at the start of a run and compares them with those at its end."""

    def __init__(self, settings: Settings, config: str | None) -> None:
        self._settings, self._config = settings, config
        self.facts: list[Any] | None = None  # facts of the last start, if nothing has changed since
        # Changes from now on count as made during the run: processes of an earlier, killed run may still be alive.
        self._began, self._uptime = clock.now() - COARSE, clock.uptime()
        self._top = ""  # the folder of the record that the run began with
        self._place: dict[str, Any] = {}
        self.files: list[Source] = []  # more files with commands that the loop runs

    def begin(self, run: str, workspace: str) -> None:
        self._top = top_of(workspace)
        self._place = place(self._top, workspace)
        if self.facts is not None and workspace == self._settings.workspace and not self.files:
            save_note(run, self._place, self._began, self.facts)
            return
        from rooda.settings.trust_record import rows

        for seen in self._seen(workspace):
            save_note(run, self._place, self._began, rows(seen.facts), seen.part)

    def end(self, run: str, workspace: str) -> None:
        if place(self._top, workspace)["places"][0] != self._place["places"][0]:
            return  # the workspace was moved or deleted: the note stays, and the next start compares
        set_back = max(0.0, clock.uptime() - self._uptime - (clock.now() - self._began))
        add_time(self._top, self._place, self._began - set_back, clock.now() + set_back)
        if self.facts is not None and self._ended_unchanged(run, workspace):
            return
        from rooda.settings.trust_doubts import Doubts
        from rooda.settings.trust_record import Record

        for seen in self._seen(workspace):  # if this fails, the note stays and the next start compares
            Doubts(seen).end(run, Record(seen.top, seen.part).known)

    def _ended_unchanged(self, run: str, workspace: str) -> bool:
        """True if no file has changed since the start; the run's note is then deleted."""
        folder = record_folder(top_of(workspace))
        try:
            known = json.loads(files.read_ours(os.path.join(folder, UNCHANGED)))
            if (
                self.files
                or top_of(workspace) != self._top
                or known["facts"] != self.facts
                or not _is_same(known, self._settings, self._config)
            ):
                return False
            files.remove(os.path.join(folder, f"{RUN}{run}.json"))
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return False
        return workspace == self._settings.workspace

    def _seen(self, workspace: str) -> "list[Seen]":
        from rooda.errors import RoodaError
        from rooda.settings import trust_search

        try:
            found = layers.load(workspace, self._config, None, self._settings.own_keys)
            return [trust_search.look(found), *([trust_search.of_files(found, self.files)] if self.files else [])]
        except (RoodaError, OSError):
            return []
