"""The merge queue of `rooda tasks land`: brings completed tasks to their target one at a time, each checked by gates.

Results are made and checked in a separate clone for each target. A target is moved only by compare-and-swap. A journal
is written before the move and deleted after it, so that the next landing completes a move that was cut off by a kill.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from rooda.base import files
from rooda.errors import OK, UNDECIDED, UNFINISHED, RoodaError, Undecided
from rooda.git import checkouts, command, own_files
from rooda.git.checkouts import Change
from rooda.git.repository import GIT_TIMEOUT, GitProblem, Repo, find
from rooda.processes import capture, lock
from rooda.run.records import Gate
from rooda.run.setup import NewWorktree
from rooda.settings.layers import Settings
from rooda.tasks import gates, journal, model, orders, queue, sync
from rooda.tasks.combining import LANDING, LandingClone, lost_submodule
from rooda.tasks.journal import Landed, Move
from rooda.tasks.model import Task
from rooda.tasks.queue import History, Refusal
from rooda.tasks.store import Store
from rooda.tasks.targets import Target, Targets
from rooda.tasks.waiting import Shelf

PATIENCE = 60.0  # seconds to wait for the end of git commands that a killed landing left


class Wishes(NamedTuple):
    """The options of `rooda tasks land`."""

    attempts: int = 2
    no_gates: bool = False
    yes: bool = False
    target: str = ""  # "" = all targets
    patient: bool = False  # wait if another landing is running


class Asked(NamedTuple):
    """Callbacks with which the queue prints and asks the user."""

    say: Callable[[str], None]
    allow: Callable[[Task, Sequence[str]], bool]  # may this branch change files that decide what is run or checked?
    trust: Callable[[Settings], Settings]  # ask the user whether to trust what was fetched from another repository


class Queue:
    """Lands the completed tasks of one repository."""

    def __init__(self, store: Store, found: Settings, wanted: NewWorktree, wishes: Wishes, asked: Asked) -> None:
        self._store, self._found, self._wanted, self._wishes = store, found, wanted, wishes
        self._say, self._asked, self._repo = asked.say, asked, store.place.repo
        self._squash = bool(found.table("tasks").get("squash", False))
        self._targets = Targets(self._repo)
        self._shelf = Shelf(store, str(found.table("tasks").get("branch_prefix", "rooda")).strip("/"))
        self._clones: dict[str, LandingClone] = {}
        self._is_sound = False  # `git fsck` has checked the repository in this landing
        self._code = OK

    def run(self) -> int:
        """Land the completed tasks that can land; return the exit code. Raises Undecided if another landing runs."""
        with alone(self._store, self._wishes.patient):
            self._recover()
            found = dict.fromkeys([*self._shelf.targets(), *queue.targets(self._store.all().values())])
            names = [name for name in found if self._wishes.target in ("", name)]
            for name in names:
                self._land_target(name)
            if not names:
                self._say(queue.NOTHING)
            sync.carry_back(self._store, os.environ, self._say)
        for line in self._shelf.commands():
            self._say(line)
            self._code = self._code or UNFINISHED
        return self._code

    def _land_target(self, name: str) -> None:
        """Land the completed tasks of a target, including those that are completed during the landing."""
        try:
            target = self._targets.find(name)
            self._targets.fetch(target)
            self._finish(target)
            seen = self._shelf.ids(name)
            while batch := [task for task in queue.due(self._store.all().values(), name) if task.id not in seen]:
                for task in batch:
                    seen.add(task.id)
                    while self._land(target, self._store.get(task.id)):
                        pass  # another process moved the target: try again from its new tip
        except GitProblem as problem:
            self._hold(f"Nothing more lands on {name}: {problem}")

    def _hold(self, text: str, code: int = UNFINISHED) -> bool:
        self._say(text)
        self._code = UNDECIDED if UNDECIDED in (code, self._code) else code
        return False

    def _land(self, target: Target, task: Task) -> bool:
        """Land a task, or send it back to its agent.

        Return True if another process has moved the target, so that the caller must try again.
        """
        if task.state != model.COMPLETED:
            return False
        if not task.head:
            return self._hold(f"Task {task.id}: its work is not in the repository; see: rooda tasks show {task.id}")
        tip = self._shelf.newest(task.target) or self._targets.tip(target)
        try:
            history = self._history(task, tip)
        except GitProblem as problem:
            return self._hold(f"Task {task.id}: its work is not in the repository: {problem.what}")
        if history.is_merged:
            return self._nothing(task, tip)
        room = self._clones.setdefault(task.target, self._new_clone(task.target))
        clone = room.at(tip)
        checks = self._gates(target, clone, task)
        if not checks and not self._wishes.no_gates:
            text = f"Task {task.id}: there are no gates to check it with; to land it anyway: --no-gates"
            return self._hold(text, UNDECIDED)
        found = room.combined(clone, task, tip, history, self._squash)
        if found == tip:
            return self._nothing(task, tip)
        found = found if isinstance(found, Refusal) else sync.tick(clone, task, found)
        if isinstance(found, str):
            changes = checkouts.changes(clone, tip, found)
            if not self._may_change(clone, task, tip, found, changes):
                return self._hold(f"Task {task.id} waits for your decision. To decide: rooda tasks land", UNDECIDED)
            room.fill_submodules(clone)
            self._keep(room, task, found)
            path = lost_submodule(self._repo, changes)
            lost = queue.lost_submodule(task.target, path) if path else None
            found = lost or self._checked(clone, task, found, checks)
        if isinstance(found, Refusal):
            return self._send_back(task, found, tip)
        room.note_clean(found if checks else "")
        return self._move(target, task, tip, found, changes)

    def _new_clone(self, target: str) -> LandingClone:
        return LandingClone(self._found, self._wanted, self._store.place, target, self._say)

    def _nothing(self, task: Task, tip: str) -> bool:
        """Record a task as landed if its branch adds nothing, but send it back if its agent left uncommitted work.

        Always returns False: the caller need not try again.
        """
        if left := orders.left_in_clone(self._store, task):
            return self._send_back(task, queue.uncommitted(task.target, left), tip)
        self._landed(Landed(task.id, tip), f"its branch has nothing that {task.target} lacks")
        return False

    def _send_back(self, task: Task, refusal: Refusal, tip: str) -> bool:
        attempts = self._wishes.attempts
        after = self._store.change(
            task.id,
            lambda now: queue.reopened(now, refusal, attempts, tip) if now.state == model.COMPLETED else now,
            "refused",
            why=refusal.text,
        )
        self._hold(f"Task {task.id} {after.state}: {refusal.text}")
        return False

    # The result, in the landing clone

    def _history(self, task: Task, tip: str) -> History:
        """Compare a task's commits with the target. Raises GitProblem if an object of these commits is missing."""
        words = ("rev-list", "--objects", "--left-right", "--parents", f"{tip}...{task.head}")
        rows = [row for row in self._repo.lines(*words) if row[0] in "<>"]
        own = [row for row in rows if row[0] == ">"]
        return History(not own, any(row.count(" ") > 1 for row in own), len(own) == len(rows))

    def _gates(self, target: Target, clone: Repo, task: Task) -> list[Gate]:
        """Return the gates of the target's tip, which the clone has checked out, and the task's own."""
        found = self._found._replace(workspace=clone.workspace)
        return gates.of_target(self._asked.trust(found) if target.remote else found, task)

    def _checked(self, clone: Repo, task: Task, commit: str, checks: Sequence[Gate]) -> str | Refusal:
        """Run the gates on the result; return its commit, or a refusal if a gate is red or changes tracked files."""
        words = ("status", "--porcelain=v2", "--branch", "--untracked-files=no", "--ignore-submodules=all")
        before = own_files.files_before(clone)
        for gate in checks:
            self._say(f"Task {task.id}: running gate {gate.name}")
            result = gates.run(self._found, task, gate, clone, os.path.join(self._store.place.folder, "gate.out"))
            if said := own_files.restore_files(clone, before, with_head=False):
                self._say(f"Task {task.id}: gate {gate.name} {said}")
            own_files.restore_index(clone, before)
            try:
                rows = clone._replace(objects="").lines(*words)  # a gate's commit is in the clone only
            except GitProblem as problem:
                verdict = f"it damaged the clone: {problem.what}"
                return queue.red(task.target, gate.name, verdict, result.output)
            changed = [row for row in rows if row[0] != "#"]
            verdict = result.verdict or (f"it changed {_path_of(changed[0])}" if changed else "")
            if not verdict and f"# branch.oid {commit}" not in rows:
                verdict = "it moved HEAD"
            if verdict:
                return queue.red(task.target, gate.name, verdict, result.output)
        return commit

    def _may_change(self, clone: Repo, task: Task, tip: str, commit: str, changes: Sequence[Change]) -> bool:
        """True if the branch changes no file that decides what is run or checked, or if the user allows it."""
        names = [change.path for change in changes]
        found = [name for name in queue.watched(names) if gates.decides(clone, name, tip, commit)]
        return not found or self._wishes.yes or self._asked.allow(task, found)

    def _keep(self, room: LandingClone, task: Task, commit: str) -> None:
        """Protect a result from `git gc` before its gates run. Raises GitProblem if an object is missing."""
        if problem := room.keep(commit):
            raise GitProblem(f"the result of task {task.id} can't be kept in the repository: {problem}")
        if not self._is_sound:  # `_history` checks the objects of later tasks
            done = self._repo.run("fsck", "--connectivity-only", "--no-dangling", "--no-progress", commit)
            if done.code:
                raise GitProblem(f"the repository lacks objects: {command.error_text(done)}")
            self._is_sound = True

    # The target

    def _move(self, target: Target, task: Task, tip: str, commit: str, changes: Sequence[Change]) -> bool:
        """Move the target to the result, or let the result wait. Return True if another process moved the target."""
        result = Landed(task.id, commit)
        if target.remote:
            return self._push(target, Move((result,), target.ref, tip, commit, remote=target.remote))
        folders = checkouts.folders_of(self._repo, target.ref)
        others = "earlier results have not landed yet" if self._shelf.newest(target.name) else ""
        reason = others or _obstacle(folders, target, tip, changes)
        if not reason:
            move = Move((result,), target.ref, tip, commit, folders[0] if folders else "")
            if not journal.begin(self._store, move):
                return False
            reason = self._moved(move)
            if not reason:
                return False
            if self._targets.tip(target) != tip:
                return True
            if not folders:
                raise GitProblem(f"{target.name} can't be moved: {reason}")
        self._shelf.put(target, result)
        self._say(f"Task {task.id} is ready to land, but waits: {reason}")
        return False

    def _moved(self, move: Move) -> str:
        """Move a branch as the journal says; return why that failed, "" if it succeeded."""
        if move.checkout:
            problem = checkouts.fast_forward(move.checkout, move.new)
        else:
            done = self._repo.run("update-ref", "-m", "rooda tasks land", move.ref, move.new, move.old)
            problem = command.error_text(done) if done.code else ""
        if problem and move.checkout:
            self._complete(move)
        if not problem or self._targets.has(move.ref, move.new):
            self._record(move)
            problem = ""
        journal.end(self._store)
        return problem

    def _push(self, target: Target, move: Move) -> bool:
        """Push a result to the remote; return True if another push has moved the target in the meantime."""
        if not journal.begin(self._store, move):
            return False
        problem = self._targets.push(target, move.old, move.new)
        if problem:
            self._targets.fetch(target)
        if self._targets.has(move.ref, move.new):
            self._record(move)
            problem = ""
        journal.end(self._store)
        if problem and self._targets.tip(target) == move.old:
            raise GitProblem(f"git push failed: {problem}")
        return bool(problem)

    def _record(self, move: Move) -> None:
        for each in move.tasks:
            self._landed(each)

    def _landed(self, result: Landed, why: str = "") -> None:
        def landed(now: Task) -> Task:
            return now._replace(state=model.LANDED, reason=why) if now.state == model.COMPLETED else now

        task = self._store.change(result.id, landed, "landed", commit=result.commit)
        if task.state == model.LANDED:
            self._say(f"Task {task.id} landed on {task.target}: {task.title}")

    def _finish(self, target: Target) -> None:
        """Land the results that wait for a target, or record that the user has merged them already."""
        found = self._shelf.found(target.name)
        if not found:
            return
        tip = self._targets.tip(target)
        if self._targets.has(target.ref, found.newest):
            for each in found.tasks:
                self._landed(each)
            self._shelf.clear(target.name)
            return
        whole = all(self._store.get(each.id).state == model.COMPLETED for each in found.tasks)
        if not whole or not self._targets.is_part(tip, found.newest):
            self._shelf.clear(target.name)
            self._say(f"Landings that waited for {target.name} are redone: the branch or a task has changed.")
            return
        folders = checkouts.folders_of(self._repo, target.ref)
        reason = _obstacle(folders, target, tip, checkouts.changes(self._repo, tip, found.newest))
        move = Move(found.tasks, target.ref, tip, found.newest, folders[0] if folders else "")
        if not reason and journal.begin(self._store, move) and not (reason := self._moved(move)):
            self._shelf.clear(target.name)
        if reason:
            self._say(f"{len(found.tasks)} finished task{'s' * (len(found.tasks) > 1)} wait: {reason}")

    # After a kill

    def _recover(self) -> None:
        """Remove lock files left by killed git commands, and complete the move of a killed landing, if there is one."""
        checkouts.remove_own_locks(self._repo, (LANDING, *self._shelf.branches()))
        move = journal.current(self._store)
        if move is None:
            return
        if move.remote:
            self._targets.fetch(self._targets.of_ref(move.ref, move.remote))
        else:
            self._complete(move)
        if self._targets.has(move.ref, move.new):
            self._record(move)
        journal.end(self._store)

    def _complete(self, move: Move) -> None:
        """Set the checkout of a move that was cut off to the old or the new commit. Raises RoodaError if that fails."""
        since, problem = journal.begun_at(self._store), ""
        if move.checkout and not os.path.isdir(move.checkout):
            return
        if move.checkout and self._targets.commit(move.ref) == move.old:
            problem = checkouts.complete(move.checkout, move.ref, move.old, move.new, since)
        else:  # files and index were updated before the ref, so only lock files can be left
            repo = find(move.checkout) if move.checkout else self._repo
            checkouts.remove_locks(repo, move.ref, since, bool(move.checkout))
        if problem:
            hint = f"Look at the checkout: git -C {move.checkout} status. Then land again: rooda tasks land"
            raise RoodaError(f"A landing was cut off, and rooda can't complete it: {problem}.", hint, UNFINISHED)


def _path_of(row: str) -> str:
    """Return the path in a line of `git status --porcelain=v2` about a tracked file."""
    fields = {"1": 8, "2": 9, "u": 10}.get(row[:1], 0)
    return row.split(" ", fields)[-1].partition("\t")[0]


def _obstacle(folders: Sequence[str], target: Target, tip: str, changes: Sequence[Change]) -> str:
    if len(folders) > 1:
        return f"{target.name} is checked out in {' and '.join(folders)}"
    return checkouts.obstacle(folders[0], target.ref, tip, changes) if folders else ""


def _await_commands(path: str) -> int:
    """Wait for the git commands of a killed landing, then take the lock that they inherited; return its descriptor."""
    try:
        return lock.hold(path, PATIENCE)
    except OSError as problem:
        why = problem.strerror or problem
        raise Undecided(f"A git command of a killed landing still runs: {path}: {why}.", "Land again later.") from None


@contextmanager
def alone(store: Store, patient: bool = False) -> Iterator[None]:
    """Hold the lock of the merge queue. Raises Undecided if another landing is running.

    Git commands inherit a second lock. A landing waits for that lock, in case a killed landing left commands running.
    """
    path = store.place.lander
    files.make_folder(store.place.folder)
    if patient:
        lock.await_free(path, GIT_TIMEOUT)
    held = lock.acquire(path)
    if held is None:
        pid = lock.owner(path).get("pid", "unknown")
        raise Undecided(f"`rooda tasks land` is already running here (pid {pid}).", "Watch it: rooda tasks --watch")
    try:
        held.write_owner()
        commands = _await_commands(f"{path}.git")
        capture.inherited.append(commands)
        try:
            yield
        finally:
            capture.inherited.remove(commands)
            os.close(commands)
    finally:
        held.release()
