"""Takes the snapshots of a session. Each problem is reported once, and the loop continues."""

from collections.abc import Mapping, Sequence
from typing import Any

from rooda.base.json import Json
from rooda.git import command, restore
from rooda.git.private import PrivateFiles
from rooda.git.repository import GitProblem, find
from rooda.git.retention import AFTER, BEFORE, UNDO, Snapshot, belongs_to_another_loop, due_snapshots
from rooda.git.snapshots import KEEP, SnapshotTaker, prune, snapshot_at
from rooda.git.work_tree import Reading
from rooda.run.event_records import Emit, Event, Problem, SnapshotOmitted, SnapshotTaken
from rooda.run.git_problems import GitProblems
from rooda.run.records import Owner


class Recorder:
    """Takes a snapshot at each event that begins or ends a turn, such as an iteration."""

    def __init__(self, workspace: str, run: str, owner: Owner, emit: Emit) -> None:
        self._workspace, self._run, self._owner, self._emit = workspace, run, owner, emit
        self._resumed = ""
        self._turn: int | None = None
        self._taker: SnapshotTaker | None = None
        self._failed = False
        self._problems = GitProblems(emit, self._consequence)
        self._left_out: set[str] = set()
        self.began: Snapshot | None = None  # the snapshot from the beginning of the current turn
        self._first: Snapshot | None = None  # that of a turn that a crash cut off, and that is repeated

    def before(self, event: Event) -> None:
        """Take the snapshot at the end of a turn, before the event that ends it is written."""
        if self._turn is not None:
            self._handle(event.NAME, event.facts)

    def after(self, record: Json) -> None:
        """Take the snapshot at the beginning of a turn, after the event that begins it is written."""
        if self._turn is None:
            self._handle(record["event"], record)

    def _handle(self, event: str, facts: Mapping[str, Any]) -> None:
        wanted, self._turn = due_snapshots(self._turn, *self._owner.kind.turn_of(event, facts))
        self._resumed = "yes" if event == "run.resumed" else self._resumed
        if wanted and not self._failed:
            self._take(wanted)

    @property
    def newest(self) -> str:
        """The commit of the newest snapshot; "" if there is none."""
        last = self._taker.last if self._taker else None
        return last.commit if last else ""

    def taker(self) -> SnapshotTaker:
        self._taker = self._taker or self._new_taker()
        return self._taker

    def undo(self, number: int) -> str:
        """Restore the files as they were when turn `number` began; return the ref that keeps what was undone, or ""."""
        taker, is_repeated = self._taker, bool(self._first and self._first.iteration == number)
        began = self._first if is_repeated else self.began
        if began is None or taker is None or began.iteration != number:
            self._problems.report("Not undone: there is no snapshot of the beginning of the iteration")
            return ""
        return self._problems.attempt(lambda: self._undo(taker, began), "Not undone") or ""

    def _undo(self, taker: SnapshotTaker, began: Snapshot) -> str:
        seen = taker.read()
        if seen.tree == began.tree:
            return ""
        for moment in (AFTER, UNDO):
            self._save(taker, seen, began.iteration, moment)
        kept, self._turn = taker.last, None  # the end of the turn is saved by now
        left_out = {*seen.left_out, *began.private}
        plan = restore.plan(
            taker.repo, seen.tree, began.tree, lambda path: belongs_to_another_loop(path, began), left_out
        )
        restore.apply(taker.repo, taker.index, plan)
        if left := restore.left_alone(plan):
            self._problems.report(f"Not all of iteration {began.iteration} was undone: {'; '.join(left)}")
        return kept.ref if kept else ""

    def begin_repeated(self, began: str) -> None:
        """Use `began`, the snapshot from when the cut-off turn began, for an undo of the turn that repeats it."""
        what = "The snapshot of the iteration that was cut off can't be read"
        self._first = self._problems.attempt(lambda: snapshot_at(self.taker().repo, began), what)

    def finish_undo(self, began: str, kept: str) -> None:
        """Finish an undo that was cut off.

        Restore each file that has not changed since the snapshot `kept` to its state in the snapshot `began`.
        """
        self._problems.attempt(lambda: self._finish_undo(began, kept), "An undo that was cut off can't be finished")

    def _finish_undo(self, began: str, kept: str) -> None:
        taker, target = self.taker(), snapshot_at(find(self._workspace), began)
        if target is None:
            return
        seen = taker.read()
        since = {row.path for row in restore.changes(taker.repo, kept, seen.tree)}  # restored, or changed later
        plan = restore.plan(
            taker.repo,
            seen.tree,
            target.tree,
            lambda path: path in since or belongs_to_another_loop(path, target),
            {*seen.left_out, *target.private},
        )
        if plan.changes:
            restore.apply(taker.repo, taker.index, plan)
            text = f"Finished undoing iteration {target.iteration}; what was undone is kept as {kept[:12]}"
            self._problems.report(text)

    def _take(self, wanted: Sequence[tuple[int, str]]) -> None:
        """Take the wanted snapshots from one read of the work tree: one turn may end just as the next begins."""
        self.began = None
        self._problems.attempt(lambda: self._take_from_one_read(wanted), "No snapshot")

    def _consequence(self) -> str:
        """If git failed at the first snapshot, stop taking snapshots. Return the text to add to the warning, or ""."""
        self._failed = self._taker is None
        return "; the loop continues without snapshots" if self._failed else ""

    def _take_from_one_read(self, wanted: Sequence[tuple[int, str]]) -> None:
        taker = self.taker()
        self._check_last(taker)
        seen, taker.resumed = taker.read(), self._resumed
        self._report_left_out(seen.left_out)
        for iteration, moment in wanted:
            made = self._save(taker, seen, iteration, moment)
            self.began = made if moment == BEFORE and not seen.trouble else None
        if text := command.warning(self._workspace):
            self._problems.report(text)
        if seen.trouble:
            self._problems.report(f"The snapshots are incomplete: {seen.trouble}")

    def _save(self, taker: SnapshotTaker, seen: Reading, iteration: int, moment: str) -> Snapshot:
        made, fresh = taker.save(seen, iteration, moment)
        if fresh:
            self._emit(
                SnapshotTaken(
                    iteration=iteration - 1, moment=moment, number=made.number, ref=made.ref, commit=made.commit
                )
            )
        return made

    def _check_last(self, taker: SnapshotTaker) -> None:
        """Restore the newest snapshot's refs if an agent moved or deleted them."""
        try:
            if found := taker.put_back():
                self._emit(Problem(text=f"A snapshot was changed: {found}"))
        except GitProblem as problem:
            self._problems.report(f"The newest snapshot is lost: {problem.what}")

    def _report_left_out(self, paths: Sequence[str]) -> None:
        """Report each private file that is left out of the snapshots, but only once."""
        new = [path for path in paths if path not in self._left_out]
        if new:
            self._left_out.update(new)
            self._emit(SnapshotOmitted(paths=new))

    def _new_taker(self) -> SnapshotTaker:
        repo, kind, name = find(self._workspace), self._owner.kind, self._owner.name
        family = kind.family(name)
        prune(repo, KEEP - 1, lambda tip: tip.family == family)
        private = None if self._owner.setup.snapshot_private else PrivateFiles(repo, kept=self._owner.resumed)
        return SnapshotTaker(repo, (self._run, kind.name, name, family), private)
