"""The only owner of signal handlers: they count and wake the wait, nothing else."""

import os
import select
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Protocol

from rooda.base import clock
from rooda.processes import guardian, linux

ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT)  # a person, not a terminal that closes
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class SignalSource(Protocol):
    """What a wait listens to."""

    @property
    def count(self) -> int: ...
    @property
    def suspended(self) -> bool: ...
    def wait(self, seconds: float | None) -> None: ...
    def stop_self(self) -> None: ...


open_blocks: list["Signals"] = []  # in which signals are noted just now
LONGEST = 86_400.0  # seconds of one sleep: whoever waits longer asks again


class Signals:
    """A with-block in which signals are noted, and in which `wait` sleeps until something happens.

    A signal may reach us directly, through the guardian, or both ways when somebody signals the
    whole group. Of each kind the larger of the two counts is what was really sent.
    """

    def __init__(self) -> None:
        self._first = 0
        self._direct: dict[int, int] = {}
        self._passed: dict[int, int] = {}
        self._suspended = False
        self._stop_pending = False  # Ctrl+Z or `fg` has come since they were last put in order
        self._lifeline_pending = True  # there may be something on the lifeline
        self.abandoned = False  # the guardian was killed
        self.when_abandoned: Callable[[], None] = lambda: None

    @property
    def first(self) -> int:
        """The signal that came first, 0 for none; it decides the exit code."""
        self._read_lifeline()
        return self._first

    @property
    def count(self) -> int:
        """How many ending signals have been sent."""
        self._read_lifeline()
        kinds = {*self._direct, *self._passed}
        return sum(max(self._direct.get(kind, 0), self._passed.get(kind, 0)) for kind in kinds)

    @property
    def suspended(self) -> bool:
        """Are we to stand still, since Ctrl+Z came and nothing after it? An end comes first."""
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
            linux.signal_on_parent_death(signal.SIGCONT)  # which also wakes one whom somebody has stopped
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
        """Sleep until a signal arrives, a child ends, or the time is over. No polling."""
        self._sleep(seconds)

    def pause(self, seconds: float) -> None:
        """Sleep so long, however many children end meanwhile, unless an ending signal or Ctrl+Z comes."""
        last = clock.monotonic() + seconds
        while not self.first and not self.suspended and (left := last - clock.monotonic()) > 0:
            self.wait(left)

    def wait_for(self, reader: int, seconds: float | None) -> bool:
        """The same, or until there is something to read: then True."""
        self._poll.register(reader, select.POLLIN)
        try:
            return reader in self._sleep(seconds)
        finally:
            self._poll.unregister(reader)

    def _sleep(self, seconds: float | None) -> list[int]:
        seconds = 0.0 if self._stop_pending else seconds  # what was taken out of the pipe can't wake us any more
        ready = self._poll.poll(None if seconds is None else min(max(0.0, seconds), LONGEST) * 1000.0 + 0.5)
        self._lifeline_pending = self._lifeline_pending or any(descriptor == self._lifeline for descriptor, _ in ready)
        self._stop_pending = False
        self._read_stop_signals()
        self._read_lifeline()
        return [descriptor for descriptor, _ in ready]

    def _read_stop_signals(self) -> None:
        """Ctrl+Z and `fg` in the order in which they came: Python calls its handlers in that of their numbers."""
        try:
            while numbers := os.read(self._read, 4096):
                for number in numbers:
                    if number in (signal.SIGTSTP, signal.SIGCONT):
                        self._suspended = number == signal.SIGTSTP
        except BlockingIOError:
            pass

    def stop_self(self) -> None:
        """As long as we are suspended; limits of run time leave this time out.

        Who is told to go on just before he stops himself would sleep for ever: then the guardian wakes him.
        """
        since = clock.monotonic()
        while self.suspended:
            os.kill(os.getpid(), signal.SIGSTOP)
            self._read_stop_signals()
        clock.add_stopped_since(since)

    def suspend_if_asked(self) -> None:
        """Ctrl+Z where no agent is at work."""
        if self.suspended:
            self.stop_self()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._first = self._first or number
        self._direct[number] = self._direct.get(number, 0) + 1

    def _note_stop_pending(self, number: int, frame: FrameType | None) -> None:
        """SIGCONT is also sent when the guardian dies."""
        self._stop_pending = self._lifeline_pending = True

    def _note_lifeline(self, number: int, frame: FrameType | None) -> None:
        self._lifeline_pending = True

    def _read_lifeline(self) -> None:
        """Take what the guardian passed on; its death counts as SIGTERM."""
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
            self._first = self._first or number
            self._passed[number] = self._passed.get(number, 0) + 1


class StopRequest:
    """Does a person want an end of something that begins now? After so many signals, if one of them has come since."""

    def __init__(self, spared: int) -> None:
        self._spared, self._before = spared, open_blocks[-1].count if open_blocks else 0

    @property
    def signal(self) -> int:
        """The signal that came first, if so; else 0."""
        count = open_blocks[-1].count if open_blocks else 0
        return self.asked if count > max(self._before, self._spared) else 0

    @property
    def asked(self) -> int:
        """The signal that came first, also if that was before; 0 if none has come."""
        return open_blocks[-1].first if open_blocks else 0


class SignalsFromNow:
    """Only the signals that come from now on: what happens after an end has an end of its own."""

    def __init__(self, signals: Signals) -> None:
        self._signals, self._before = signals, signals.count
        self.wait, self.stop_self = signals.wait, signals.stop_self

    @property
    def count(self) -> int:
        return self._signals.count - self._before

    @property
    def suspended(self) -> bool:
        return self._signals.suspended


class ForwardingChild:
    """A child that gets what asks us to end. The fork stands in the with-block: no signal is lost in between.

    Of `--detach`: whoever ends the command before the run has begun wants no run.
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
        """Its exit code, as a shell would say it."""
        _, status = os.waitpid(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else 128 - code

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        self.signaled = True
        os.kill(self.pid, number)  # not waited for yet, so it is there, at least as a zombie


Act = Callable[[dict[str, object]], bool]  # upon a process, if it is provably the one that these facts were taken of


def terminate(facts: dict[str, object]) -> bool:
    """SIGTERM; one that sleeps by Ctrl+Z takes none, so it is woken."""
    return _send(facts, signal.SIGTERM, signal.SIGCONT)


def suspend(facts: dict[str, object]) -> bool:
    """As Ctrl+Z would."""
    return _send(facts, signal.SIGTSTP)


def resume(facts: dict[str, object]) -> bool:
    """As `fg` would."""
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
    """A handler must exist so that the wake-up descriptor gets its byte."""
