"""Runs several programs at once, and sleeps until one ends, a time is reached, or another process sends a wake-up."""

import errno
import os
import signal
from collections.abc import Mapping, Sequence

from rooda.base import files
from rooda.processes import ending, linux, supervise
from rooda.processes.signals import Signals


class Children:
    """Programs that run at once, each in its own session. `wake`: the path of the FIFO that ends a sleep."""

    def __init__(self, signals: Signals, wake: str) -> None:
        self._signals, self._running = signals, set[int]()
        files.make_fifo(wake)
        self._wake = files.open_fifo(wake, os.O_RDWR)

    def start(self, argv: Sequence[str], cwd: str, env: Mapping[str, str], output: str) -> int:
        """Start a program and return its PID; its output is appended to a file. Raises OSError if that fails."""
        pid = start_alone(argv, cwd, env, output)
        self._running.add(pid)
        return pid

    def sleep(self, seconds: float | None) -> None:
        """Sleep until a program ends, a signal or a wake-up arrives, or the time is over."""
        if self._signals.wait_for(self._wake, seconds):
            try:
                while os.read(self._wake, 4096):
                    pass
            except BlockingIOError:
                pass

    def ended(self) -> list[tuple[int, int]]:
        """Return the PID and exit code of each program that ended since the last call. Code -N: signal N killed it."""
        found = []
        for pid in [*self._running]:
            if (code := ended_code(pid)) is not None:
                self._running.discard(pid)
                found.append((pid, code))
        return found

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Send a signal to each running program. At SIGTERM, rooda's loops save their state and end."""
        ending.signal_all(sorted(self._running), number)

    def suspend(self) -> None:
        """Suspend each program that handles Ctrl+Z, as rooda's loops do."""
        ending.signal_all(sorted(self._running), signal.SIGTSTP)

    def resume(self) -> None:
        ending.signal_all(sorted(self._running), signal.SIGCONT)

    def close(self) -> None:
        os.close(self._wake)


def end_with(parent: int) -> None:
    """Have SIGTERM sent to this process when `parent` dies. Raises ProcessLookupError if `parent` is already dead."""
    linux.signal_on_parent_death(signal.SIGTERM)
    if os.getppid() != parent:
        raise ProcessLookupError(errno.ESRCH, "the process that started it has ended")


def replace_self(argv: Sequence[str], env: Mapping[str, str]) -> None:
    """Replace this process with another program. Raises OSError if that fails."""
    os.execvpe(argv[0], [*argv], dict(env))


def start_alone(argv: Sequence[str], cwd: str, env: Mapping[str, str], output: str) -> int:
    """Start a program that outlives this process, in a new session. Append its output to the file `output` if given."""
    stdin = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    out = files.open_append(output, 0o600) if output else os.dup(stdin)
    try:
        return supervise.spawn(argv, cwd, env, (stdin, out, out))
    finally:
        os.close(stdin)
        os.close(out)


def ended_code(pid: int) -> int | None:
    """Reap a child and return its exit code; None while it runs. Don't call this again once it has returned a code."""
    gone, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if gone else None
