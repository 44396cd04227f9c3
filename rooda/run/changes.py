"""Reads, commits and undoes an iteration's changes to the work tree. Does nothing without a git repository."""

from typing import TYPE_CHECKING

from rooda.errors import Interrupted
from rooda.git import commits
from rooda.git.commits import Committed
from rooda.git.private import PrivateFiles
from rooda.git.repository import GitProblem, find
from rooda.git.snapshots import SnapshotTaker
from rooda.run.event_records import Emit
from rooda.run.git_problems import GitProblems

if TYPE_CHECKING:
    from rooda.run.recorder import Recorder

_DETACHED = "HEAD is detached: the commits of this run belong to no branch. Keep them: git switch -c NAME"
_LOST = "Not committed: the earlier work tree is no longer in git. Later changes will be committed"


class Changes:
    """The changes of one session to the work tree. Each problem is reported once, and the loop continues.

    `recorder` takes the session's snapshots; None means that none are taken.
    `family` names the private index; see `snapshots.index_of`.
    """

    def __init__(self, workspace: str, family: str, recorder: "Recorder | None", emit: Emit, resumed: bool) -> None:
        self._workspace, self._family, self._recorder = workspace, family, recorder
        self._resumed = resumed
        self._taker: SnapshotTaker | None = None
        self._problems = GitProblems(emit)

    def tree(self, fresh: bool = True) -> str:
        """Return the ID of a git tree with the work tree's files; "" if some of them can't be read.

        With `fresh` false, return the tree of the snapshot taken when the iteration began, if there is one.
        """
        known = self._recorder.began if self._recorder and not fresh else None
        return known.tree if known else self._problems.attempt(self._read, "The work tree can't be compared") or ""

    def commit(self, base: str, message: str) -> Committed:
        """Commit the paths that differ from the tree `base`; git runs the user's commit hooks."""
        try:
            taker = self._open()
            made = commits.commit(taker.repo, base, taker.read().tree, message)
        except GitProblem as problem:
            return Committed(refused=problem.what)
        except Interrupted:
            return Committed(refused="a signal ended git")
        if made.detached:
            self._problems.report(_DETACHED)
        if made.lost:
            self._problems.report(_LOST)
        return made

    def undo(self, number: int) -> str:
        """Restore the files as they were before iteration `number`; return the ref of the undone changes, or ""."""
        return self._recorder.undo(number) if self._recorder else ""

    def finish_undo(self, began: str, kept: str) -> None:
        """Finish an undo that was cut off while it restored the snapshot `began`; `kept` has the undone changes."""
        if self._recorder:
            self._recorder.finish_undo(began, kept)

    def begin_repeated(self, began: str) -> None:
        """Choose `began` as the snapshot for an undo of the next iteration, which repeats a cut-off iteration."""
        if self._recorder:
            self._recorder.begin_repeated(began)

    def _read(self) -> str:
        seen = self._open().read()
        return "" if seen.trouble else seen.tree

    def _open(self) -> SnapshotTaker:
        if self._recorder:
            return self._recorder.taker()
        if self._taker is None:
            repo = find(self._workspace)
            self._taker = SnapshotTaker(repo, ("", "", "", self._family), PrivateFiles(repo, kept=self._resumed))
        return self._taker
