"""The scheduler of `rooda tasks run`: starts a loop for each task that may start, and sleeps until something happens.

All that must survive a crash is in the tasks' files. A task is `running` from before its loop starts until the loop's
end is recorded. After a crash, the next scheduler ends the processes of such a loop, and resumes it.
"""

import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

from rooda.agents import command
from rooda.base import clock, files
from rooda.base.text import counted, format_short
from rooda.errors import INTERRUPTED, OK, TERMINATED, UNFINISHED, Undecided, UsageProblem, code_of_signal
from rooda.git import checkouts, clones
from rooda.processes import detach, lock, table
from rooda.processes.children import Children
from rooda.processes.signals import Signals
from rooda.run import budgets, workspaces
from rooda.run.history import seconds_of
from rooda.run.spending import dollars
from rooda.settings.where import Where
from rooda.tasks import model, orders, outcome, results, started, work
from rooda.tasks.conflicts import Foresight
from rooda.tasks.lander import Lander, Step
from rooda.tasks.memory import Memory
from rooda.tasks.model import Process, Task
from rooda.tasks.store import Store

STOPPED = (INTERRUPTED, TERMINATED)


class Wishes(NamedTuple):
    """The options of `rooda tasks run`, and the settings of [tasks]."""

    slots: int = 2
    retries: int = 1
    wait: bool = False
    land: bool = False
    cost: float = 0.0  # dollars that all loops of this run may spend together; 0 = no limit
    prefix: str = "rooda"  # prefix of the branches
    min_free: int = 0  # bytes of free space, below which nothing more starts
    home: str = ""  # folder of the clones
    question_seconds: float = 0.0  # seconds that a question waits for its answer; 0 = no limit
    question_default: str = ""
    landing: tuple[str, ...] = ()  # options of `tasks land`

    @property
    def words(self) -> list[str]:
        """Options with which `rooda resume --all` starts this run again."""
        found = ["-j", str(self.slots), "--retries", str(self.retries)]
        found += ["--max-cost", f"{self.cost:g}"] if self.cost else []
        return [*found, *(["--wait"] if self.wait else []), *(["--land", *self.landing] if self.land else [])]


class Runner:
    """Runs the tasks of one repository."""

    def __init__(self, store: Store, here: Where, config: str, wishes: Wishes, say: Callable[[str], None]) -> None:
        self._store, self._here, self._config, self._wishes, self._say = store, here, config, wishes, say
        self._memory, self._foresight = Memory(store), Foresight(store, say)
        self._working: dict[int, int] = {}  # running tasks, keyed by PID
        self._slots: dict[int, int] = {}  # the smallest free number at each running task's start, keyed by task
        self._printed: dict[int, int] = {}  # size of each task's output before its start
        step = Step(("-C", here.workspace, "--config", config), wishes.landing, store.place.folder)
        self._lander = Lander(wishes.land, step, say)
        self._held: set[int] = set()  # tasks that the user stopped during this run
        self._has_started = False  # a loop or a landing
        self._over = ""  # why this run starts no more tasks
        self._general = ""  # an error that affects every task
        self._group = f"{os.getpid()}-{clock.file_stamp(clock.now())}"

    def run(self) -> int:
        """Run tasks until no more can start; return the exit code. Raises Undecided if another run is active."""
        self._require_prefix()
        held = take_lock(self._store)
        try:
            for text in clones.doubts(self._store.place.repo):
                self._say(text)
            started.write(self._store, self._here, self._wishes.words)
            workspaces.record(self._here.workspace)
            detach.report_started("rooda tasks run", lambda: self._store.place.folder, self._here.workspace)
            with Signals() as watched:
                self._children = Children(watched, self._store.place.wake)
                try:
                    self._recover()
                    self._loop(watched)
                    if watched.first:
                        self._stop(watched)
                        started.ended(self._store, watched.first)
                        return code_of_signal(watched.first)
                finally:
                    self._children.close()
            started.ended(self._store)
        finally:
            held.release()
        if self._general:
            raise UsageProblem(self._general)
        tasks = self._store.all()
        if not self._report_unlanded(tasks) and not self._has_started and not self._over:
            self._say("No task could start. See what they wait for: rooda tasks")
        code = model.exit_code(tasks.values())
        return UNFINISHED if code == OK and self._lander.code else code

    def _report_unlanded(self, tasks: Mapping[int, Task]) -> bool:
        """Report tasks that wait for cancelled tasks or, without `--land`, for unlanded ones; True if there are any."""
        told = False
        for task in tasks.values():
            if task.state == model.WAITING and (lost := model.lost(task, tasks)):
                names = ", ".join(map(str, lost))
                told, what = True, f"Task {task.id} waits for cancelled tasks: {names}."
                self._say(f"{what} To change that: rooda tasks edit {task.id} --after …")
        held = [task.id for task in model.waiting_for_landing(tasks)]
        if held and not self._wishes.land:
            names = ", ".join(map(str, held[:8])) + (" …" if len(held) > 8 else "")
            told, what = True, f"Task {names} waits" if len(held) == 1 else f"Tasks {names} wait"
            self._say(f"{what} until others have landed. To land them: rooda tasks land, or rooda tasks run --land")
        return told

    def _require_prefix(self) -> None:
        """Raise UsageProblem if a branch such as `rooda` keeps git from creating the tasks' branches `rooda/…`."""
        parts = self._wishes.prefix.split("/")
        for name in ("/".join(parts[:count]) for count in range(1, len(parts) + 1)):
            if self._store.place.repo.run("rev-parse", "-q", "--verify", f"{work.HEADS}{name}").code == 0:
                raise UsageProblem(
                    f"A branch named {name} is in the way of the tasks' branches, such as {self._wishes.prefix}/1-….",
                    'Rename it, or choose another prefix in rooda.toml: [tasks] branch_prefix = "…"',
                )

    def _loop(self, watched: Signals) -> None:
        whole = False
        while not watched.first:
            if watched.suspended:
                self._suspend(watched)
            self._settle_ended()
            tasks = self._memory.tasks(whole)
            self._report_problems()
            self._end_questions(tasks)
            self._lander.offer(tasks, self._children)
            self._has_started |= self._lander.works
            self._start_ready(tasks)
            upcoming = self._next_time(tasks)
            if not self._working and not self._lander.works and not (self._wishes.wait and upcoming and not self._over):
                if whole or self._over:
                    return
                whole = True  # read all files once more before the end
                continue
            whole = False
            self._children.sleep(max(0.0, upcoming - clock.now()) if upcoming else None)

    def _report_problems(self) -> None:
        for text in self._memory.problems:
            self._say(text)
        self._memory.problems.clear()

    def _next_time(self, tasks: Mapping[int, Task]) -> float:
        """Return the next time at which a usage limit or the time to answer a question ends; 0 if there is none."""
        text = model.next_time(tasks.values())
        found = [seconds_of(text)] if text else []
        if limit := self._wishes.question_seconds:
            found += [seconds_of(task.asked_at) + limit for task in tasks.values() if task.question and task.asked_at]
        return min(found, default=0.0)

    def _end_questions(self, tasks: Mapping[int, Task]) -> None:
        """Give the default answer to questions that have waited too long; without a default, let their tasks fail."""
        limit, default = self._wishes.question_seconds, self._wishes.question_default
        for task in [*tasks.values()] if limit else ():
            if task.question and task.asked_at and seconds_of(task.asked_at) + limit <= clock.now():
                orders.end_question(self._store, task.id, default, format_short(limit))
                after = self._store.get(task.id)
                self._memory.keep(after)
                self._say(f"Task {task.id} {after.state}: no answer within {format_short(limit)}")

    def _start_ready(self, tasks: dict[int, Task]) -> None:
        waiting = model.ready(tasks, clock.rfc3339(clock.now()))
        waiting = [task for task in waiting if task.id not in self._held]
        while waiting and not self._over and len(self._working) < self._wishes.slots and self._has_space():
            waiting = self._foresight.last(waiting, [tasks[number] for number in self._slots if number in tasks])
            self._start(waiting.pop(0))

    def _has_space(self) -> bool:
        """True if the disk with the clones has at least the free space `min_free`."""
        if self._wishes.min_free and (free := files.free_space(self._wishes.home)) < self._wishes.min_free:
            what = f"{self._wishes.home} has {free / 1e9:.1f} GB of free space"
            self._over = f"{what}, less than [tasks] min_free = {self._wishes.min_free / 1e9:g}GB; nothing more starts."
            self._say(self._over)
        return not self._over

    def _start(self, task: Task) -> None:
        """Mark a task as running and start its loop, unless another process has changed the task in the meantime."""
        now = clock.rfc3339(clock.now())

        def claim(found: Task) -> Task:
            if found.state != model.WAITING:
                return found
            return found._replace(
                state=model.RUNNING, started_at=found.started_at or now, until="", account="", reason="", parked_by=""
            )

        claimed = self._store.change(task.id, claim, "started")
        self._memory.keep(claimed)
        if claimed.state != model.RUNNING:
            return
        self._has_started = True
        slot = next(each for each in range(self._wishes.slots) if each not in self._slots.values())
        words = ["_task", self._here.workspace, self._config, str(task.id), str(os.getpid())]
        argv = [*detach.rooda_command(), *words]
        self._printed[task.id] = files.size(self.output_of(task.id))
        pid = self._children.start(argv, self._here.workspace, self._environment(slot), self.output_of(task.id))
        self._working[pid], self._slots[task.id] = task.id, slot
        identity = Process(**table.identity_of(pid))  # type: ignore[arg-type]
        self._memory.keep(self._store.change(task.id, lambda found: found._replace(process=identity), "process"))
        self._say(f"Task {task.id} {'goes on' if task.started_at else 'started'}: {task.title}")

    def _environment(self, slot: int) -> dict[str, str]:
        env = {**os.environ, work.SLOT: str(slot), work.ON_LIMIT: "stop", command.IN_TASK: "1"}
        if self._wishes.cost:
            env[budgets.GROUP] = f"{self._group}:{self._wishes.cost:g}"
        return env

    def output_of(self, number: int) -> str:
        return os.path.join(self._store.place.folder, f"{number}.out")

    def _settle_ended(self) -> None:
        for pid, code in self._children.ended():
            if self._lander.ended(pid, code):
                continue
            number = self._working.pop(pid)
            self._slots.pop(number)
            self._settle(number, code)

    def _settle(self, number: int, code: int) -> None:
        """Fetch the work of an ended loop into the repository, and record the task's new state."""
        task = self._store.get(number)
        workspace = orders.workspace_of(self._store, task)
        facts = results.facts_or_none(workspace, self._config) if workspace else outcome.Facts()
        commit, problem = orders.bring(self._store, task, code == OK) if workspace else ("", "")
        if code == OK and commit and not problem:  # before the task counts as completed
            problem = results.set_branch(self._store.place.repo, task.branch, commit)
        if problem:
            self._say(f"Task {number}: {outcome.UNPUBLISHED}: {problem}")
        said = results.said(self.output_of(number), self._printed.get(number, 0))
        ended = outcome.Ended(code, facts, said.line, "" if problem else commit, problem, said.text)
        now = clock.now()
        tomorrow = clock.rfc3339(clock.day_start(clock.day_start(now) + 36 * 3600))
        after = self._store.change(
            number,
            lambda found: outcome.settled(found, ended, clock.rfc3339(now), tomorrow, self._wishes.retries),
            "ended",
            code=code,
        )
        self._memory.keep(after)
        if code in STOPPED:
            self._held.add(number)
        self._after(after, ended)

    def _after(self, task: Task, ended: outcome.Ended) -> None:
        """Report the end of a loop. If its cause also affects other tasks, let these tasks or the whole run wait."""
        if ended.code == outcome.GENERAL:
            self._over = self._general = self._general or ended.text or ended.said
            return
        cause = ended.facts.cause
        if cause and cause.budget == budgets.RUN and not self._over:
            self._over = f"The limit of this run is reached: {dollars(self._wishes.cost)}; nothing more starts."
            self._say(self._over)
        self._hold_others(task)
        why = (
            f" asks: {task.question}" if task.question else f" {task.state}{f': {task.reason}' if task.reason else ''}"
        )
        self._say(f"Task {task.id}{why}")

    def _hold_others(self, limited: Task) -> None:
        """Make waiting tasks of the same agent wait until its usage limit ends, unless they already have a time."""
        if limited.state != model.WAITING or not limited.until:
            return

        def hold(found: Task) -> Task:
            waits = found.state == model.WAITING and not found.until
            return found._replace(until=limited.until, account=limited.account) if waits else found

        for other in [*self._memory.tasks().values()]:
            if model.same_agent(other, limited) and other.state == model.WAITING and not other.until:
                self._memory.keep(self._store.change(other.id, hold, "waits"))

    def _suspend(self, watched: Signals) -> None:
        """Suspend all loops and this process after Ctrl+Z or `rooda tasks pause`, until the user continues them."""
        self._children.suspend()
        watched.stop_self()
        self._children.resume()

    def _stop(self, watched: Signals) -> None:
        """End all loops, which save their state. Passes a second signal on to the loops."""
        if self._working:
            self._say(f"Stopping {counted(len(self._working), 'task')}…")
        sent = 0
        while self._working or self._lander.works:
            if watched.count > sent:
                sent = watched.count
                self._children.stop()
            self._children.sleep(None)
            self._settle_ended()

    def _recover(self) -> None:
        """End the loops that a crashed scheduler left running; their tasks wait to be resumed."""
        for task in [*self._memory.tasks().values()]:
            if task.state != model.RUNNING:
                continue
            orders.end_loop(self._store, task)
            loan = work.loan_of(self._store.place, task)
            own = (loan.ref, loan.snapshot, f"{work.HEADS}{task.branch}")
            checkouts.remove_own_locks(self._store.place.repo, own)
            self._settle(task.id, -9)


def take_lock(store: Store) -> lock.Lock:
    """Take the scheduler's lock. Raises Undecided if another scheduler is running."""
    path = store.place.runner
    files.make_folder(store.place.folder)
    held = lock.acquire(path)
    if held is None:
        pid = lock.owner(path).get("pid", "unknown")
        raise Undecided(
            f"`rooda tasks run` is already running here (pid {pid}); it also starts tasks that you add.",
            "Watch it: rooda tasks --watch",
        )
    held.write_owner()
    return held
