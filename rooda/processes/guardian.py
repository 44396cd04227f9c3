"""A small parent that outlives the loop: whatever ends the loop, nothing that it started lives on.

The guardian is the process that people and service managers see. It passes signals on, ends every
descendant when the loop dies, and ends as the loop ended. If the guardian itself is killed, the
lifeline closes: the loop ends its agent and goes, and leaves the state as a crash would.
"""

import os
import select
import signal
from collections.abc import Iterable

from rooda.errors import code_of_signal
from rooda.processes import linux

MANAGER_VARIABLES = (
    "NOTIFY_SOCKET",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
)  # the service manager's; only the loop speaks there

GRACE = 2.0  # for what a killed loop left behind
MAX_SWEEPS = 100  # who loses its parent while all are looked for may go unseen
LIFELINE_SIGNAL = signal.SIGUSR1  # "look at the lifeline"
MESSAGE_SIGNAL = signal.SIGUSR2  # "a service manager is to hear something"
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
WATCHED = {*FORWARDED, signal.SIGCHLD, signal.SIGTSTP, signal.SIGCONT, MESSAGE_SIGNAL}

lifeline = -1  # in the loop process: what the guardian writes to
_guardian = -1  # its pid, also when it is dead
_speaking = -1  # in the loop process: what the guardian reads for a service manager, which hears no other process


def visible_pid() -> int:
    """The process that a person sees and signals."""
    return os.getpid() if lifeline < 0 else _guardian


def not_ignored(numbers: Iterable[signal.Signals]) -> set[signal.Signals]:
    """Those of these signals that mean anything to us: under `nohup` a hang-up does not."""
    return {each for each in numbers if each != signal.SIGHUP or signal.getsignal(each) is not signal.SIG_IGN}


def send_to_manager(text: bytes) -> bool:
    """To a service manager, through the guardian: by default it hears only the process that it started."""
    if _speaking < 0 or os.getppid() != _guardian:
        return False
    try:
        os.write(_speaking, text + b"\0")
        os.kill(_guardian, MESSAGE_SIGNAL)
    except OSError:
        return False
    return True


def announce_exit() -> None:
    """The loop's last act: no pause that comes now holds the guardian, and one that has come holds it no longer."""
    if lifeline >= 0 and os.getppid() == _guardian:
        os.close(lifeline)
        _send(_guardian, signal.SIGCONT)


def start() -> None:
    """Fork: the parent stays behind as the guardian and never returns, the child goes on as the loop."""
    global lifeline, _guardian, _speaking  # noqa: PLW0603 - one per process, like the process itself
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # whoever started us may have ignored it; then nobody would be told
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
    if os.getppid() != _guardian:  # it died before it could be watched
        os._exit(128 + signal.SIGTERM)


def _guard(loop: int, write: int, watched: set[signal.Signals], listening: int) -> None:
    """Sleep until a signal; pass it on, or see that the loop has ended. Never returns."""
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
    """Not where nobody would wake us: the loop has said goodbye, or who lets us go on has done so already."""
    lifeline_end = select.poll()
    lifeline_end.register(write, 0)
    if not lifeline_end.poll(0) and signal.SIGCONT not in signal.sigpending():
        os.kill(os.getpid(), signal.SIGSTOP)


def _relay_messages(listening: int) -> None:
    """What the loop has said to a service manager."""
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
    """The loop's wait status once it is dead. Buries orphans on the way; while we are awake, the loop is too."""
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
    if childless():  # nearly always so, and what follows need not be loaded
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
    """Buries the dead. On Linux the proof that nobody is left: whoever had lost its parent would be ours by now."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False


def _exit_like(status: int, passed: int) -> None:
    """End as the loop ended: the same code, or the same signal."""
    if os.WIFEXITED(status):
        os._exit(os.WEXITSTATUS(status))
    number = os.WTERMSIG(status)
    if number == LIFELINE_SIGNAL:  # asked to end before it listened: nothing had begun
        os._exit(code_of_signal(passed or signal.SIGTERM))
    signal.signal(number, signal.SIG_DFL) if number != signal.SIGKILL else None
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    os._exit(128 + number)
