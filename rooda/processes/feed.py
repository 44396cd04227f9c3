"""Runs a helper program in the background and feeds it lines. It can never block, delay or outlive the loop."""

import os
from collections import deque
from collections.abc import Mapping, Sequence

from rooda.base import clock
from rooda.processes import ending, supervise

MOST = 2048  # lines that wait until the helper reads them; the oldest are dropped
LONGEST = 4096  # bytes of a line: the system writes so many at once or not at all
STEP = 0.005  # seconds between two looks at the helper
MOST_SAID = 1000  # bytes read of what the helper says at its end
ENDED, FAILED, LATE = "ended", "failed", "late"


class Feed:
    """The helper program. It reads lines from stdin, ends at the end of input, and may print a line about a failure."""

    def __init__(self, argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> None:
        """Start the helper. Raises OSError or ValueError if that fails."""
        self.dropped = 0
        self._lines: deque[bytes] = deque()
        theirs, self._into = os.pipe()
        self._from, said = os.pipe()
        null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        try:
            self.pid = supervise.spawn(argv, cwd, env, (theirs, said, null))
        except (OSError, ValueError):
            os.close(self._into)
            os.close(self._from)
            raise
        finally:
            for descriptor in (theirs, said, null):
                os.close(descriptor)
        os.set_blocking(self._into, False)
        os.set_blocking(self._from, False)
        ending.spared.add(self.pid)  # a sweep after an agent call must not end it

    def send(self, line: bytes) -> None:
        """Send a line now, or as soon as the helper can take it."""
        if len(line) < LONGEST:
            self._lines.append(line + b"\n")
        if len(line) >= LONGEST or len(self._lines) > MOST:
            self._lines.popleft() if len(self._lines) > MOST else None
            self.dropped += 1
        self._flush()

    def _flush(self) -> bool:
        """Write the waiting lines; False if the helper can't take more now."""
        try:
            while self._lines:
                os.write(self._into, self._lines[0])
                self._lines.popleft()
        except BlockingIOError:
            return False
        except OSError:  # it has ended
            self.dropped += len(self._lines)
            self._lines.clear()
            ending.spared.discard(self.pid)  # another process may get its number
        return True

    def finish(self, seconds: float) -> tuple[str, str]:
        """Close the input and wait for the helper. Return how it ended (ENDED, FAILED or LATE), and what it printed."""
        deadline = clock.monotonic() + seconds
        while not self._flush() and clock.monotonic() < deadline:
            clock.sleep(STEP)
        os.close(self._into)
        try:
            how = self._awaited(deadline)
        except ChildProcessError:  # it was killed, and reaped with the orphans
            how = FAILED
        ending.spared.discard(self.pid)
        try:
            said = os.read(self._from, MOST_SAID)
        except OSError:
            said = b""
        os.close(self._from)
        return how, said.decode("utf-8", "replace").strip()

    def _awaited(self, deadline: float) -> str:
        """Wait for the helper's end, kill it at the deadline, and reap it. Return ENDED, FAILED or LATE."""
        left = deadline - clock.monotonic()
        done = ending.await_exits((self.pid,), left, lambda left: clock.sleep(min(left, STEP)))
        if not done:
            ending.kill(self.pid)
        failed = os.waitpid(self.pid, 0)[1] != 0
        return LATE if not done else FAILED if failed else ENDED
