"""Stores the list of tasks in the repository's git folder: one JSON file for each task, and an append-only log.

Each change replaces `<git folder>/rooda/tasks/<id>.json` under one lock, and adds a line to `log.jsonl`.
The repository's worktrees share the list. The FIFO `wake` wakes a sleeping scheduler.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from rooda.base import clock, files, json
from rooda.base.json import Json
from rooda.errors import StateDamaged, UsageProblem
from rooda.git.repository import GitProblem, Repo, find
from rooda.processes import lock
from rooda.run.events import encoded
from rooda.tasks import model
from rooda.tasks.model import Task

TASKS = ("tasks", "--local")  # option of commands that rooda starts: the local list, whatever [fleet] default says
PATIENCE = 30.0  # seconds to wait for the lock
ENDING = ".json"
Change = Callable[[Task], Task]
Maker = Callable[[int], Task]


class Place(NamedTuple):
    """A repository, the folder of its task list, and the paths of files in that folder."""

    repo: Repo
    folder: str

    def file(self, number: int) -> str:
        return os.path.join(self.folder, f"{number}{ENDING}")

    @property
    def log(self) -> str:
        return os.path.join(self.folder, "log.jsonl")

    @property
    def wake(self) -> str:
        return os.path.join(self.folder, "wake")

    @property
    def runner(self) -> str:
        """Path of the scheduler's lock."""
        return os.path.join(self.folder, "run.lock")

    @property
    def lander(self) -> str:
        """Path of the merge queue's lock."""
        return os.path.join(self.folder, "land.lock")


class TaskList(Protocol):
    """Interface of a list of tasks, on this machine or in the fleet."""

    @property
    def place(self) -> Place: ...

    def all(self) -> dict[int, Task]: ...
    def get(self, number: int) -> Task: ...
    def add(self, make: Maker) -> Task: ...
    def add_all(self, makers: Callable[[], Iterable[Maker]], what: str = "added") -> list[Task]: ...


def place_of(workspace: str) -> Place:
    """Return the place of the task list of a workspace's repository. Raises UsageProblem outside of a repository."""
    try:
        repo = find(workspace)
    except GitProblem as problem:
        raise UsageProblem(f"Tasks need a git repository: {problem.what}.", problem.hint) from None
    return Place(repo, os.path.join(os.path.realpath(repo.common), "rooda", "tasks"))


class Store:
    """The tasks of one repository. Several processes can use it at once, and a kill at any point leaves whole files."""

    def __init__(self, place: Place) -> None:
        self._place = place

    @property
    def place(self) -> Place:
        return self._place

    def all(self) -> dict[int, Task]:
        """Return all tasks by id, except those whose files are damaged; see `read`."""
        return self.read()[0]

    def read(self) -> tuple[dict[int, Task], dict[int, str]]:
        """Return all tasks by id, and for each task whose file can't be read, the problem."""
        found: dict[int, Task] = {}
        damaged: dict[int, str] = {}
        for number in self.ids():
            try:
                found[number] = self.get(number)
            except StateDamaged as problem:
                damaged[number] = f"{problem.path}: {problem.why}"
            except UsageProblem:
                continue  # deleted since
        return found, damaged

    def look(self, number: int) -> Task | None:
        """Return a task; None if there is none, or if its file can't be read."""
        try:
            return self.get(number)
        except (StateDamaged, UsageProblem):
            return None

    def ids(self) -> list[int]:
        names = files.list_folder(self.place.folder)
        return sorted(int(name[: -len(ENDING)]) for name in names if _is_task(name))

    def get(self, number: int) -> Task:
        """Return a task. Raises UsageProblem if there is none, StateDamaged if its file can't be read."""
        path = self.place.file(number)
        try:
            return model.decode(json.parse_object(files.read_ours(path)))
        except FileNotFoundError:
            raise unknown(number) from None
        except (OSError, ValueError) as problem:
            why = problem.strerror if isinstance(problem, OSError) else problem
            raise StateDamaged(path, str(why)) from None

    def add(self, make: Maker, what: str = "added") -> Task:
        """Add a task; `make` gets its id."""
        return self.add_all(lambda: [make], what)[0]

    def add_all(self, makers: Callable[[], Iterable[Maker]], what: str = "added") -> list[Task]:
        """Add tasks, calling `makers` with the list locked. Files of several tasks are synced after it is unlocked."""
        with self.locked():
            wanted = [*makers()]
            first, is_single = self._next_ids(len(wanted)), len(wanted) == 1
            found = [self._saved(make(first + at), what, is_single) for at, make in enumerate(wanted)]
        self.wake()
        for task in () if is_single else found:
            files.sync_file(self.place.file(task.id))
        if not is_single and found:
            files.sync_parent(self.place.file(first))
        return found

    def put(self, task: Task) -> None:
        """Save a copy of a task from another list, replacing an earlier copy."""
        with self.locked():
            self._saved(task, "copied")

    def change(self, number: int, work: Change, what: str, **facts: object) -> Task:
        """Replace a task by the result of `work`. Nothing is written if the task does not change."""
        with self.locked():
            before = self.get(number)
            after = work(before)
            if after == before:
                return before
            saved = self._saved(after._replace(rev=before.rev + 1), what, True, **facts)
        self.wake()
        return saved

    def wake(self) -> None:
        """Wake the scheduler, if one is sleeping."""
        try:
            descriptor = files.open_fifo(self.place.wake, os.O_WRONLY)
        except OSError:
            return  # no scheduler runs
        try:
            os.write(descriptor, b".")
        except OSError:
            pass  # the pipe is full, so it is awake
        finally:
            os.close(descriptor)

    def history(self, number: int | None = None) -> Iterator[Json]:
        """Yield the lines of the log, oldest first; with `number`, only those about this task."""
        try:
            with files.reading(self.place.log) as file:
                for row in file:
                    try:
                        record = json.parse_object(row)
                    except ValueError:
                        continue  # a kill cut it off
                    if number in (None, record.get("id")):
                        yield record
        except OSError:
            return

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the list's lock. Raises UsageProblem if it can't be opened, or if another process holds it too long."""
        try:
            files.make_folder(self.place.folder)
            descriptor = lock.hold(os.path.join(self.place.folder, "lock"), PATIENCE)
        except OSError as problem:
            why = problem.strerror or problem
            what = f"The tasks in {self.place.folder} can't be locked: {why}."
            raise UsageProblem(what, "Try again; if that fails, check the folder's permissions.") from None
        try:
            yield
        finally:
            os.close(descriptor)

    def _next_ids(self, count: int) -> int:
        """Reserve `count` ids that no task ever had, and return the first. The file `last` has the highest id used."""
        path = os.path.join(self.place.folder, "last")
        try:
            last = int(files.read_ours(path))
        except (OSError, ValueError):
            last = max(self.ids(), default=0)
        first = last + 1
        while taken := [number for number in range(first, first + count) if os.path.lexists(self.place.file(number))]:
            first = taken[-1] + 1
        if count:
            files.replace(path, f"{first + count - 1}\n".encode())
        return first

    def _saved(self, task: Task, what: str, synced: bool = True, **facts: object) -> Task:
        now = clock.rfc3339(clock.now())
        task = task._replace(updated_at=now, created_at=task.created_at or now)
        write = files.replace if synced else files.replace_unsynced
        write(self.place.file(task.id), encoded(model.encode(task)).encode("utf-8", "backslashreplace") + b"\n")
        line = {"at": now, "id": task.id, "rev": task.rev, "state": task.state, "what": what, **facts}
        descriptor = files.open_append(self.place.log)
        try:
            files.append(descriptor, encoded(line).encode("utf-8", "backslashreplace") + b"\n")
        finally:
            os.close(descriptor)
        return task


def unknown(number: int) -> UsageProblem:
    return UsageProblem(f"There is no task {number} here.", "List them: rooda tasks")


def _is_task(name: str) -> bool:
    return name.endswith(ENDING) and name[: -len(ENDING)].isdecimal()
