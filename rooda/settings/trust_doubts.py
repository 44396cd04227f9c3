"""Keeps doubts: facts that changed while a loop ran, so that an agent may have changed them.

A run saves a note with the facts at its start, next to the record. At its end, or at the next start if it was killed,
the note becomes a file of doubts, or is deleted. Each file names the folders of its run with their inodes, so that it
stays valid if a folder is moved, or if a repository is created around the folder or deleted.
"""

import os
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from rooda.base import clock, dirs, files
from rooda.base.facts import Fact
from rooda.base.workspace_files import upward
from rooda.git import traces
from rooda.processes import table as processes
from rooda.settings import trust_watch
from rooda.settings.trust_facts import is_below
from rooda.settings.trust_record import RECORD, facts, identities, read, rows, table
from rooda.settings.trust_search import Identity, Seen, name_of
from rooda.settings.trust_watch import RUN

NEVER = float("inf")


class Note(NamedTuple):
    """Facts at the start of a run (`is_open`) or changes found at its end; moved folders have their new paths."""

    path: str
    data: dict[str, Any]
    workspace: str
    before: list[Fact]
    appeared: set[Identity]
    vanished: list[Fact]

    @property
    def is_open(self) -> bool:
        return "facts" in self.data

    @property
    def began(self) -> float:
        found = self.data.get("began")
        return float(found) if isinstance(found, int | float) else 0.0


class Doubts:
    """Changes noted by all runs in a folder, even before the folder was moved or its repository was replaced."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._folders = [os.path.realpath(folder) for folder in upward(seen.workspace or seen.top)]
        self.notes = [*_notes(seen, self._folders)]

    def changes(self) -> tuple[set[Identity], list[Fact]]:
        """Return the facts that appeared, and the restricting facts that vanished, while a loop ran or is running."""
        appeared, vanished = set[Identity](), list[Fact]()
        for note in self.notes:
            if note.is_open and note.workspace == self._folders[0]:
                new, gone = _difference(note, self._seen)
                appeared, vanished = appeared | new, [*vanished, *gone]
            appeared |= note.appeared
            vanished += note.vanished
        for other in traces.work_trees(self._seen.top):
            for path in _files(trust_watch.record_folder(other)):
                appeared |= identities(read(path).get("appeared"))
        return appeared, vanished

    def times(self) -> list[tuple[float, float]]:
        """Return the beginning and end of each loop that ran here; the end is NEVER if it is still running."""
        still = [(note.began, NEVER) for note in self.notes if note.is_open and "ended" not in note.data]
        others = traces.work_trees(self._seen.top)
        return [*still, *trust_watch.times({*self._folders, self._seen.top, *others})]

    def consolidate(self, known: Collection[Identity]) -> None:
        """Turn the notes of killed runs into doubts, and delete doubts about changes that have been reverted."""
        for note in self.notes:
            if not note.is_open:
                self._keep(note, *self._left(note))
            elif not processes.is_alive(table(note.data.get("process"))):
                if "ended" not in note.data:
                    ended = clock.now()
                    trust_watch.add_time(self._seen.top, note.data, note.began, ended)
                    trust_watch.write(*os.path.split(note.path), {**note.data, "ended": ended})
                if note.workspace == self._folders[0]:
                    self._close(note, known)
        self.notes = [*_notes(self._seen, self._folders)]

    def end(self, run: str, known: Collection[Identity]) -> None:
        """Turn the note of an ended run into doubts."""
        for note in self.notes:
            if note.is_open and os.path.basename(note.path) == f"{RUN}{run}.json":
                self._close(note, known)

    def forget(self) -> None:
        """Delete the doubts about runs that have ended."""
        for note in self.notes:
            if not note.is_open:
                trust_watch.remove(*os.path.split(note.path))
        self.notes = [note for note in self.notes if note.is_open]

    def _left(self, note: Note) -> tuple[set[Identity], list[Fact]]:
        """Return the changes that have not been reverted, and all changes in files that were not searched this time."""
        now, seen = self._seen.identities, self._seen
        appeared = {each for each in note.appeared if each in now or not seen.covers(each[0])}
        return appeared, [fact for fact in note.vanished if fact.identity not in now]

    def _close(self, note: Note, known: Collection[Identity]) -> None:
        appeared, vanished = _difference(note, self._seen)
        self._keep(note, appeared - {*known}, vanished)

    def _keep(self, note: Note, appeared: set[Identity], vanished: list[Fact]) -> None:
        folder, name = os.path.split(note.path)
        if appeared or vanished:
            changes = {"appeared": sorted(appeared), "vanished": rows(vanished)}
            trust_watch.write(folder, name, {**trust_watch.place(self._seen.top, note.workspace), **changes})
        else:
            trust_watch.remove(folder, name)


def _difference(note: Note, seen: Seen) -> tuple[set[Identity], list[Fact]]:
    """Return the facts that appeared since a run's start, and the restricting facts that vanished."""
    appeared = seen.identities - {fact.identity for fact in note.before}
    gone = (fact for fact in note.before if fact.restrains and fact.identity not in seen.identities)
    return appeared, [fact for fact in gone if seen.covers(fact.file)]


# Reading notes


def _notes(seen: Seen, folders: Sequence[str]) -> Iterator[Note]:
    """Yield the notes of runs in these folders, from the records of all repositories."""
    here, home = trust_watch.record_folder(seen.top), dirs.state("trust")
    for record in dict.fromkeys((here, *(os.path.join(home, name) for name in files.list_folder(home)))):
        for path in _files(os.path.join(record, seen.part)):
            data = read(path)
            moves = [*_moves(data, folders)]
            if moves or (record == here if "top" not in data else data["top"] == seen.top):
                yield _note(path, data, moves, seen)


def _files(folder: str) -> list[str]:
    return [os.path.join(folder, name) for name in sorted(files.list_folder(folder)) if name.startswith(RUN)]


def _moves(data: dict[str, Any], folders: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield (recorded path, current path) of each folder in a run's note that is now one of `folders`."""
    by_inode = {files.fingerprint(folder)[:2]: folder for folder in folders}
    for path, *inode in trust_watch.places_of(data):
        if found := path if path in folders else by_inode.get((*inode,)):
            yield path, found


def _moved(path: str, moves: Sequence[tuple[str, str]]) -> str:
    return next((new + path.removeprefix(old) for old, new in moves if is_below(path, old)), path)


def _note(path: str, data: dict[str, Any], moves: Sequence[tuple[str, str]], seen: Seen) -> Note:
    """Return a note in which the facts have the current names of their files."""
    top = str(data.get("top", seen.top))

    def named(file: str) -> str:
        return name_of(_moved(os.path.join(top, file), moves), seen.top)

    before, vanished = (
        [fact._replace(file=named(fact.file)) for fact in facts(data.get(key))] for key in ("facts", "vanished")
    )
    appeared = {(named(file), name, value) for file, name, value in identities(data.get("appeared"))}
    if top != seen.top and read(os.path.join(os.path.dirname(path), RECORD)).get("revoked"):
        before, appeared = [], appeared | seen.identities
    workspace = next((place[0] for place in trust_watch.places_of(data)), "")
    return Note(path, data, _moved(workspace, moves), before, appeared, vanished)
