"""The ledger of a run: whom it has started and not yet ended, on disk in the lock's file before the agent begins."""

from collections.abc import Callable

from rooda.base.json import Json
from rooda.processes import identity
from rooda.processes.lock import Lock

Complain = Callable[[str], None]


class Ledger:
    """Best effort, like all persistence: what can't be noted is said, and the loop goes on."""

    def __init__(self, held: Lock | None, run: str, complain: Complain) -> None:
        self._held, self._run, self._told, self._say = held, run, "", complain
        self._calls: list[Json] = []
        self._note()
        self.sync()

    def turn(self) -> None:
        """Whoever was entered has ended; it is written with the next who begins."""
        self._calls, self._told = [], ""

    def enter(self, pid: int, command: str) -> None:
        """This process is about to become an agent."""
        self._calls.append({"pid": pid, "start": identity.start_of(pid), "command": command})
        self._note()

    def sync(self) -> None:
        """On the platter too: the run before its first agent, a pid while its process works.

        A power cut that forgets a pid has ended its process; any other death of ours leaves what was written.
        """
        try:
            if self._held:
                self._held.sync()
        except OSError:
            pass  # what could not be written has been said

    def renew(self) -> bool:
        """An agent may have cleaned our folder away; then the lock must be held anew. False: another run has it now."""
        try:
            if self._held and not self._held.renew():
                self._complain("the lock was deleted, and another run has begun here since; this one makes way for it")
                self.abandon()
                return False
        except OSError as problem:
            self._complain(f"the lock is gone and can't be made again ({problem.strerror})")
        return True

    def abandon(self) -> None:
        """We are as good as dead: the next run may begin, and ends whom we have not ended by then."""
        if self._held:
            self._held.let_go()
            self._held = None

    def close(self) -> None:
        """Nobody is left."""
        try:
            if self._held:
                self._held.release()
        except OSError:
            pass  # the next start looks for survivors, and finds none

    def _complain(self, text: str) -> None:
        """Once in a turn is enough."""
        if text != self._told:
            self._told = text
            self._say(text)

    def _note(self) -> None:
        try:
            if self._held:
                self._held.note(self._run, self._calls)
        except OSError as problem:
            why = problem.strerror or str(problem)
            self._complain(f"the ledger of running agents can't be written ({why}); a crash may leave one alive")
