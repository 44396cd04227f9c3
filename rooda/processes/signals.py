"""Installs signal handlers that only count signals and end the current wait."""

import os
import select
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Protocol

from rooda.base import clock
from rooda.processes import guardian, linux

ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT)  # sent by the user, not by a terminal that closes
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class SignalSource(Protocol):
    """Interface through which a wait learns of signals, and reacts to them."""

    @property
    def count(self) -> int: ...
    @property
    def suspended(self) -> bool: ...
    def wait(self, seconds: float | None) -> None: ...
    def stop_self(self) -> None: ...
    def report_stopping(self, grace: float, is_agent: bool) -> None: ...


open_blocks: list["Signals"] = []  # active with-blocks, the innermost last
LONGEST = 86_400.0  # longest single sleep in seconds


class Signals:
    """A context manager that counts signals; its `wait` sleeps until a signal, a child's exit or a timeout.

    A signal may arrive directly, through the guardian, or both ways if it was sent to the whole process group. For
    each kind of signal, the larger of the two counts is the number of signals sent.
    """

    def __init__(self) -> None:
        self._first, self._first_at = 0, 0.0
        self._direct: dict[int, int] = {}
        self._passed: dict[int, int] = {}
        self._suspended = False
        self._stop_pending = False  # Ctrl+Z or `fg` has arrived; their order is not read yet
        self._lifeline_pending = True  # the lifeline may have data
        self.abandoned = False  # the guardian was killed
        self.when_abandoned: Callable[[], None] = lambda: None
        self.when_stopping: Callable[[float, bool], None] = lambda grace, is_agent: None

    @property
    def first(self) -> int:
        """The first ending signal, which determines the exit code; 0 if none."""
        self._read_lifeline()
        return self._first

    @property
    def seconds_since_first(self) -> float:
        """The seconds since the first ending signal; 0 if there was none."""
        return clock.monotonic() - self._first_at if self.first else 0.0

    def report_stopping(self, grace: float, is_agent: bool) -> None:
        """Report that rooda ends a process, an agent or a command, because of a signal."""
        self.when_stopping(grace, is_agent)

    @property
    def count(self) -> int:
        """The number of ending signals sent to rooda."""
        self._read_lifeline()
        kinds = {*self._direct, *self._passed}
        return sum(max(self._direct.get(kind, 0), self._passed.get(kind, 0)) for kind in kinds)

    @property
    def suspended(self) -> bool:
        """True after Ctrl+Z, until `fg` or an ending signal arrives."""
        if self._stop_pending:
            self._read_stop_signals()
        return self._suspended and not self.first

    def __enter__(self) -> "Signals":
        self._read, self._write = os.pipe()
        for end in (self._read, self._write):
            os.set_blocking(end, False)
        self._poll = select.poll()
        self._poll.register(self._read, select.POLLIN)
        self._lifeline = guardian.lifeline
        if self._lifeline >= 0:
            self._poll.register(self._lifeline, select.POLLIN)
        self._old_wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        heard = guardian.not_ignored(ENDING)
        self._old: dict[signal.Signals, Any] = {number: signal.signal(number, self._note) for number in heard}
        for number in (signal.SIGTSTP, signal.SIGCONT):
            self._old[number] = signal.signal(number, self._note_stop_pending)
        if self._lifeline >= 0:
            linux.signal_on_parent_death(signal.SIGCONT)  # SIGCONT also wakes a stopped process
        self._old[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, _wake)
        self._old[guardian.LIFELINE_SIGNAL] = signal.signal(guardian.LIFELINE_SIGNAL, self._note_lifeline)
        open_blocks.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        open_blocks.remove(self)
        for number, handler in self._old.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        signal.set_wakeup_fd(self._old_wakeup)
        os.close(self._read)
        os.close(self._write)

    def wait(self, seconds: float | None) -> None:
        """Sleep until a signal arrives, a child exits, or the time is over; without polling."""
        self._sleep(seconds)

    def pause(self, seconds: float) -> None:
        """Sleep for the whole time, even if children exit; an ending signal or Ctrl+Z ends the sleep."""
        last = clock.monotonic() + seconds
        while not self.first and not self.suspended and (left := last - clock.monotonic()) > 0:
            self.wait(left)

    def wait_for(self, reader: int, seconds: float | None) -> bool:
        """Like `wait`, but also return as soon as the descriptor `reader` has data; True if it has."""
        self._poll.register(reader, select.POLLIN)
        try:
            return reader in self._sleep(seconds)
        finally:
            self._poll.unregister(reader)

    def _sleep(self, seconds: float | None) -> list[int]:
        seconds = 0.0 if self._stop_pending else seconds  # bytes already read from the pipe can't wake the poll
        ready = self._poll.poll(None if seconds is None else min(max(0.0, seconds), LONGEST) * 1000.0 + 0.5)
        self._lifeline_pending = self._lifeline_pending or any(descriptor == self._lifeline for descriptor, _ in ready)
        self._stop_pending = False
        self._read_stop_signals()
        self._read_lifeline()
        return [descriptor for descriptor, _ in ready]

    def _read_stop_signals(self) -> None:
        """Read Ctrl+Z and `fg` from the wake-up pipe, in order of arrival; Python calls handlers by signal number."""
        try:
            while numbers := os.read(self._read, 4096):
                for number in numbers:
                    if number in (signal.SIGTSTP, signal.SIGCONT):
                        self._suspended = number == signal.SIGTSTP
        except BlockingIOError:
            pass

    def stop_self(self) -> None:
        """Stop this process until the user continues it; the run's time limits exclude this time.

        If SIGCONT arrives just before our own SIGSTOP, we would sleep forever, so the guardian wakes us.
        """
        since = clock.monotonic()
        while self.suspended:
            os.kill(os.getpid(), signal.SIGSTOP)
            self._read_stop_signals()
        clock.add_stopped_since(since)

    def suspend_if_asked(self) -> None:
        """Stop this process if the user pressed Ctrl+Z; called while no agent runs."""
        if self.suspended:
            self.stop_self()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._note_first(number)
        self._direct[number] = self._direct.get(number, 0) + 1

    def _note_first(self, number: int) -> None:
        if not self._first:
            self._first, self._first_at = number, clock.monotonic()

    def _note_stop_pending(self, number: int, frame: FrameType | None) -> None:
        """Note Ctrl+Z or SIGCONT; the kernel also sends SIGCONT when the guardian dies."""
        self._stop_pending = self._lifeline_pending = True

    def _note_lifeline(self, number: int, frame: FrameType | None) -> None:
        self._lifeline_pending = True

    def _read_lifeline(self) -> None:
        """Count the signals forwarded by the guardian, whose death counts as SIGTERM."""
        if self._lifeline < 0 or not self._lifeline_pending:
            return
        self._lifeline_pending = False
        try:
            numbers = os.read(self._lifeline, 4096)
        except BlockingIOError:
            return
        if not numbers:
            self._poll.unregister(self._lifeline)
            self._lifeline, self.abandoned = -1, True
            self.when_abandoned()
            numbers = bytes((signal.SIGTERM,))
        for number in numbers:
            self._note_first(number)
            self._passed[number] = self._passed.get(number, 0) + 1


class StopRequest:
    """Detects a request to stop the current work: a new ending signal that is not one of the first `spared` ones."""

    def __init__(self, spared: int) -> None:
        self._spared, self._before = spared, open_blocks[-1].count if open_blocks else 0

    @property
    def signal(self) -> int:
        """The first ending signal if the current work must stop, else 0."""
        count = open_blocks[-1].count if open_blocks else 0
        return self.asked if count > max(self._before, self._spared) else 0

    @property
    def asked(self) -> int:
        """The first ending signal, even if it came before the current work began; 0 if none."""
        return open_blocks[-1].first if open_blocks else 0


class SignalsFromNow:
    """Counts only signals from now on: after a signal has ended the run, another one ends the work that follows."""

    def __init__(self, signals: Signals) -> None:
        self._signals, self._before = signals, signals.count
        self.wait, self.stop_self = signals.wait, signals.stop_self

    def report_stopping(self, grace: float, is_agent: bool) -> None:
        """Do nothing, because the run has already reported its end."""

    @property
    def count(self) -> int:
        return self._signals.count - self._before

    @property
    def suspended(self) -> bool:
        return self._signals.suspended


class ForwardingChild:
    """Forwards ending signals to a child process. The caller forks inside the with-block, so that no signal is lost.

    Used by `--detach`: a signal to the command before the run has started ends the run too.
    """

    def __init__(self) -> None:
        self.pid, self.signaled = 0, False

    def __enter__(self) -> "ForwardingChild":
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, ASKING)
        return self

    def __exit__(self, *_: object) -> None:
        for number in ASKING if self.pid else ():
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._pass_on)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def wait(self) -> int:
        """Wait for the child and return its exit code as a shell reports it."""
        _, status = os.waitpid(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else 128 - code

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        self.signaled = True
        os.kill(self.pid, number)  # not reaped yet, so the PID is still ours


SignalSender = Callable[[dict[str, object]], bool]  # sends a signal only if the process is provably the one described


def terminate(facts: dict[str, object]) -> bool:
    """Send a process SIGTERM, then SIGCONT, since a stopped process does not handle SIGTERM; False if that fails."""
    return _send(facts, signal.SIGTERM, signal.SIGCONT)


def suspend(facts: dict[str, object]) -> bool:
    """Suspend a process, as Ctrl+Z does; False if it can't be signaled."""
    return _send(facts, signal.SIGTSTP)


def resume(facts: dict[str, object]) -> bool:
    """Continue a suspended process, as `fg` does; False if it can't be signaled."""
    return _send(facts, signal.SIGCONT)


def _send(facts: dict[str, object], *numbers: int) -> bool:
    from rooda.processes import table

    pid = facts.get("pid")
    if not isinstance(pid, int) or not table.is_alive(facts):
        return False
    try:
        for number in numbers:
            os.kill(pid, number)
    except OSError:
        return False
    return True


def _wake(number: int, frame: FrameType | None) -> None:
    """Do nothing: Python writes to the wake-up descriptor only for signals that have a handler."""
