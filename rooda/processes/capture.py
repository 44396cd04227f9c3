"""Short programs of others, git above all: started, heard to the end, and ended when a person won't wait."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rooda.base import clock
from rooda.errors import Interrupted
from rooda.processes import ending
from rooda.processes.signals import StopRequest
from rooda.processes.supervise import NOT_FOUND

TIMED_OUT, TOO_MUCH = 124, 125  # the codes of one that took too long, and of one that said more than it should
LOOK = 0.25  # seconds between two looks for a signal, while one works
SHORT_LOOK = 0.01  # between two looks at what one says of which little is wanted
LAST_WORDS = 1.0  # seconds to clear up in: a git that is just killed leaves its locks


class Captured(NamedTuple):
    """What a short program said."""

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
) -> Captured:
    """Its exit code and what it said; 127 if it can't be run, 124 if it took too long, 125 if it said too much.

    Interrupted at the second ending signal of a person; one that is not `brief` is ended at the first. Where one has
    come and somebody else ended it, it has not failed either. With `most`, in bytes, nothing is told to it, and nobody
    who holds its output longer than it lives is waited for.
    """
    pipe, haste = subprocess.PIPE, StopRequest(1 if brief else 0)
    try:
        child = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, env=env, cwd=cwd, start_new_session=True)
    except OSError as problem:
        return Captured(NOT_FOUND, b"", str(problem).encode())
    with child:
        try:
            said = _read_limited(child, most, timeout, haste) if most else _communicate(child, stdin, timeout, haste)
        except Interrupted:
            _end(child)
            raise
        except BaseException:
            ending.signal_group(child.pid, signal.SIGKILL)
            raise
    told = haste.asked if said.code < 0 else haste.signal if said.code and not brief else 0
    if told:
        raise Interrupted(told)
    return said


def _communicate(child: "subprocess.Popen[bytes]", stdin: bytes, timeout: float, haste: StopRequest) -> Captured:
    last, said = clock.monotonic() + timeout, stdin or None
    while True:
        try:
            out, err = child.communicate(said, max(0.0, min(LOOK, last - clock.monotonic())))
            return Captured(child.returncode, out, err)
        except subprocess.TimeoutExpired as late:
            said = None  # it was given already
            if haste.signal:
                raise Interrupted(haste.signal) from None
            if clock.monotonic() >= last:
                ending.signal_group(child.pid, signal.SIGKILL)  # whatever it has started too
                return Captured(TIMED_OUT, late.stdout or b"", f"no answer within {timeout:g}s".encode())


def _read_limited(child: "subprocess.Popen[bytes]", most: int, timeout: float, haste: StopRequest) -> Captured:
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
            ending.signal_group(child.pid, signal.SIGKILL)  # whatever it has started too
        if code is not None or late or flood:
            out, err = said.values()
            return Captured(TOO_MUCH if flood else TIMED_OUT if code is None else code, out, err)
        if haste.signal:
            raise Interrupted(haste.signal)
        clock.sleep(SHORT_LOOK)


def _read_available(pipe: int, room: int) -> bytes:
    """What can be read at once."""
    found = b""
    try:
        while len(found) < room and (more := os.read(pipe, room - len(found))):
            found += more
    except BlockingIOError:
        pass
    return found


def _end(child: "subprocess.Popen[bytes]") -> None:
    ending.signal_group(child.pid, signal.SIGTERM)
    try:
        child.communicate(timeout=LAST_WORDS)
    except subprocess.TimeoutExpired:
        pass
    ending.signal_group(child.pid, signal.SIGKILL)
