"""Caches the tasks of a repository in memory, and reads a task again only if the log has new lines about it."""

from rooda.base import files, json
from rooda.errors import StateDamaged, UsageProblem
from rooda.tasks.model import Task
from rooda.tasks.store import Store


class Memory:
    """The tasks as the scheduler sees them. A task whose file can't be read is left out, and reported once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tasks: dict[int, Task] = {}
        self._read = -1  # number of bytes of the log that were read; -1: nothing was read
        self.problems: list[str] = []  # problems that are not reported yet
        self._reported: set[str] = set()

    def tasks(self, whole: bool = False) -> dict[int, Task]:
        """Return all tasks by id. `whole`: read all files, because a kill may have kept a change out of the log."""
        size = files.size(self._store.place.log)
        if whole or self._read < 0 or size < self._read:
            self._read = size
            self._tasks = {}
            self._take(self._store.ids())
        elif size > self._read:
            self._take(self._changed(size))
        return self._tasks

    def keep(self, task: Task) -> None:
        """Cache a task that this process has just written."""
        self._tasks[task.id] = task

    def _changed(self, size: int) -> list[int]:
        with files.reading(self._store.place.log) as file:
            file.seek(self._read)
            data = file.read(size - self._read)
        end = data.rfind(b"\n") + 1  # the rest of the line is being written
        self._read += end
        found: dict[int, None] = {}
        for row in data[:end].splitlines():
            try:
                found[int(json.parse_object(row)["id"])] = None
            except (ValueError, KeyError, TypeError):
                continue
        return [*found]

    def _take(self, numbers: list[int]) -> None:
        for number in numbers:
            self._tasks.pop(number, None)
            try:
                self._tasks[number] = self._store.get(number)
            except UsageProblem:
                continue  # the file was deleted
            except StateDamaged as problem:
                if problem.what not in self._reported:
                    self._reported.add(problem.what)
                    self.problems.append(problem.what)
