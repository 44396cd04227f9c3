"""Runs short programs, mostly git, to their end and captures their output."""

import os
import signal
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rooda.base import clock
from rooda.errors import Interrupted
from rooda.processes import ending
from rooda.processes.signals import StopRequest
from rooda.processes.supervise import NOT_FOUND

if TYPE_CHECKING:
    import subprocess

TIMED_OUT, TOO_MUCH = 124, 125  # exit codes: timed out, printed more than allowed
LOOK = 0.25  # seconds between checks for a signal while the program runs
SHORT_LOOK = 0.01  # seconds between reads if the output has a limit
TERM_GRACE = 1.0  # seconds between TERM and KILL: a git killed at once leaves its lock files

inherited: list[int] = []  # descriptors that each brief program keeps open: a lock that lasts until the program ends


class Captured(NamedTuple):
    """Exit code and output of a program."""

    code: int
    out: bytes
    err: bytes


def capture(
    argv: Sequence[str],
    *,
    stdin: bytes = b"",
    timeout: float = 30.0,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    brief: bool = True,
    most: int = 0,
    kept: Sequence[int] = (),
    quiet: float = 0.0,
) -> Captured:
    """Run a program and return its exit code and output.

    The code is 127 if it can't start, 124 on timeout or after `quiet` seconds without output, 125 if it prints more
    than `most` bytes; with `most`, stdin is closed and descendants that keep the pipes open are not waited for.
    `kept`: descriptors that the program keeps open. Raises Interrupted at the user's second ending signal, or at the
    first if not `brief`, also if the signal killed the program directly.
    """
    stop_request = StopRequest(1 if brief else 0)
    try:
        child = _start(argv, env, cwd, (*inherited, *kept) if brief else ())  # others may leave a daemon behind
    except OSError as problem:
        return Captured(NOT_FOUND, b"", str(problem).encode())
    with child:
        try:
            if most:
                said = _read_limited(child, most, timeout, stop_request)
            else:
                said = _communicate(child, stdin, timeout, quiet, stop_request)
        except Interrupted:
            _end(child)
            raise
        except BaseException:
            ending.signal_group(child.pid, signal.SIGKILL)
            raise
    signal_sent = stop_request.asked if said.code < 0 else stop_request.signal if said.code and not brief else 0
    if signal_sent:
        raise Interrupted(signal_sent)
    return said


def _start(
    argv: Sequence[str], env: Mapping[str, str] | None, cwd: str | None, kept: Sequence[int]
) -> "subprocess.Popen[bytes]":
    import subprocess

    pipe = subprocess.PIPE
    return subprocess.Popen(
        argv, stdin=pipe, stdout=pipe, stderr=pipe, env=env, cwd=cwd, start_new_session=True, pass_fds=kept
    )


def _communicate(
    child: "subprocess.Popen[bytes]", stdin: bytes, timeout: float, quiet: float, stop_request: StopRequest
) -> Captured:
    import subprocess

    last, said = clock.monotonic() + timeout, stdin or None
    size, until = 0, clock.monotonic() + quiet if quiet else last  # bytes printed, and when that is too long ago
    while True:
        try:
            out, err = child.communicate(said, max(0.0, min(LOOK, last - clock.monotonic())))
            return Captured(child.returncode, out, err)
        except subprocess.TimeoutExpired as late:
            said = None  # sent with the first call
            if stop_request.signal:
                raise Interrupted(stop_request.signal) from None
            if quiet and (printed := len(late.stdout or b"") + len(late.stderr or b"")) > size:
                size, until = printed, clock.monotonic() + quiet
            if clock.monotonic() >= min(last, until):
                ending.signal_group(child.pid, signal.SIGKILL)  # kills its descendants too
                why = f"no answer within {timeout:g}s" if until >= last else f"no progress for {quiet:g}s"
                return Captured(TIMED_OUT, late.stdout or b"", why.encode())


def _read_limited(child: "subprocess.Popen[bytes]", most: int, timeout: float, stop_request: StopRequest) -> Captured:
    assert child.stdin and child.stdout and child.stderr
    child.stdin.close()
    last, said = clock.monotonic() + timeout, {child.stdout.fileno(): b"", child.stderr.fileno(): b""}
    for pipe in said:
        os.set_blocking(pipe, False)
    while True:
        code = child.poll()
        late = clock.monotonic() >= last
        said = {pipe: text + _read_available(pipe, most + 1 - len(text)) for pipe, text in said.items()}
        flood = any(len(text) > most for text in said.values())
        if code is None and (late or flood):
            ending.signal_group(child.pid, signal.SIGKILL)  # kills its descendants too
        if code is not None or late or flood:
            out, err = said.values()
            return Captured(TOO_MUCH if flood else TIMED_OUT if code is None else code, out, err)
        if stop_request.signal:
            raise Interrupted(stop_request.signal)
        clock.sleep(SHORT_LOOK)


def _read_available(pipe: int, room: int) -> bytes:
    """Read what is available without blocking."""
    found = b""
    try:
        while len(found) < room and (more := os.read(pipe, room - len(found))):
            found += more
    except BlockingIOError:
        pass
    return found


def _end(child: "subprocess.Popen[bytes]") -> None:
    import subprocess

    ending.signal_group(child.pid, signal.SIGTERM)
    try:
        child.communicate(timeout=TERM_GRACE)
    except subprocess.TimeoutExpired:
        pass
    ending.signal_group(child.pid, signal.SIGKILL)
