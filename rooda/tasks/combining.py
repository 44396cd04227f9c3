"""Makes the commit that would land, in a clone that the merge queue keeps for each target."""

import os
from collections.abc import Callable, Sequence

from rooda.base import files
from rooda.git import checkouts, clones, command
from rooda.git.checkouts import Change
from rooda.git.clones import Loan
from rooda.git.repository import GitProblem, Repo, find, has_commit
from rooda.git.traces import head_commit
from rooda.loops import new_worktree
from rooda.run.setup import NewWorktree
from rooda.settings.layers import Settings
from rooda.tasks import queue, work
from rooda.tasks.model import Task
from rooda.tasks.queue import History, Refusal
from rooda.tasks.store import Place

LANDING = "refs/rooda/landing"
BRANCH = "landing"  # branch that a new clone checks out; results are made on a detached HEAD
REMAINS = ("rebase-merge", "rebase-apply", "MERGE_HEAD", "MERGE_MODE", "MERGE_MSG", "SQUASH_MSG", "AUTO_MERGE",
           "CHERRY_PICK_HEAD", "REBASE_HEAD")  # fmt: skip
_REBASE = ("-c", "rebase.updateRefs=false", "-c", "rebase.backend=merge", "-c", "rebase.autoSquash=false")


class LandingClone:
    """The clone in which the results for one target branch are made and checked."""

    def __init__(
        self, found: Settings, wanted: NewWorktree, place: Place, target: str, say: Callable[[str], None]
    ) -> None:
        self._wanted, self._lender, self._say = wanted, place.repo, say
        name = "land-" + "".join(sign if sign.isalnum() else "-" for sign in target)
        self._root = os.path.join(work.home_of(found, place), name)
        self._loan = Loan(place.repo.top, os.path.realpath(place.repo.common), LANDING)
        self._repo: Repo | None = None
        self._clean_at = ""  # commit that is checked out with unchanged tracked files; "" if unknown

    def at(self, tip: str) -> Repo:
        """Check out a commit of the target, delete untracked files that git does not ignore, and return the clone."""
        try:
            repo = self._repo or self._ready(tip)
            self._check_out(repo, tip)
        except GitProblem:  # a gate may have damaged the clone
            repo = self._ready(tip)
        self._repo = repo
        return repo

    def _ready(self, tip: str) -> Repo:
        """Open the clone. Make it if it is missing, or if a kill has left it unusable."""
        if os.path.isdir(self._root):
            try:
                repo = self._found()
                for name in files.list_folder(repo.folder):
                    if name in REMAINS or name.endswith(".lock"):  # no other process works in this clone
                        files.remove_tree(os.path.join(repo.folder, name))
                self._check_out(repo, tip)
                return repo
            except (GitProblem, OSError) as problem:
                self._say(f"The clone {self._root} is unusable, so rooda makes it again: {problem}")
                files.remove_tree(self._root)
        unfinished = f"{self._root}{work.NEW}"
        files.remove_tree(unfinished)
        clones.make(self._lender, unfinished, BRANCH, tip, self._loan)
        inner = os.path.normpath(os.path.join(unfinished, self._lender.prefix))
        files.make_folder(inner)
        new_worktree.prepare(self._wanted, self._lender.workspace, inner, self._say)
        files.rename(unfinished, self._root)
        clones.mark(self._root, self._loan)
        return self._found()

    def _found(self) -> Repo:
        """Open the clone's repository. Raises GitProblem if git finds another repository at that path."""
        inner = os.path.normpath(os.path.join(self._root, self._lender.prefix))
        files.make_folder(inner)
        repo = find(inner)
        if os.path.realpath(repo.top) != os.path.realpath(self._root) or clones.loan_of(self._root) != self._loan:
            raise GitProblem(f"{self._root} is not the landing clone of {self._lender.top}")
        objects = os.path.join(self._loan.common, "objects")  # the lender then has all results, too
        alone = {**os.environ, "GIT_CEILING_DIRECTORIES": os.path.dirname(repo.top)}  # a gate may delete its .git
        alone["GIT_NO_REPLACE_OBJECTS"] = "1"
        return repo._replace(env=command.with_identity(repo.top, alone), objects=objects)

    def _check_out(self, repo: Repo, commit: str) -> None:
        if commit != self._clean_at:
            repo.run_checked("checkout", "-q", "-f", "--detach", commit)
        repo.run_checked("clean", "-ffdq")  # deletes empty folders too, which `git status` does not list
        self._clean_at = ""  # the caller may change the files

    def note_clean(self, commit: str) -> None:
        """Record that the clone has this commit checked out with unchanged tracked files."""
        self._clean_at = commit

    def fill_submodules(self, clone: Repo) -> None:
        """Check out each submodule at the commit that the result sets, without fetching."""
        if os.path.isdir(os.path.join(clone.folder, "modules")):
            clone._replace(objects="").run("submodule", "-q", "update", "--no-fetch", "--force")

    def combined(self, clone: Repo, task: Task, tip: str, history: History, squash: bool) -> str | Refusal:
        """Make the commit that would land; return it, or a refusal after a conflict. Raises GitProblem if git fails."""
        how = queue.way(history, squash)
        if how == "as-is":
            clone.run_checked("checkout", "-q", "--detach", task.head)
            return task.head
        if how == "rebase":
            if clone.run(*_REBASE, "rebase", "-q", "--no-autosquash", tip, task.head).code:
                return _conflict(clone, task, ("rebase", "--abort"))
        elif how == "squash":
            if clone.run("merge", "-q", "--squash", task.head).code:
                return _conflict(clone, task, ("reset", "-q", "--hard"))
            if clone.run("diff", "--cached", "--quiet").code:
                text = files.to_bytes(queue.message(task, task.session))
                clone.run_checked("commit", "-q", "--cleanup=whitespace", "-F", "-", stdin=text)
        else:
            said = f"Merge {task.branch}: {task.title}"
            if clone.run("merge", "-q", "--no-ff", "--no-verify-signatures", "-m", said, task.head).code:
                return _conflict(clone, task, ("merge", "--abort"))
        return head_commit(clone.top) or clone.text("rev-parse", "HEAD")

    def keep(self, commit: str) -> str:
        """Protect a result from `git gc` by a ref in the user's repository; return git's error, "" if there is none."""
        done = self._lender.run("update-ref", self._loan.ref, commit)
        return command.error_text(done) if done.code else ""


def lost_submodule(lender: Repo, changes: Sequence[Change]) -> str:
    """Return the path of a submodule that the result sets to a commit that only the task's clone has; "" if none."""
    for change in changes:
        if change.new_mode == checkouts.NESTED:
            folder = os.path.join(lender.top, change.path)
            if os.path.lexists(os.path.join(folder, ".git")) and not has_commit(folder, change.new):
                return change.path
    return ""


def _conflict(clone: Repo, task: Task, undo: Sequence[str]) -> Refusal:
    names = clone.lines("diff", "--name-only", "--diff-filter=U")
    done = clone.run("diff")
    clone.run(*undo)
    if not names:
        raise GitProblem(f"git could not combine task {task.id} with {task.target}: {command.error_text(done)}")
    return queue.conflict(task.target, names, files.to_text(done.out))
