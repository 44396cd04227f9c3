"""Predicts with `git merge-tree` which tasks' branches conflict, and caches the answer for each pair of commits."""

import os
from collections.abc import Callable, Collection, Iterable, Mapping

from rooda.base import files, json
from rooda.run.events import encoded
from rooda.tasks import model
from rooda.tasks.model import Task
from rooda.tasks.store import Store

OLDEST = (2, 38)  # first version of git that can merge without a work tree
COMPARED = (model.RUNNING, model.COMPLETED)
MOST = 5_000  # comparisons kept in the cache
TOO_OLD = "rooda can't predict conflicts between tasks: that needs git 2.38 or newer."


class Foresight:
    """Predicts conflicts between pairs of tasks' branches. Skips the trial merge if a pair changed no common path."""

    def __init__(self, store: Store, say: Callable[[str], None] = lambda text: None) -> None:
        self._repo, self._path = store.place.repo, os.path.join(store.place.folder, "conflicts.json")
        self._say = say
        self._known: dict[str, object] | None = None
        self._fresh = False
        self._paths: dict[tuple[str, str], frozenset[str]] = {}

    def of(self, tasks: Mapping[int, Task]) -> dict[int, list[int]]:
        """Map running and completed tasks to the tasks with which they conflict. Tasks without a conflict are left out.

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
        """Sort ready tasks: within a priority, those that conflict with a running task come last."""
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
        """Report once that git is too old. Any other error, such as a missing commit, counts as no conflict."""
        version = files.to_text(self._repo.run("version").out).split()
        numbers = version[2].split(".") if len(version) > 2 else []
        if [int(number) for number in numbers[:2] if number.isdecimal()] < [*OLDEST] and TOO_OLD not in self._read():
            self._read()[TOO_OLD] = False
            self._fresh = True
            self._say(TOO_OLD)

    def _touched(self, task: Task) -> frozenset[str]:
        """Return the paths that a task's branch has changed."""
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
        """Write new comparisons to the cache. If that fails, they are repeated next time."""
        if self._fresh and self._known is not None:
            self._fresh = False
            newest = dict([*self._known.items()][-MOST:])
            try:
                files.replace_unsynced(self._path, encoded(newest).encode("utf-8", "backslashreplace") + b"\n")
            except OSError:
                return


def foreseen(store: Store, tasks: Mapping[int, Task], say: Callable[[str], None]) -> dict[int, list[int]]:
    """Map each running or completed task to the tasks with which it conflicts."""
    return Foresight(store, say).of(tasks)
