"""Takes the snapshots of a session. Each problem is reported once, and the loop continues."""

from collections.abc import Mapping, Sequence
from typing import Any

from rooda.base.json import Json
from rooda.errors import Interrupted
from rooda.git import command
from rooda.git.private import PrivateFiles
from rooda.git.repository import GitProblem, find
from rooda.git.retention import due_snapshots
from rooda.git.snapshots import KEEP, SnapshotTaker, prune
from rooda.run.event_records import Emit, Event, Problem, SnapshotOmitted, SnapshotTaken
from rooda.run.records import Owner


class Recorder:
    """Takes a snapshot at each event that begins or ends a turn, such as an iteration."""

    def __init__(self, workspace: str, run: str, owner: Owner, emit: Emit) -> None:
        self._workspace, self._run, self._owner, self._emit = workspace, run, owner, emit
        self._resumed = ""
        self._turn: int | None = None
        self._taker: SnapshotTaker | None = None
        self._failed = False
        self._reported: set[str] = set()
        self._left_out: set[str] = set()

    def before(self, event: Event) -> None:
        """Take the snapshot at the end of a turn before its event is written."""
        if self._turn is not None:
            self._handle(event.NAME, event.facts)

    def after(self, record: Json) -> None:
        """Take the snapshot at the beginning of a turn after its event is written."""
        if self._turn is None:
            self._handle(record["event"], record)

    def _handle(self, event: str, facts: Mapping[str, Any]) -> None:
        wanted, self._turn = due_snapshots(self._turn, *self._owner.kind.turn_of(event, facts))
        self._resumed = "yes" if event == "run.resumed" else self._resumed
        if wanted and not self._failed:
            self._take(wanted)

    def _take(self, wanted: Sequence[tuple[int, str]]) -> None:
        """Take the wanted snapshots from one read of the work tree: one turn may end where the next begins."""
        try:
            taker = self._taker = self._taker or self._new_taker()
            self._check_last(taker)
            seen, taker.resumed = taker.read(), self._resumed
            self._report_left_out(seen.left_out)
            for iteration, moment in wanted:
                snapshot, fresh = taker.save(seen, iteration, moment)
                if fresh:
                    self._emit(
                        SnapshotTaken(
                            iteration=iteration - 1,
                            moment=moment,
                            number=snapshot.number,
                            ref=snapshot.ref,
                            commit=snapshot.commit,
                        )
                    )
            if text := command.warning(self._workspace):
                self._report(text)
            if seen.trouble:
                self._report(f"The snapshots are incomplete: {seen.trouble}")
        except GitProblem as problem:
            self._failed = self._taker is None
            rest = "; the loop continues without snapshots" if self._failed else ""
            self._report(f"No snapshot: {problem.what}{rest}")
        except Interrupted:
            self._report("No snapshot: a signal ended git")
        except OSError as problem:
            self._report(f"No snapshot: {problem.filename or 'the work tree'}: {problem.strerror or problem}")

    def _check_last(self, taker: SnapshotTaker) -> None:
        """Restore the newest snapshot's refs if an agent moved or deleted them."""
        try:
            if found := taker.put_back():
                self._emit(Problem(text=f"A snapshot was changed: {found}"))
        except GitProblem as problem:
            self._report(f"The newest snapshot is lost: {problem.what}")

    def _report_left_out(self, paths: Sequence[str]) -> None:
        """Report private files that are left out of the snapshots, each once."""
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

    def _report(self, text: str) -> None:
        if text not in self._reported:
            self._reported.add(text)
            self._emit(Problem(text=text))
