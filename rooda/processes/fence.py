"""The limits of one process: wall time, idle time, a cap on its output, and a last word that is no exit."""

import os
from collections.abc import Callable

from rooda.base import clock, files
from rooda.processes import ending, table

LOOKS = 4  # per idle timeout: how often growth and CPU use are looked at
BUSY = 0.02  # share of a processor that counts as work
LEAST = 0.05  # seconds of it; below that a short look tells nothing
CAP_LOOK = 1.0  # seconds between looks at a capped file


class Fence:
    """Asked by the wait: which limit has passed, and when to ask again. Without limits it never asks to be woken."""

    def __init__(
        self,
        output: str,
        timeout: float,
        idle: float,
        cap: int,
        exit_grace: float,
        finished: Callable[[], bool] | None,
    ) -> None:
        self._output, self._idle, self._cap = output, idle, cap
        self._finished, self._exit_grace = finished, exit_grace if finished else 0.0
        now = clock.monotonic()
        self._end = now + timeout if timeout else None
        self._grown = self._worked = self._looked = now
        self._size, self._cpu, self._dropped = 0, 0.0, 0
        self.slept = 0.0

    def due(self) -> tuple[str, float | None]:
        """The limit that has passed, if any, and how long to wait before asking again."""
        now = clock.monotonic()
        if self._end is not None and now >= self._end:
            return "timeout", None
        looks = [look for look in (self._idle / LOOKS, self._exit_grace, self._cap and CAP_LOOK) if look]
        if looks:
            self._look(now)
            if self._idle and now - max(self._grown, self._worked) >= self._idle:
                return "idle", None
            if self._exit_grace and now - self._grown >= self._exit_grace and self._finished and self._finished():
                return "finished", None
        if self._end is not None:
            looks.append(self._end - now)
        return "", min(looks, default=None)

    def shift(self, seconds: float) -> None:
        """Time that did not count: we were suspended."""
        self.slept += seconds
        self._end = None if self._end is None else self._end + seconds
        self._grown += seconds
        self._worked += seconds
        self._looked += seconds

    def size(self) -> int:
        """Bytes written so far, dropped ones included."""
        try:
            return os.stat(self._output).st_size + self._dropped
        except OSError:
            return self._dropped

    def _look(self, now: float) -> None:
        """Has it written, has it computed?"""
        size = self.size()
        if size != self._size:
            self._size, self._grown = size, now
            self._drop()
        if self._idle:
            cpu = table.cpu_seconds(table.descendants(os.getpid(), ending.spared))  # a hook's work is not its own
            passed = max(now - self._looked, 0.01)
            if cpu - self._cpu > max(BUSY * passed, min(LEAST, passed / 20)):
                self._worked = now
            self._cpu = cpu
        self._looked = now

    def _drop(self) -> None:
        """Over the cap the file starts anew: the end of an output says more than its beginning."""
        if self._cap and self._size - self._dropped > self._cap:
            self._dropped = self._size
            files.empty(self._output)
