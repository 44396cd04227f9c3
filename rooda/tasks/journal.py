"""Reads and writes the merge queue's files: the journal of the move in progress, and results that wait for the user."""

import os
from collections.abc import Sequence
from typing import NamedTuple

from rooda.base import files, json
from rooda.errors import StateDamaged
from rooda.run.events import encoded
from rooda.tasks import model
from rooda.tasks.store import Store


class Landed(NamedTuple):
    """A task, and the commit that brings its work to the target."""

    id: int
    commit: str


class Move(NamedTuple):
    """A journal entry: the target's ref, its old and new commit, and the checkout to update with it."""

    tasks: tuple[Landed, ...]
    ref: str  # full name of the target's ref
    old: str
    new: str
    checkout: str = ""  # work tree that has the target checked out
    remote: str = ""  # the branch's name there, for a target in another repository

    def has(self, number: int) -> bool:
        return any(task.id == number for task in self.tasks)


class Waiting(NamedTuple):
    """Results for one target that wait until the checkout of the target is clean."""

    target: str
    branch: str  # full name of the branch that holds the results
    newest: str  # newest commit of that branch
    tasks: tuple[Landed, ...]


class _Waits(NamedTuple):
    waiting: tuple[Waiting, ...] = ()


def _path(store: Store) -> str:
    return os.path.join(store.place.folder, "landing.json")


def begin(store: Store, move: Move) -> bool:
    """If every task of the move is still `completed`, write the journal and return True; otherwise, return False.

    While the journal contains the move, its tasks can't be cancelled.
    """
    with store.locked():
        if any(store.get(task.id).state != model.COMPLETED for task in move.tasks):
            return False
        files.replace(_path(store), encoded(json.encode(move)).encode("utf-8", "backslashreplace") + b"\n")
    return True


def current(store: Store) -> Move | None:
    """Return the move that has begun but not ended, if any. Raises StateDamaged if the journal can't be read."""
    path = _path(store)
    try:
        return json.decode(Move, json.parse_object(files.read_ours(path)))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as problem:
        raise StateDamaged(path, str(problem)) from None


def begun_at(store: Store) -> int:
    """Return the time in nanoseconds at which the journal was written. Older git lock files are not from this move."""
    return os.lstat(_path(store)).st_mtime_ns


def end(store: Store) -> None:
    files.remove(_path(store))
    files.sync_parent(_path(store))


# Results that wait


def waiting(store: Store) -> dict[str, Waiting]:
    """Return the results that wait, keyed by target. Raises StateDamaged if their file can't be read."""
    path = os.path.join(store.place.folder, "next.json")
    try:
        found = json.decode(_Waits, json.parse_object(files.read_ours(path)))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as problem:
        raise StateDamaged(path, str(problem)) from None
    return {each.target: each for each in found.waiting}


def keep_waiting(store: Store, rows: Sequence[Waiting]) -> None:
    """Replace the stored list of results that wait."""
    path = os.path.join(store.place.folder, "next.json")
    if rows:
        files.replace(path, encoded(json.encode(_Waits(tuple(rows)))).encode("utf-8", "backslashreplace") + b"\n")
    else:
        files.remove(path)
        files.sync_parent(path)
