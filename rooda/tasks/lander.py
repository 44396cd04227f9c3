"""Starts `rooda tasks land` as a child process whenever a task is completed, for `rooda tasks run --land`."""

import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

from rooda.base import files
from rooda.errors import OK
from rooda.processes import detach
from rooda.processes.children import Children
from rooda.tasks import model
from rooda.tasks.model import Task
from rooda.tasks.store import TASKS

OUTPUT = "land.out"


class Step(NamedTuple):
    """The arguments before and after `tasks land` in the command of a landing, and a folder for its output."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    folder: str


class Lander:
    """Runs landings, one at a time. Starts one if there are completed tasks that no earlier landing has seen."""

    def __init__(self, wanted: bool, step: Step, say: Callable[[str], None]) -> None:
        self._wanted, self._step, self._say = wanted, step, say
        self._offered: dict[int, tuple[str, int]] = {}  # commit and loop of each task that a landing has seen, by task
        self._pid, self._printed, self.code = 0, 0, OK

    @property
    def works(self) -> bool:
        return self._pid > 0

    def offer(self, tasks: Mapping[int, Task], children: Children) -> None:
        """Start a landing if there are completed tasks that none has seen. If one is running, print its new output."""
        if self.works:
            self._report()
        completed = [task for task in tasks.values() if task.state == model.COMPLETED] if self._wanted else []
        found = {task.id: (task.head, task.turnings.loop) for task in completed}
        if self.works or not found or found.items() <= self._offered.items():
            return
        self._offered |= found
        output = os.path.join(self._step.folder, OUTPUT)
        self._printed = files.size(output)
        argv = [*detach.rooda_command(), *self._step.before, *TASKS, "land", "--patient", *self._step.after]
        self._pid = children.start(argv, self._step.folder, dict(os.environ), output)

    def ended(self, pid: int, code: int) -> bool:
        """If the process that ended was the landing, print its output and return True; else return False."""
        if pid != self._pid:
            return False
        self._pid, self.code = 0, code
        self._report()
        return True

    def _report(self) -> None:
        """Print the complete lines that the landing has printed since the last call."""
        output = os.path.join(self._step.folder, OUTPUT)
        data = files.tail(output, max(0, files.size(output) - self._printed))
        whole = data[: data.rfind(b"\n") + 1]
        self._printed += len(whole)
        for row in files.to_text(whole).splitlines():
            self._say(row)
