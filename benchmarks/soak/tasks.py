"""The list of tasks in a soak: one scheduler works it off and lands the work, and is struck like the loops."""

import json
import os
import random
import subprocess
from typing import Any

from benchmarks.soak.kinds import TASK_LIST, TASKS
from benchmarks.soak.loop import Loop
from benchmarks.soak.watch import Watch

OPEN = 4  # tasks that wait when the scheduler starts
ENDED = ("landed", "cancelled")


class TaskList(Loop):
    """A repository whose tasks are worked on two at a time, and land."""

    def __init__(self, root: str, python: str, moods: str, dice: random.Random, watch: Watch) -> None:
        super().__init__(TASK_LIST, root, python, moods, dice, watch)

    def start(self) -> None:
        """Fill the list, give tasks that have failed another try, and go on."""
        self._away()
        tasks = self._tasks()
        for task in tasks:
            if task["state"] in ("failed", "parked"):
                self._rooda("tasks", "retry", str(task["id"])).wait()
        for _ in range(OPEN - sum(task["state"] not in ENDED for task in tasks)):
            self._rooda("tasks", "add", "Write the file.", "--kind", "procedure", "soak", "-n", "2").wait()
        super().start()

    def open(self) -> bool:
        """There is one list, and each start goes on with it."""
        return True

    def look(self) -> None:
        """What has landed is on the target, and nothing else has changed it."""
        super().look()
        landed = {f"work{task['id']}" for task in self._tasks() if task["state"] == "landed"}
        done = subprocess.run(
            ["git", "ls-tree", "--name-only", "main"], cwd=self.folder, capture_output=True, text=True, check=False
        )
        if missing := landed - {*done.stdout.split()}:
            self._wrong("lost", f"landed, but not on main: {sorted(missing)}", len(missing))

    def _tasks(self) -> list[dict[str, Any]]:
        folder = os.path.join(self.folder, TASKS)
        names = os.listdir(folder) if os.path.isdir(folder) else []
        found = []
        for name in names:
            if name.endswith(".json") and name[:-5].isdigit():
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    found.append(json.load(file))
        return found
