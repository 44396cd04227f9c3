"""The merge queue of `rooda tasks land`: brings completed tasks to their target, one at a time, each checked by gates.

Every result is made and checked in a clone of its own. The target moves by compare-and-swap only, and `landing.json` is
written before and deleted after it, so that the next landing completes what a kill left half done.
"""

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from rooda.base import files, json
from rooda.errors import OK, UNDECIDED, UNFINISHED, StateDamaged, Undecided, UsageProblem
from rooda.git import clones, command
from rooda.git.clones import Loan
from rooda.git.repository import GIT_TIMEOUT, Repo, find
from rooda.loops import new_worktree
from rooda.processes import lock
from rooda.run.events import encoded
from rooda.run.records import Gate
from rooda.run.setup import NewWorktree
from rooda.settings.layers import Settings
from rooda.tasks import gates, model, queue, work
from rooda.tasks.model import Task
from rooda.tasks.queue import History, Refusal
from rooda.tasks.store import Store

LANDING = "refs/rooda/landing"
NEXT = "next"  # the branch, below the prefix, on which results wait for a checkout that is not clean
REMOTES = "refs/remotes/"


class Wishes(NamedTuple):
    """The options of `rooda tasks land`."""

    attempts: int = 2
    no_gates: bool = False
    yes: bool = False
    target: str = ""  # "" = all targets


class Journal(NamedTuple):
    """What is about to move: the branch, from where to where, and the checkout that holds it."""

    task: int
    branch: str  # full name of the ref
    old: str
    new: str
    checkout: str = ""  # the work tree whose files move, too


class Queue:
    """Lands the completed tasks of one repository."""

    def __init__(
        self,
        store: Store,
        found: Settings,
        wanted: NewWorktree,
        wishes: Wishes,
        say: Callable[[str], None],
        allow: Callable[[Task, Sequence[str]], bool],
    ) -> None:
        self._store, self._found, self._wanted, self._wishes = store, found, wanted, wishes
        self._say, self._allow, self._repo = say, allow, store.place.repo
        self._squash = bool(found.table("tasks").get("squash", False))
        self._journal = os.path.join(store.place.folder, "landing.json")
        self._waits = ""  # the command that finishes what waits for a person
        self._code = OK

    def run(self) -> int:
        """Land what can land; return the exit code. Raises Undecided if another landing goes on."""
        held = lock.acquire(self._store.place.lander)
        if held is None:
            pid = lock.owner(self._store.place.lander).get("pid", "unknown")
            raise Undecided(f"`rooda tasks land` is already running here (pid {pid}).", "Watch it: rooda tasks --watch")
        held.write_owner()
        try:
            self._recover()
            self._finish_next()
            for target in queue.targets(self._store.all().values()):
                if self._wishes.target in ("", target):
                    self._land_target(target)
        finally:
            held.release()
        if self._waits:
            self._say(self._waits)
        return self._code

    def _land_target(self, target: str) -> None:
        skipped: set[int] = set()
        while ready := [task for task in queue.due(self._store.all().values(), target) if task.id not in skipped]:
            task = ready[0]
            if not self._land(task):
                skipped.add(task.id)

    def _land(self, task: Task) -> bool:
        """Land a task; False if it stays completed. True if it landed or went back."""
        tip = self._tip(task.target)
        clone = self._clone(task.target, tip)
        history = self._history(task, tip)
        how = queue.way(history, self._squash)
        if how == "done":
            self._landed(task, tip, "its branch has nothing that the target lacks")
            return True
        if not self._may_change(task, tip):
            self._code = UNDECIDED
            return False
        checks = gates.of_target(self._found, clone, task)
        if not checks and not self._wishes.no_gates:
            self._say(f"Task {task.id}: there are no gates to check it with; land it without any: --no-gates")
            self._code = UNDECIDED
            return False
        found = self._combined(clone, task, tip, how)
        found = found if isinstance(found, Refusal) else self._checked(clone, task, found, checks)
        if isinstance(found, Refusal):
            self._send_back(task, found, tip)
            return True
        return self._move(task, tip, found)

    def _send_back(self, task: Task, refusal: Refusal, tip: str) -> None:
        attempts = self._wishes.attempts
        after = self._store.change(
            task.id,
            lambda now: queue.reopened(now, refusal, attempts, tip) if now.state == model.COMPLETED else now,
            "refused",
            why=refusal.text,
        )
        self._say(f"Task {task.id} {after.state}: {refusal.text}")
        self._code = self._code or UNFINISHED

    # The result, in the landing clone

    def _tip(self, target: str) -> str:
        """Return the commit that the next result begins with: that of `rooda/next` while results wait there."""
        remote, _, branch = target.partition("/")
        if branch and not self._ref(f"{work.HEADS}{target}") and remote in self._repo.lines("remote"):
            done = self._outside("fetch", "-q", remote, branch)
            if done:
                raise UsageProblem(f"git fetch {remote} {branch} failed: {done}")
        return self._ref(self._next(target)) or work.tip_of(self._repo, target)

    def _next(self, target: str) -> str:
        prefix = str(self._found.table("tasks").get("branch_prefix", "rooda")).strip("/")
        return f"{work.HEADS}{prefix}/{NEXT}" if self._waiting_for(target) else ""

    def _waiting_for(self, target: str) -> bool:
        try:
            return str(json.parse_object(files.read_ours(self._waiting_file))["target"]) == target
        except (OSError, ValueError, KeyError):
            return False

    @property
    def _waiting_file(self) -> str:
        return os.path.join(self._store.place.folder, "next.json")

    def _ref(self, name: str) -> str:
        if not name:
            return ""
        done = self._repo.run("rev-parse", "--verify", "-q", f"{name}^{{commit}}")
        return files.to_text(done.out).strip() if done.code == 0 else ""

    def _clone(self, target: str, tip: str) -> Repo:
        """Return the clone in which results for a target are made, at the target's tip and clean."""
        name = "land-" + "".join(sign if sign.isalnum() else "-" for sign in target)
        root = os.path.join(work.home_of(self._found, self._store.place), name)
        loan = Loan(self._repo.top, os.path.realpath(self._repo.common), LANDING)
        if not os.path.isdir(root):
            files.remove_tree(f"{root}{work.NEW}")
            clones.make(self._repo, f"{root}{work.NEW}", NEXT, tip, loan)
            inner = os.path.normpath(os.path.join(f"{root}{work.NEW}", self._repo.prefix))
            files.make_folder(inner)
            new_worktree.prepare(self._wanted, self._repo.workspace, inner, self._say)
            files.rename(f"{root}{work.NEW}", root)
            clones.mark(root, loan)
        repo = find(os.path.normpath(os.path.join(root, self._repo.prefix)))
        for name in ("index.lock", "HEAD.lock"):  # a kill left them; nothing else works in this clone
            files.remove(os.path.join(repo.folder, name))
        for words in (("rebase", "--quit"), ("merge", "--quit")):
            repo.run(*words)
        repo.run_checked("checkout", "-q", "-f", "--detach", tip)
        repo.run_checked("clean", "-fdq")
        return repo

    def _history(self, task: Task, tip: str) -> History:
        def is_part(older: str, newer: str) -> bool:
            return self._repo.run("merge-base", "--is-ancestor", older, newer).code == 0

        merges = self._repo.text("rev-list", "--count", "--merges", f"{tip}..{task.head}")
        return History(is_part(task.head, tip), merges != "0", is_part(tip, task.head))

    def _combined(self, clone: Repo, task: Task, tip: str, how: str) -> str | Refusal:
        """Make the commit that would land, in the clone; return it, or why it can't be made."""
        used = clone._replace(env=command.with_identity(clone.top, clone.env or os.environ))
        if how == "as-is":
            used.run_checked("checkout", "-q", "-f", "--detach", task.head)
        elif how == "rebase":
            used.run_checked("checkout", "-q", "-f", "--detach", task.head)
            if used.run("rebase", "-q", "--no-autosquash", "--no-update-refs", tip).code:
                return self._conflict(used, task, ("rebase", "--abort"))
        else:
            squash = ["--squash"] if how == "squash" else ["--no-ff", "-m", f"Merge {task.branch}: {task.title}"]
            if used.run("merge", "-q", *squash, task.head).code:
                return self._conflict(used, task, ("merge", "--abort"))
            if how == "squash" and used.run("diff", "--cached", "--quiet").code:
                used.run_checked("commit", "-q", "-F", "-", stdin=files.to_bytes(queue.message(task, task.session)))
        return used.text("rev-parse", "HEAD")

    def _conflict(self, clone: Repo, task: Task, undo: Sequence[str]) -> Refusal:
        names = clone.lines("diff", "--name-only", "--diff-filter=U")
        hunks = files.to_text(clone.run("diff").out)
        if clone.run(*undo).code:
            clone.run("reset", "-q", "--hard")
        return queue.conflict(task.target, names, hunks)

    def _checked(self, clone: Repo, task: Task, commit: str, checks: Sequence[Gate]) -> str | Refusal:
        """Run the gates on the result; return its commit, or why it is refused. A gate may not change tracked files."""
        for gate in checks:
            self._say(f"Task {task.id}: {gate.name}")
            result = gates.run(gate, clone, os.path.join(self._store.place.folder, "gate.out"))
            changed = clone.lines("status", "--porcelain", "--untracked-files=no")
            if result.verdict or changed:
                verdict = result.verdict or f"it changed {changed[0][3:]}"
                return queue.red(task.target, gate.name, verdict, result.output)
        if clone.text("rev-parse", "HEAD") != commit:
            return queue.red(task.target, checks[-1].name, "it moved HEAD", "")
        return commit

    def _may_change(self, task: Task, tip: str) -> bool:
        """True unless the branch changes what decides about gates, and the user does not want that."""
        names = self._repo.lines("diff", "--name-only", f"{tip}...{task.head}")
        found = queue.watched(names)
        return not found or self._wishes.yes or self._allow(task, found)

    # The target

    def _move(self, task: Task, tip: str, commit: str) -> bool:
        """Move the target to the result; False if the result waits for the user."""
        loan = Loan(self._repo.top, os.path.realpath(self._repo.common), LANDING)
        root = os.path.join(work.home_of(self._found, self._store.place))
        name = "land-" + "".join(sign if sign.isalnum() else "-" for sign in task.target)
        if problem := clones.publish(loan, os.path.join(root, name), commit):
            raise UsageProblem(f"The result of task {task.id} can't be brought into the repository: {problem}")
        if problem := self._git_problem("fsck", "--connectivity-only", "--no-dangling", commit):
            raise UsageProblem(f"The result of task {task.id} lacks objects: {problem}", "Nothing was landed.")
        if self._is_remote(task.target):
            return self._push(task, tip, commit)
        branch = f"{work.HEADS}{task.target}"
        checkout = self._checkout_of(branch)
        if self._waiting_for(task.target) or (checkout and not _is_clean(checkout, tip, commit)):
            return self._wait(task, tip, commit, checkout)
        self._write_journal(Journal(task.id, branch, tip, commit, checkout))
        problem = _fast_forward(checkout, commit) if checkout else self._swap(branch, tip, commit)
        if problem and self._ref(branch) != commit:
            self._drop_journal()
            if self._ref(branch) != tip:
                return True  # somebody moved the target: the queue looks again
            raise UsageProblem(f"{task.target} could not be moved: {problem}", "Land again: rooda tasks land")
        self._landed(task, commit)
        self._drop_journal()
        return True

    def _swap(self, branch: str, old: str, new: str) -> str:
        return self._git_problem("update-ref", "-m", "rooda tasks land", branch, new, old)

    def _landed(self, task: Task, commit: str, why: str = "") -> None:
        self._store.change(
            task.id,
            lambda now: (
                now._replace(state=model.LANDED, reason=why, head=now.head) if now.state != model.CANCELLED else now
            ),
            "landed",
            commit=commit,
        )
        self._say(f"Task {task.id} landed on {task.target}: {task.title}")

    def _is_remote(self, target: str) -> bool:
        remote = target.partition("/")[0]
        return not self._ref(f"{work.HEADS}{target}") and remote in self._repo.lines("remote")

    def _push(self, task: Task, tip: str, commit: str) -> bool:
        remote, _, branch = task.target.partition("/")
        lease = f"--force-with-lease={branch}:{tip}"
        self._write_journal(Journal(task.id, f"{REMOTES}{task.target}", tip, commit))
        problem = self._outside("push", "-q", lease, remote, f"{commit}:{work.HEADS}{branch}")
        self._drop_journal()
        if problem and self._tip(task.target) != tip:
            return True  # somebody was faster: the queue looks again
        if problem:
            raise UsageProblem(f"git push {remote} failed: {problem}", "Land again: rooda tasks land")
        self._landed(task, commit)
        return True

    def _outside(self, *words: str) -> str:
        """Run git with the user's own protocols and hooks; return its error, "" if it succeeded."""
        done = command.run([*words], self._repo.top, hooks=True, timeout=GIT_TIMEOUT)
        return command.error_text(done) if done.code else ""

    def _git_problem(self, *words: str) -> str:
        done = self._repo.run(*words)
        return command.error_text(done) if done.code else ""

    def _checkout_of(self, branch: str) -> str:
        """Return the work tree in which a branch is checked out; "" if there is none."""
        rows = files.to_text(self._repo.run("worktree", "list", "--porcelain", "-z").out).split("\0")
        folder = ""
        for row in rows:
            if row.startswith("worktree "):
                folder = row.removeprefix("worktree ")
            elif row == f"branch {branch}":
                return folder
        return ""

    # What waits for a clean checkout

    def _wait(self, task: Task, tip: str, commit: str, checkout: str) -> bool:
        """Leave the result on `rooda/next`; the task stays completed until the user has moved the target."""
        before = json.parse_object(files.read_ours(self._waiting_file)) if self._waiting_for(task.target) else {}
        tasks = [*before.get("tasks", []), {"id": task.id, "commit": commit}]
        prefix = str(self._found.table("tasks").get("branch_prefix", "rooda")).strip("/")
        name = f"{prefix}/{NEXT}"
        files.replace(self._waiting_file, encoded({"target": task.target, "tasks": tasks}).encode())
        self._repo.run_checked("update-ref", f"{work.HEADS}{name}", commit)
        self._say(f"Task {task.id} is ready on {name}: {checkout or task.target} has changes of yours")
        self._waits = f"git -C {checkout} merge --ff-only {name}" if checkout else f"git merge --ff-only {name}"
        self._code = self._code or UNFINISHED
        return False

    def _finish_next(self) -> None:
        """Record the tasks whose results the user has brought to the target by hand, or bring them now."""
        try:
            waiting = json.parse_object(files.read_ours(self._waiting_file))
        except (OSError, ValueError):
            return
        target = str(waiting.get("target"))
        branch, tip = f"{work.HEADS}{target}", self._ref(f"{work.HEADS}{target}")
        newest = self._ref(self._next(target))
        checkout = self._checkout_of(branch)
        is_part = self._repo.run("merge-base", "--is-ancestor", newest, tip).code == 0 if newest and tip else False
        if newest and not is_part and (not checkout or _is_clean(checkout, tip, newest)):
            self._write_journal(Journal(0, branch, tip, newest, checkout))
            problem = _fast_forward(checkout, newest) if checkout else self._swap(branch, tip, newest)
            self._drop_journal()
            is_part = not problem
        if is_part:
            for row in waiting.get("tasks", []):
                task = self._store.get(int(row["id"]))
                if task.state == model.COMPLETED:
                    self._landed(task, str(row["commit"]))
        if is_part or not newest or self._ref(branch) not in self._between(newest):
            files.remove(self._waiting_file)
            if newest:
                self._repo.run("update-ref", "-d", self._next_name(), newest)

    def _next_name(self) -> str:
        prefix = str(self._found.table("tasks").get("branch_prefix", "rooda")).strip("/")
        return f"{work.HEADS}{prefix}/{NEXT}"

    def _between(self, newest: str) -> set[str]:
        return {*self._repo.lines("rev-list", "--max-count=1000", newest)}

    # The journal

    def _write_journal(self, journal: Journal) -> None:
        files.replace(self._journal, encoded(journal._asdict()).encode() + b"\n")

    def _drop_journal(self) -> None:
        files.remove(self._journal)
        files.sync_parent(self._journal)

    def _recover(self) -> None:
        """Complete what a killed landing left half done."""
        try:
            journal = json.decode(Journal, json.parse_object(files.read_ours(self._journal)))
        except FileNotFoundError:
            return
        except (OSError, ValueError) as problem:
            raise StateDamaged(self._journal, str(problem)) from None
        if self._ref(journal.branch) == journal.old and journal.checkout:
            _complete(journal)
        if journal.task and self._ref(journal.branch) == journal.new:
            task = self._store.get(journal.task)
            if task.state == model.COMPLETED:
                self._landed(task, journal.new)
        self._drop_journal()


def _is_clean(checkout: str, tip: str, commit: str) -> bool:
    """True if index and files of a checkout are those of HEAD, and no untracked file is in the way of a commit."""
    repo = find(checkout)
    if repo.lines("status", "--porcelain", "--untracked-files=no"):
        return False
    added = repo.lines("diff", "--name-only", "--diff-filter=A", tip, commit)
    return not any(os.path.lexists(os.path.join(repo.top, name)) for name in added)


def _fast_forward(checkout: str, commit: str) -> str:
    done = find(checkout).run("merge", "-q", "--ff-only", commit)
    return command.error_text(done) if done.code else ""


def _complete(journal: Journal) -> None:
    """Complete a fast-forward that was killed between files and ref; UsageProblem if a file is neither old nor new."""
    repo = find(journal.checkout)
    rows = repo.text("diff", "--raw", "-z", "--no-abbrev", "--no-renames", journal.old, journal.new).split("\0")
    for facts, name in zip(rows[::2], rows[1::2], strict=False):
        _, _, old, new, _ = facts.split(" ")
        path = os.path.join(repo.top, name)
        now = repo.text("hash-object", "--", name) if os.path.isfile(path) else "0" * len(old)
        if os.path.lexists(path) and now not in (old, new):
            raise UsageProblem(
                f"A landing was cut off, and {path} has changed since.",
                f"Look at it: git -C {journal.checkout} status. Then land again: rooda tasks land",
            )
    files.remove(os.path.join(repo.folder, "index.lock"))
    repo.run_checked("read-tree", "--reset", "-u", journal.new)
    repo.run_checked("update-ref", "-m", "rooda tasks land", journal.branch, journal.new, journal.old)
