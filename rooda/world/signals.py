"""The only owner of signal handlers: they set a flag and wake the wait, nothing else."""

import os
import select
import signal
from types import FrameType, TracebackType
from typing import Any

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """A with-block in which INT, TERM and HUP are noted, and in which `wait` sleeps until something happens."""

    def __init__(self) -> None:
        self.first = 0  # decides the exit code
        self.count = 0

    def __enter__(self) -> "Signals":
        self._read, self._write = os.pipe()
        for end in (self._read, self._write):
            os.set_blocking(end, False)
        self._poll = select.poll()
        self._poll.register(self._read, select.POLLIN)
        self._old_wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._old: dict[signal.Signals, Any] = {number: signal.signal(number, self._note) for number in ENDING}
        self._old[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, _wake)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._old.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        signal.set_wakeup_fd(self._old_wakeup)
        os.close(self._read)
        os.close(self._write)

    def wait(self, seconds: float | None) -> None:
        """Sleep until a signal arrives, a child ends, or the time is over. No polling."""
        self._poll.poll(None if seconds is None else max(0.0, seconds) * 1000.0 + 0.5)
        try:
            while len(os.read(self._read, 4096)) == 4096:
                pass
        except BlockingIOError:
            pass

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.first = self.first or number
        self.count += 1


def _wake(number: int, frame: FrameType | None) -> None:
    """SIGCHLD needs a handler so that the wake-up descriptor gets its byte."""


def terminate(facts: dict[str, object]) -> bool:
    """SIGTERM to a process, if it is provably the one that `facts` were taken of."""
    from rooda.world import identity

    pid = facts.get("pid")
    if not isinstance(pid, int) or not identity.is_alive(facts):
        return False
    try:
        os.kill(pid, signal.SIGTERM)
    except OSError:
        return False
    return True
