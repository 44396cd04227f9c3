"""Short programs of others, git above all: started, heard to the end, and ended when a person won't wait."""

import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rooda.errors import Interrupted
from rooda.world import clock, tree
from rooda.world.process import NOT_FOUND
from rooda.world.signals import Haste

LATE = 124  # the code of one that took too long
LOOK = 0.25  # seconds between two looks for a signal, while one works
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
) -> Captured:
    """Its exit code and what it said; 127 if it can't be run, 124 if it took too long.

    Interrupted at the second ending signal of a person; one that is not `brief` is ended at the first.
    """
    pipe, haste = subprocess.PIPE, Haste(1 if brief else 0)
    try:
        child = subprocess.Popen(
            argv, stdin=pipe, stdout=pipe, stderr=pipe, env=env, cwd=cwd, start_new_session=True
        )
    except OSError as problem:
        return Captured(NOT_FOUND, b"", str(problem).encode())
    with child:
        try:
            return _heard(child, stdin, timeout, haste)
        except Interrupted:
            _end(child)
            raise
        except BaseException:
            tree.signal_group(child.pid, signal.SIGKILL)
            raise


def _heard(child: "subprocess.Popen[bytes]", stdin: bytes, timeout: float, haste: Haste) -> Captured:
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
                tree.signal_group(child.pid, signal.SIGKILL)  # whatever it has started too
                return Captured(LATE, late.stdout or b"", f"no answer within {timeout:g}s".encode())


def _end(child: "subprocess.Popen[bytes]") -> None:
    tree.signal_group(child.pid, signal.SIGTERM)
    try:
        child.communicate(timeout=LAST_WORDS)
    except subprocess.TimeoutExpired:
        pass
    tree.signal_group(child.pid, signal.SIGKILL)
