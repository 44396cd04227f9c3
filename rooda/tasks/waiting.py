"""Keeps results of landings until the user's checkout is clean, on a branch for each target such as `rooda/next`."""

import shlex
from collections.abc import Iterator

from rooda.base import files
from rooda.git import checkouts
from rooda.git.checkouts import HEADS
from rooda.tasks import journal
from rooda.tasks.journal import Landed, Waiting
from rooda.tasks.store import Store
from rooda.tasks.targets import Target

NEXT = "next"


class Shelf:
    """The results that wait. The file that lists them is decisive; the branches protect them from `git gc`."""

    def __init__(self, store: Store, prefix: str) -> None:
        self._store, self._repo, self._prefix = store, store.place.repo, prefix
        self._rows = journal.waiting(store)

    def targets(self) -> list[str]:
        return [*self._rows]

    def found(self, target: str) -> Waiting | None:
        return self._rows.get(target)

    def newest(self, target: str) -> str:
        """Return the last of the commits that wait for a target; "" if none waits. The next result builds on it."""
        return self._rows[target].newest if target in self._rows else ""

    def ids(self, target: str) -> set[int]:
        return {task.id for task in self._rows[target].tasks} if target in self._rows else set()

    def put(self, target: Target, result: Landed) -> None:
        """Add a result after those that wait for the same target. Raises GitProblem if git fails."""
        before = self._rows.get(target.name) or Waiting(target.name, self._free_name(target.name), "", ())
        if before.tasks and not self._is_ours(before):
            before = before._replace(branch=self._free_name(target.name))
        self._rows[target.name] = before._replace(newest=result.commit, tasks=(*before.tasks, result))
        journal.keep_waiting(self._store, [*self._rows.values()])
        self._repo.run_checked("update-ref", "-m", "rooda tasks land", before.branch, result.commit)

    def _is_ours(self, row: Waiting) -> bool:
        """True if the user has neither moved the branch nor checked it out. A missing branch counts as untouched."""
        now = self._tip(row.branch)
        is_known = now in ("", *(task.commit for task in row.tasks))
        return is_known and not checkouts.folders_of(self._repo, row.branch)

    def _tip(self, ref: str) -> str:
        return files.to_text(self._repo.run("rev-parse", "--verify", "-q", ref).out).strip()

    def _free_name(self, target: str) -> str:
        """Return the full name of a branch that does not exist: rooda/next, or another one if that is taken."""
        slug = "".join(sign if sign.isalnum() else "-" for sign in target)
        number, name = 1, f"{HEADS}{self._prefix}/{NEXT}"
        while self._tip(name) or name in self.branches():
            name = f"{HEADS}{self._prefix}/{NEXT}-{slug}{f'-{number}' if number > 1 else ''}"
            number += 1
        return name

    def branches(self) -> list[str]:
        return [row.branch for row in self._rows.values()]

    def clear(self, target: str) -> None:
        """Forget the results that wait for a target; delete their branch unless the user moved or checked it out."""
        row = self._rows.pop(target)
        if self._is_ours(row) and (now := self._tip(row.branch)):
            self._repo.run("update-ref", "-d", row.branch, now)
        journal.keep_waiting(self._store, [*self._rows.values()])

    def commands(self) -> Iterator[str]:
        """Yield the commands with which the user merges the results that wait."""
        for row in self._rows.values():
            folders = checkouts.folders_of(self._repo, f"{HEADS}{row.target}")
            where = shlex.quote(folders[0] if folders else self._repo.top)
            yield f"git -C {where} merge --ff-only {shlex.quote(row.branch.removeprefix(HEADS))}"


def newest(store: Store, target: str, tip: str) -> str:
    """Return the commit on which the next result builds: the newest that waits if it contains the tip, else the tip."""
    row = journal.waiting(store).get(target)
    if row and store.place.repo.run("merge-base", "--is-ancestor", tip, row.newest).code == 0:
        return row.newest
    return tip
