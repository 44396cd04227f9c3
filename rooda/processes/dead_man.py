"""Runs a small parent process with a dead man's handle: it kills its descendants unless proofs of life keep coming.

The parent is the guardian; its child, the worker, sends the proofs through a pipe. A proof says that the worker has
reached the fleet's server: it contains the time of the request and the number of seconds for which the proof is valid.
The guardian checks the gap between two proofs. It thus notices that the machine was frozen, even if the worker sends a
new proof as soon as the machine continues. All times come from a clock that also runs while the machine sleeps.
"""

import os
import signal
import struct

from rooda.base import clock
from rooda.processes import ending, guardian, linux, table

FENCED = 75  # exit code (EX_TEMPFAIL): a service manager starts the worker again
PART = 0.75  # of the time that a proof holds, after which everything ends
LONGEST = 1.0  # seconds between two looks at the clock: timers of the kernel don't count sleep
FENCE = "ROODA_TEST_FENCE"  # "off": proofs are not required, for tests of what must hold without them
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
IGNORED = (signal.SIGTSTP, signal.SIGQUIT)
ABANDONED = signal.SIGUSR1  # the guardian is dead
_FORM = struct.Struct("=dd")  # moment, seconds; a negative moment announces an exit code

_pipe = -1  # in the worker: the write end


def start() -> None:
    """Fork: the parent becomes the guardian and never returns, the child continues as the worker."""
    global _pipe  # noqa: PLW0603 - one per process
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    linux.adopt_orphans()
    watched = guardian.not_ignored({*FORWARDED, *IGNORED, signal.SIGCHLD})
    signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    read, write = os.pipe()
    parent = os.getpid()
    worker = os.fork()
    if worker:
        os.close(write)
        os.set_blocking(read, False)
        _guard(worker, read, watched)
    os.close(read)
    os.set_blocking(write, False)
    _pipe = write
    os.setsid()  # so that Ctrl+C arrives once, through the guardian
    linux.adopt_orphans()
    linux.signal_on_parent_death(ABANDONED)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, watched)
    if os.getppid() != parent:
        os._exit(FENCED)


def is_guarded() -> bool:
    return _pipe >= 0


def prove(asked: float, holds: float) -> None:
    """Send the guardian, if there is one, a proof of life that is valid for `holds` seconds.

    `asked`: the time of the request to the server, from `clock.uptime`.
    """
    _write(asked, holds)


def announce_exit(code: int) -> None:
    """Tell the guardian that this process is about to exit, so that it exits with the same code."""
    _write(-1.0, float(code))


def end_without_guardian() -> None:
    """Kill this process and all its descendants, because the guardian is dead.

    A forked child does this. It stops this process first, so that this process can't mistake an agent's death for a
    result.
    """
    worker = os.getpid()
    if os.fork():
        while True:
            clock.sleep(LONGEST)
    os.kill(worker, signal.SIGSTOP)
    me = os.getpid()

    def living() -> list[int]:
        return [pid for pid in table.descendants(worker) if pid != me and not table.is_zombie(pid)]

    ending.kill_all(living, clock.sleep)
    os.kill(worker, signal.SIGKILL)
    os._exit(FENCED)


def _write(moment: float, seconds: float) -> None:
    if _pipe >= 0:
        try:
            os.write(_pipe, _FORM.pack(moment, seconds))
        except OSError:
            pass


class _Handle:
    """Reads the proofs of life from the pipe, and finds a gap between them that is too long."""

    def __init__(self, pipe: int) -> None:
        self._pipe, self._last, self._holds = pipe, -1.0, 0.0
        self.code = FENCED
        self.gap = 0.0  # seconds without proof that end everything; 0: none did

    def look(self) -> float:
        """Read the proofs that have arrived; return the seconds until the next check."""
        data = b""
        try:
            while part := os.read(self._pipe, _FORM.size * 512):
                data += part
        except BlockingIOError:
            pass
        for moment, seconds in _FORM.iter_unpack(data):
            if moment < 0:
                self.code = int(seconds)
            elif moment > self._last:
                self._judge(moment)
                self._last, self._holds = moment, seconds
        self._judge(clock.uptime())
        left = self._last + PART * self._holds - clock.uptime() if self._last >= 0 else LONGEST
        return max(0.01, min(LONGEST, left))

    def _judge(self, now: float) -> None:
        if self._last >= 0 and now - self._last > PART * self._holds and os.environ.get(FENCE) != "off":
            self.gap = max(self.gap, now - self._last)


def _guard(worker: int, pipe: int, watched: set[signal.Signals]) -> None:
    """Forward signals until the worker exits or sends no proof in time; then kill all descendants, and exit."""
    handle, pause = _Handle(pipe), 0.0
    while True:
        heard = signal.sigtimedwait(watched, pause)
        if heard and heard.si_signo in FORWARDED:
            ending.signal_all([worker], heard.si_signo)
        pause = handle.look()
        if handle.gap:
            _say(f"No proof of life for {handle.gap:.1f} s: ending everything that this worker runs.\n")
            ending.kill(worker)
            break
        if _reaped(worker):
            handle.look()  # what it announced at its end
            break
    _end_everything()
    os._exit(FENCED if handle.gap else handle.code)


def _reaped(worker: int) -> bool:
    """Reap ended children; return True if the worker is one of them."""
    found = False
    try:
        while pid := os.waitpid(-1, os.WNOHANG)[0]:
            found |= pid == worker
    except ChildProcessError:
        return True
    return found


def _end_everything() -> None:
    for _ in range(guardian.MAX_SWEEPS):
        if guardian.childless():
            return
        ending.kill_all(ending.living_below, clock.sleep)


def _say(text: str) -> None:
    try:
        os.write(2, text.encode())
    except OSError:
        pass
