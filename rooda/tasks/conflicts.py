"""Foresees which tasks' branches would conflict, by `git merge-tree`, and remembers it by their two commits."""

import os
from collections.abc import Callable, Collection, Iterable, Mapping

from rooda.base import files, json
from rooda.run.events import encoded
from rooda.tasks import model
from rooda.tasks.model import Task
from rooda.tasks.store import Store

OLDEST = (2, 38)  # git that can merge without a work tree
COMPARED = (model.RUNNING, model.COMPLETED)
MOST = 5_000  # comparisons that are remembered
TOO_OLD = "Conflicts between tasks are not foreseen: git merge-tree needs git 2.38 or newer."


class Foresight:
    """Compares the branches of tasks two by two. A pair without a common path is not merged."""

    def __init__(self, store: Store, say: Callable[[str], None] = lambda text: None) -> None:
        self._repo, self._path = store.place.repo, os.path.join(store.place.folder, "conflicts.json")
        self._say = say
        self._known: dict[str, object] | None = None
        self._fresh = False
        self._paths: dict[tuple[str, str], frozenset[str]] = {}

    def of(self, tasks: Mapping[int, Task]) -> dict[int, list[int]]:
        """Return the tasks that each running or completed task conflicts with; those without a conflict are left out.

        Two tasks conflict only if they land on the same target.
        """
        compared = [task for task in tasks.values() if task.state in COMPARED and task.head]
        found: dict[int, list[int]] = {}
        for at, one in enumerate(compared):
            for other in compared[at + 1 :]:
                if self.conflict(one, other):
                    found.setdefault(one.id, []).append(other.id)
                    found.setdefault(other.id, []).append(one.id)
        self.save()
        return found

    def last(self, ready: Iterable[Task], running: Collection[Task]) -> list[Task]:
        """Return tasks in their order, but among equal priority those that conflict with a running one at the end."""
        ready = [*ready]
        others = [task for task in running if task.head]
        if not others or len(ready) < 2 or not any(task.head for task in ready):
            return ready
        late = {task.id for task in ready if task.head and any(self.conflict(task, other) for other in others)}
        self.save()
        return sorted(ready, key=lambda task: (model.PRIORITIES.index(task.priority), task.id in late))

    def conflict(self, one: Task, other: Task) -> bool:
        """True if the branches of two tasks for the same target conflict."""
        if one.target != other.target or one.head == other.head:
            return False
        if not self._touched(one) & self._touched(other):
            return False
        known, pair = self._read(), " ".join(sorted((one.head, other.head)))
        if pair not in known:
            code = self._repo.run("merge-tree", "--write-tree", "--name-only", "--no-messages", *pair.split()).code
            known[pair] = code == 1
            self._fresh = code in (0, 1)
            if code not in (0, 1):
                self._report()
        return bool(known[pair])

    def _report(self) -> None:
        """Say once that git is too old; other errors, such as a missing commit, mean no conflict."""
        version = files.to_text(self._repo.run("version").out).split()
        numbers = version[2].split(".") if len(version) > 2 else []
        if [int(number) for number in numbers[:2] if number.isdecimal()] < [*OLDEST] and TOO_OLD not in self._read():
            self._read()[TOO_OLD] = False
            self._fresh = True
            self._say(TOO_OLD)

    def _touched(self, task: Task) -> frozenset[str]:
        """Return the paths that a task's branch has changed, and their folders."""
        key = task.turnings.base, task.head
        if key not in self._paths:
            words = ("diff", "--name-only", "-z", "--no-renames", f"{task.turnings.base or task.target}...{task.head}")
            names = files.to_text(self._repo.run(*words).out).split("\0")
            self._paths[key] = frozenset(filter(None, names))
        return self._paths[key]

    def _read(self) -> dict[str, object]:
        if self._known is None:
            try:
                self._known = json.parse_object(files.read_ours(self._path))
            except (OSError, ValueError):
                self._known = {}
        return self._known

    def save(self) -> None:
        """Remember new comparisons; without a place for them they are made again."""
        if self._fresh and self._known is not None:
            self._fresh = False
            newest = dict([*self._known.items()][-MOST:])
            try:
                files.replace_unsynced(self._path, encoded(newest).encode() + b"\n")
            except OSError:
                return


def foreseen(store: Store, tasks: Mapping[int, Task], say: Callable[[str], None]) -> dict[int, list[int]]:
    """Return the tasks that each running or completed task of the board conflicts with."""
    return Foresight(store, say).of(tasks)
