"""Reports failures of git as events. Each text is reported once in a session, and the loop continues."""

from collections.abc import Callable
from typing import TypeVar

from rooda.errors import Interrupted
from rooda.git.repository import GitProblem
from rooda.run.event_records import Emit, Problem

T = TypeVar("T")


class GitProblems:
    """Calls functions that use git, and reports their failures instead of raising them."""

    def __init__(self, emit: Emit, consequence: Callable[[], str] = lambda: "") -> None:
        """`consequence`: called when git fails; returns what to add to the report."""
        self._emit, self._consequence = emit, consequence
        self._reported: set[str] = set()

    def attempt(self, work: Callable[[], T], what: str) -> T | None:
        """Return the result of `work`. If it fails, report `what: problem` and return None."""
        try:
            return work()
        except GitProblem as problem:
            advice = f". {problem.hint}" if "safe.directory" in problem.hint else ""
            self.report(f"{what}: {problem.what}{self._consequence()}{advice}")
        except Interrupted:
            self.report(f"{what}: a signal ended git")
        except OSError as problem:
            self.report(f"{what}: {problem.filename or 'the work tree'}: {problem.strerror or problem}")
        return None

    def report(self, text: str) -> None:
        if text not in self._reported:
            self._reported.add(text)
            self._emit(Problem(text=text))
