"""`rooda tasks land --pr`: opens pull requests for completed tasks, and sends them back to agents if checks fail."""

import os
from collections.abc import Callable
from typing import NamedTuple

from rooda.base import files
from rooda.errors import OK, UNDECIDED, UNFINISHED, Interrupted, RoodaError, UsageProblem
from rooda.git import command
from rooda.git.checkouts import HEADS
from rooda.git.repository import GIT_TIMEOUT, GitProblem
from rooda.processes.signals import Signals
from rooda.settings.layers import Settings
from rooda.tasks import evidence, forge, model, queue, sync
from rooda.tasks.forge import CLOSED, GREEN, MERGED, NONE, RED, Forge, Seen
from rooda.tasks.landing import alone
from rooda.tasks.model import Pull, Task
from rooda.tasks.store import Store
from rooda.tasks.targets import REMOTES, Target, Targets


class Wishes(NamedTuple):
    """The options of `rooda tasks land --pr`."""

    attempts: int = 2
    merge: bool = False
    no_gates: bool = False  # merge pull requests that have no checks
    yes: bool = False  # merge pull requests that change settings, gates or CI files
    watch: float = 0.0  # seconds between two polls; 0 = poll once
    target: str = ""


class Remote(NamedTuple):
    """The remote to which a task's branch is pushed, and the target branch of its pull request there."""

    name: str
    branch: str


class Pulls:
    """Opens, watches and merges the pull requests of one repository."""

    def __init__(self, store: Store, found: Settings, wishes: Wishes, say: Callable[[str], None]) -> None:
        self._store, self._wishes, self._say, self._repo = store, wishes, say, store.place.repo
        self._squash = bool(found.table("tasks").get("squash", False))
        self._said: dict[int, str] = {}
        self._code = OK

    def run(self) -> int:
        """Visit all completed tasks once or, with `watch`, until none is left; return the exit code.

        If a forge's command fails in the first visit, the run ends. Later failures, such as rate limits, do not end it.
        """
        with alone(self._store), Signals() as signals:
            is_first = True
            if not self._repo.lines("remote"):
                raise _no_remote()
            if not self._mine():
                self._say(queue.NOTHING)
            while True:
                self._code = OK
                for task in self._mine():
                    try:
                        self._visit(task)
                    except RoodaError as problem:
                        if isinstance(problem, UsageProblem) and is_first:
                            raise
                        self._note(task, problem.what)
                sync.carry_back(self._store, os.environ, self._say)
                if not self._wishes.watch or not self._mine():
                    return self._code
                is_first = False
                signals.wait(self._wishes.watch)
                if signals.first:
                    raise Interrupted(signals.first)

    def _mine(self) -> list[Task]:
        names = [name for name in queue.targets(self._store.all().values()) if self._wishes.target in ("", name)]
        return [task for name in names for task in queue.due(self._store.all().values(), name)]

    def _note(self, task: Task, text: str, code: int = UNFINISHED) -> None:
        """Print what a task waits for, unless the last line about the task said the same; set the exit code."""
        if self._said.get(task.id) != text:
            self._said[task.id] = text
            self._say(f"Task {task.id}: {text}")
        self._code = UNDECIDED if UNDECIDED in (code, self._code) else code

    def _visit(self, task: Task) -> None:
        """Push a task's branch, open its pull request, or act on the state of its pull request at the forge."""
        remote = self._remote(task.target)
        host = Forge(task.pull.forge or forge.of_url(self._url(remote.name)), self._repo.top, os.environ)
        if not task.pull.url or task.pull.head != task.head:
            self._open(task, remote, host)
            return
        seen = host.look(task.pull.url)
        if seen.state == MERGED:
            self._landed(task, seen)
        elif seen.state == CLOSED:
            self._parked(task, f"its pull request was closed: {task.pull.url}")
        elif seen.head != task.head:
            self._note(task, f"its pull request's newest commit is not the task's: {task.pull.url}")
        elif seen.conflicts or seen.checks == RED:
            self._send_back(task, seen, host, self._fetched(task, remote))
        elif self._wishes.merge and (seen.checks == GREEN or (seen.checks == NONE and self._wishes.no_gates)):
            self._merge(task, remote, host)
        else:
            self._note(task, f"checks {seen.checks}: {task.pull.url}")

    def _remote(self, target: str) -> Remote:
        """Return the remote of a target. Raises UsageProblem if there is none."""
        names = self._repo.lines("remote")
        for name in sorted(names, key=len, reverse=True):
            if target.startswith(f"{name}/"):
                return Remote(name, target.removeprefix(f"{name}/"))
        own = self._config(f"branch.{target}.remote")
        chosen = next((name for name in (own, "origin", *names) if name in names), "")
        if not chosen:
            raise _no_remote()
        merged = self._config(f"branch.{target}.merge") if own == chosen else ""
        return Remote(chosen, merged.removeprefix(HEADS) or target)

    def _config(self, key: str) -> str:
        return files.to_text(self._repo.run("config", "--get", key).out).strip()

    def _url(self, remote: str) -> str:
        return self._config(f"remote.{remote}.url")

    def _open(self, task: Task, remote: Remote, host: Forge) -> None:
        """Push the branch, which updates an open pull request; if there is none, open one."""
        lease = f"--force-with-lease={HEADS}{task.branch}:{task.pull.head}"
        words = ["push", "-q", lease, remote.name, f"{task.head}:{HEADS}{task.branch}"]
        done = command.run(words, self._repo.top, hooks=True, timeout=GIT_TIMEOUT)
        if done.code:
            raise RoodaError(f"git push {remote.name} {task.branch} failed: {command.push_error(done)}")
        url = task.pull.url or host.found(task.branch)
        if not url:
            body = evidence.body(task, evidence.of_task(self._store, task))
            url = host.create(task.branch, remote.branch, task.title, body)
        pull = Pull(url, task.head, host.name)
        self._store.change(task.id, lambda now: now._replace(pull=pull), "pull request", url=url)
        self._note(task, f"{'pushed to' if task.pull.url else 'opened'} {url}")

    def _merge(self, task: Task, remote: Remote, host: Forge) -> None:
        base = self._repo.text("merge-base", task.turnings.base or task.head, task.head)
        names = self._repo.lines("diff", "--name-only", "--no-renames", base, task.head)
        if (found := queue.watched(names)) and not self._wishes.yes:
            what = f"changes {', '.join(found)}, which decide what is run or checked; merge it with --yes, or yourself"
            self._note(task, f"{what}: {task.pull.url}", UNDECIDED)
            return
        host.merge(task.pull.url, task.head, self._squash)
        seen = host.look(task.pull.url)
        if seen.state == MERGED:
            self._landed(task, seen)
        else:
            self._note(task, f"the forge will merge it as soon as it can: {task.pull.url}")

    def _landed(self, task: Task, seen: Seen) -> None:
        def landed(now: Task) -> Task:
            return now._replace(state=model.LANDED, reason="") if now.state == model.COMPLETED else now

        self._store.change(task.id, landed, "landed", commit=seen.commit or seen.head)
        self._say(f"Task {task.id} landed on {task.target}: {task.pull.url}")

    def _parked(self, task: Task, reason: str) -> None:
        def parked(now: Task) -> Task:
            waits = now.state == model.COMPLETED
            return now._replace(state=model.PARKED, parked_by="landing", reason=reason) if waits else now

        self._store.change(task.id, parked, "refused", why=reason)
        self._note(task, f"parked: {reason}")

    def _fetched(self, task: Task, remote: Remote) -> str:
        """Fetch a pull request's target and return its tip; if git fails, its last known tip or the task's base."""
        targets = Targets(self._repo)
        target = Target(task.target, f"{REMOTES}{remote.name}/{remote.branch}", remote.name, remote.branch)
        try:
            targets.fetch(target)
        except GitProblem as problem:
            self._say(f"Task {task.id}: {problem.what}")
        return targets.commit(target.ref) or task.turnings.base

    def _conflicting(self, tip: str, head: str) -> list[str]:
        """Return the files in which two commits conflict; [] if git is too old to find them."""
        done = self._repo.run("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", tip, head)
        return [*filter(None, files.to_text(done.out).split("\0")[1:])] if done.code == 1 else []

    def _send_back(self, task: Task, seen: Seen, host: Forge, tip: str) -> None:
        if seen.conflicts:
            refusal = queue.pull_conflict(task.target, task.pull.url, self._conflicting(tip, task.head))
        else:
            refusal = queue.red_check(task.target, seen.failed, task.pull.url, host.log(seen))

        def refused(now: Task) -> Task:
            waits = now.state == model.COMPLETED and now.head == task.head
            return queue.reopened(now, refusal, self._wishes.attempts, tip) if waits else now

        after = self._store.change(task.id, refused, "refused", why=refusal.text)
        self._note(task, f"{after.state}: {refusal.text}")


def _no_remote() -> UsageProblem:
    return UsageProblem(
        "This repository has no remote, so rooda can't open a pull request.",
        "Add one: git remote add origin URL. Or land here: rooda tasks land",
    )
