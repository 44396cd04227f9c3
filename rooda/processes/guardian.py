"""Runs a small parent process that outlives the loop and ends all processes that the loop leaves behind.

Users and service managers see the guardian's PID. It forwards signals, ends every descendant when the loop dies, and
exits as the loop did. If the guardian is killed, the lifeline pipe closes: the loop then ends its agent and exits,
leaving the state as after a crash.
"""

import os
import select
import signal
from collections.abc import Iterable

from rooda.errors import code_of_signal
from rooda.processes import linux

MANAGER_VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")  # set by the service manager for the loop alone

GRACE = 2.0  # seconds for processes that a killed loop left behind
MAX_SWEEPS = 100  # a process that is re-parented during a sweep can be missed
LIFELINE_SIGNAL = signal.SIGUSR1  # makes the loop read the lifeline
MESSAGE_SIGNAL = signal.SIGUSR2  # the loop has a message for the service manager
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
WATCHED = {*FORWARDED, signal.SIGCHLD, signal.SIGTSTP, signal.SIGCONT, MESSAGE_SIGNAL}

lifeline = -1  # in the loop: the read end of the pipe to which the guardian writes signals
_guardian = -1  # the guardian's PID, kept after its death
_speaking = -1  # in the loop: the pipe for messages to the service manager, which accepts them from the guardian alone


def visible_pid() -> int:
    """Return the PID that users see and signal: the guardian's, if there is one."""
    return os.getpid() if lifeline < 0 else _guardian


def not_ignored(numbers: Iterable[signal.Signals]) -> set[signal.Signals]:
    """Return these signals, without SIGHUP if it is ignored, as under `nohup`."""
    return {each for each in numbers if each != signal.SIGHUP or signal.getsignal(each) is not signal.SIG_IGN}


def send_to_manager(text: bytes) -> bool:
    """Send a message through the guardian: by default, the service manager ignores messages from other processes."""
    if _speaking < 0 or os.getppid() != _guardian:
        return False
    try:
        os.write(_speaking, text + b"\0")
        os.kill(_guardian, MESSAGE_SIGNAL)
    except OSError:
        return False
    return True


def announce_exit() -> None:
    """Announce the loop's exit, so that Ctrl+Z no longer stops the guardian; continue the guardian if it is stopped."""
    if lifeline >= 0 and os.getppid() == _guardian:
        os.close(lifeline)
        _send(_guardian, signal.SIGCONT)


def start() -> None:
    """Fork: the parent becomes the guardian and never returns, the child continues as the loop."""
    global lifeline, _guardian, _speaking  # noqa: PLW0603 - one per process, like the process itself
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if it is ignored, the guardian never sees the loop exit
    linux.adopt_orphans()
    watched = not_ignored(WATCHED)
    signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    read, write = os.pipe()
    listening, speaking = os.pipe() if os.environ.get("NOTIFY_SOCKET") else (-1, -1)
    _guardian = os.getpid()
    loop = os.fork()
    if loop:
        os.close(read)
        _guard(loop, write, watched, listening)
    os.close(write)
    _speaking = speaking
    os.set_blocking(read, False)
    lifeline = read
    linux.adopt_orphans()
    linux.signal_on_parent_death(LIFELINE_SIGNAL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, watched)
    if os.getppid() != _guardian:  # the guardian died before the kernel watched it
        os._exit(128 + signal.SIGTERM)


def _guard(loop: int, write: int, watched: set[signal.Signals], listening: int) -> None:
    """Wait for signals and forward them until the loop has exited, then exit with its status."""
    passed = 0
    while (status := _exit_status(loop)) is None:
        number = signal.sigwait(watched)
        if number in FORWARDED:
            passed = passed or number
            _forward(loop, write, number)
        elif number == signal.SIGTSTP:
            _send(loop, signal.SIGTSTP)
            _stop_self(write)
        elif number == signal.SIGCONT:
            _send(loop, signal.SIGCONT)
        _relay_messages(listening)
    _relay_messages(listening)
    _end_the_rest()
    _exit_like(status, passed)


def _stop_self(write: int) -> None:
    """Suspend this process, except when the loop is about to exit or SIGCONT is pending: nothing would wake it then."""
    lifeline_end = select.poll()
    lifeline_end.register(write, 0)
    if not lifeline_end.poll(0) and signal.SIGCONT not in signal.sigpending():
        os.kill(os.getpid(), signal.SIGSTOP)


def _relay_messages(listening: int) -> None:
    """Send the loop's messages to the service manager."""
    if listening < 0:
        return
    from rooda.processes import systemd

    os.set_blocking(listening, False)
    try:
        for text in os.read(listening, 65_536).split(b"\0"):
            systemd.send(text)
    except BlockingIOError:
        pass


def _exit_status(loop: int) -> int | None:
    """Return the loop's wait status; None while it runs.

    Also reap orphans, and continue a stopped loop unless this process is about to stop too.
    """
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
        except ChildProcessError:
            return 1 << 8
        if pid and os.WIFSTOPPED(status):
            if pid == loop and signal.SIGTSTP not in signal.sigpending():
                _send(loop, signal.SIGCONT)
        elif pid == loop:
            return status
        elif pid == 0:
            return None


def _forward(loop: int, write: int, number: int) -> None:
    try:
        os.write(write, bytes((number,)))
    except OSError:
        pass
    _send(loop, LIFELINE_SIGNAL)


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _end_the_rest() -> None:
    if childless():  # nearly always: the modules below need not load
        return
    from rooda.base import clock
    from rooda.processes import ending

    for _ in range(MAX_SWEEPS):
        done = ending.end_all(
            ending.living_below, GRACE, lambda seconds: clock.sleep(min(seconds, 0.005)), lambda: False
        )
        if not done or childless():
            return


def childless() -> bool:
    """Reap zombies; True if no child is left, which on Linux means no descendant: orphans are re-parented to us."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False


def _exit_like(status: int, passed: int) -> None:
    """Exit with the loop's exit code, or by the signal that ended it."""
    if os.WIFEXITED(status):
        os._exit(os.WEXITSTATUS(status))
    number = os.WTERMSIG(status)
    if number == LIFELINE_SIGNAL:  # ended before it had a handler: no run had started
        os._exit(code_of_signal(passed or signal.SIGTERM))
    signal.signal(number, signal.SIG_DFL) if number != signal.SIGKILL else None
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    os._exit(128 + number)
