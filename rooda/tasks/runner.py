"""The scheduler of `rooda tasks run`: starts a loop for each task that may start, and sleeps until something happens.

All that must survive is in the tasks' files. A task counts as running from before its loop starts until after its end
was recorded; the next scheduler stops what is left of such a loop, and starts it again.
"""

import os
from collections.abc import Callable
from typing import NamedTuple

from rooda.base import clock, files
from rooda.errors import INTERRUPTED, TERMINATED, Undecided, code_of_signal
from rooda.processes import detach, lock, table
from rooda.processes.children import Children
from rooda.processes.signals import Signals
from rooda.run.history import seconds_of
from rooda.settings.where import Where
from rooda.tasks import model, orders, outcome, results, work
from rooda.tasks.model import Process, Task
from rooda.tasks.store import Store

STOPPED = (INTERRUPTED, TERMINATED)


class Wishes(NamedTuple):
    """The options of `rooda tasks run`."""

    slots: int = 2
    retries: int = 1
    wait: bool = False
    land: bool = False


class Runner:
    """Works off the tasks of one repository."""

    def __init__(self, store: Store, here: Where, config: str, wishes: Wishes, say: Callable[[str], None]) -> None:
        self._store, self._here, self._config, self._wishes, self._say = store, here, config, wishes, say
        self._working: dict[int, int] = {}  # task, keyed by PID
        self._slots: dict[int, int] = {}  # slot, keyed by task
        self._held: set[int] = set()  # tasks that a person stopped during this run
        self._stopped_at: dict[int, int] = {}

    def run(self) -> int:
        """Work until nothing can start any more; return the exit code. Raises Undecided if another run goes on."""
        held = take_lock(self._store)
        try:
            with Signals() as watched:
                self._children = Children(watched, self._store.place.wake)
                try:
                    self._recover()
                    self._loop(watched)
                    if watched.first:
                        self._stop(watched)
                        return code_of_signal(watched.first)
                finally:
                    self._children.close()
        finally:
            held.release()
        return model.exit_code(self._store.all().values())

    def _loop(self, watched: Signals) -> None:
        while not watched.first:
            self._settle_ended()
            tasks = self._store.all()
            self._start_ready(tasks)
            upcoming = model.next_time(tasks.values())
            if not self._working and not (self._wishes.wait and upcoming):
                return
            self._children.sleep(max(0.0, seconds_of(upcoming) - clock.now()) if upcoming else None)

    def _start_ready(self, tasks: dict[int, Task]) -> None:
        for task in model.ready(tasks, clock.rfc3339(clock.now())):
            if len(self._working) >= self._wishes.slots:
                return
            if task.id not in self._held:
                self._start(task)

    def _start(self, task: Task) -> None:
        """Claim a task and start its loop; another process may have changed the task in the meantime."""
        now = clock.rfc3339(clock.now())

        def claim(found: Task) -> Task:
            if found.state != model.WAITING:
                return found
            return found._replace(
                state=model.RUNNING, started_at=found.started_at or now, until="", account="", reason="", parked_by=""
            )

        if self._store.change(task.id, claim, "started").state != model.RUNNING:
            return
        slot = next(each for each in range(self._wishes.slots) if each not in self._slots.values())
        words = ["-C", self._here.workspace, "--config", self._config, "tasks", "work", str(task.id)]
        env = {**os.environ, work.SLOT: str(slot), work.ON_LIMIT: "stop"}
        argv = [*detach.rooda_command(), *words, "--parent", str(os.getpid())]
        pid = self._children.start(argv, self._here.workspace, env, self.output_of(task.id))
        self._working[pid], self._slots[task.id] = task.id, slot
        identity = Process(**table.identity_of(pid))  # type: ignore[arg-type]
        self._store.change(task.id, lambda found: found._replace(process=identity), "process")
        self._say(f"Task {task.id} {'goes on' if task.started_at else 'started'}: {task.title}")

    def output_of(self, number: int) -> str:
        return os.path.join(self._store.place.folder, f"{number}.out")

    def _settle_ended(self) -> None:
        for pid, code in self._children.ended():
            number = self._working.pop(pid)
            self._slots.pop(number)
            self._settle(number, code)

    def _settle(self, number: int, code: int) -> None:
        """Record what a task has become."""
        task = self._store.get(number)
        workspace = orders.workspace_of(self._store, task)
        facts = results.facts(workspace, self._config) if workspace else outcome.Facts()
        commit, problem = results.publish(task.clone) if task.clone else ("", "")
        if problem:
            self._say(f"Task {number}: its work could not be brought into the repository: {problem}")
        said = results.last_line(self.output_of(number))
        ended = outcome.Ended(code, facts, said, "" if problem else commit)
        now = clock.now()
        tomorrow = clock.rfc3339(clock.day_start(clock.day_start(now) + 36 * 3600))
        after = self._store.change(
            number,
            lambda found: outcome.settled(found, ended, clock.rfc3339(now), tomorrow, self._wishes.retries),
            "ended",
            code=code,
        )
        if code in STOPPED:
            self._held.add(number)
        self._hold_others(after)
        self._say(f"Task {number} {after.state}{f': {after.reason}' if after.reason else ''}")
        if after.state == model.COMPLETED and after.head:
            self._store.place.repo.run("update-ref", f"{work.HEADS}{after.branch}", after.head)

    def _hold_others(self, limited: Task) -> None:
        """Let all waiting tasks of an account wait for the end of its usage limit."""
        if limited.state != model.WAITING or not limited.until:
            return
        for other in self._store.all().values():
            if other.agent == limited.agent and other.state == model.WAITING and not other.until:
                self._store.change(
                    other.id,
                    lambda found: (
                        found._replace(until=limited.until, account=limited.account)
                        if found.state == model.WAITING
                        else found
                    ),
                    "waits",
                )

    def _stop(self, watched: Signals) -> None:
        """End all loops, which save their state; a second signal is passed on, too."""
        if self._working:
            self._say(f"Stopping {len(self._working)} task{'s' if len(self._working) > 1 else ''}…")
        sent = 0
        while self._working:
            if watched.count > sent:
                sent = watched.count
                self._children.stop()
            self._children.sleep(None)
            self._settle_ended()

    def _recover(self) -> None:
        """End the loops that an earlier scheduler left, and let their tasks wait to go on."""
        for task in self._store.all().values():
            if task.state != model.RUNNING:
                continue
            orders.end_loop(self._store, task)
            self._settle(task.id, -9)


def take_lock(store: Store) -> lock.Lock:
    """Take the lock of the scheduler; Undecided if another one runs."""
    path = store.place.runner
    files.make_folder(store.place.folder)
    held = lock.acquire(path)
    if held is None:
        pid = lock.owner(path).get("pid", "unknown")
        raise Undecided(
            f"`rooda tasks run` is already running here (pid {pid}); it takes up what you add.",
            "Watch it: rooda tasks --watch",
        )
    held.write_owner()
    return held
