"""Copies a task's work from its clone into the user's repository at the end of each iteration of the loop."""

from collections.abc import Callable

from rooda.git import clones
from rooda.git.clones import Loan
from rooda.git.repository import Repo, find, read_head
from rooda.run.event_records import Emit, Event
from rooda.run.git_problems import GitProblems


class Lending:
    """Fetches a clone's HEAD and newest snapshot into the repository that the clone borrows objects from."""

    def __init__(self, top: str, loan: Loan, emit: Emit, newest: Callable[[], str]) -> None:
        """`newest`: returns the commit of the session's newest snapshot, "" if there is none."""
        self._top, self._loan, self._newest = top, loan, newest
        self._problems = GitProblems(emit)
        self._published = ("", "")
        self._repo: Repo | None = None

    def publish(self, event: Event) -> None:
        """Fetch HEAD and the newest snapshot, if one of them has changed since the last fetch."""
        self._problems.attempt(self._publish, "The work is not in the repository yet")

    def _publish(self) -> None:
        self._repo = self._repo or find(self._top)
        now = read_head(self._repo).commit, self._newest()
        if not now[0] or now == self._published:
            return
        if problem := clones.publish(self._loan, self._top, *now):
            self._problems.report(f"The work is not in the repository {self._loan.lender} yet: {problem}")
        else:
            self._published = now
