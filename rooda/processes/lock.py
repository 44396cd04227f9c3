"""Holds a file lock per loop until the process ends.

The lock's file describes its owner and the processes that the owner started. An agent can delete `.rooda`, so a second
lock is held in the user's state folder; its file also describes the owner.
"""

import binascii
import errno
import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from rooda.base import clock, dirs, files
from rooda.base.json import loads
from rooda.processes import guardian, table

TRIES = 5  # attempts to lock: a status query may hold the lock for a moment


class Lock:
    """A held lock, released by `release` or when the process dies."""

    def __init__(self, path: str, descriptor: int, second: "_Second") -> None:
        self._path = path
        self._descriptor = descriptor
        self._second = second
        self._facts: dict[str, Any] = {}
        self.before = _read(path) or _read(second.path)  # content written by the previous owner
        self.problem = second.problem

    def write_owner(self) -> None:
        """Write the owner to the lock file.

        Keeps the ledger of the last run, because rooda may ask the user before a run starts.
        """
        us = _own_identity()
        calls = self.before.get("calls", []) if self.before.get("boot") == us["boot"] else []
        self._facts = {**us, "run": self.before.get("run"), "calls": calls}
        self._second.write(self._facts, self._path)
        self._write()

    def note(self, run: str, calls: list[dict[str, Any]]) -> None:
        """Write the ledger: the processes that this run has started and not ended. A crash leaves the file readable."""
        begins = self._facts.get("run") != run
        self._facts = {**(self._facts or _own_identity()), "run": run, "calls": calls}
        if begins:
            self._second.write(self._facts, self._path)
        self._write()

    def note_asking(self, asks: bool) -> None:
        """Record whether the owner waits for the user's answer. Until the answer there is no run to stop."""
        self._facts = {**self._facts, "asks": asks}
        self._second.write(self._facts, self._path)
        self._write()

    def sync(self) -> None:
        files.sync(self._descriptor)

    def _write(self) -> None:
        files.overwrite(self._descriptor, json.dumps(self._facts).encode() + b"\n")

    def renew(self) -> bool:
        """Create and take the lock again if an agent deleted its file; False if another process holds it."""
        if _has_name(self._descriptor, self._path):
            return True
        fresh = _locked(self._path)
        if fresh < 0:
            return False
        os.close(self._descriptor)
        self._descriptor = fresh
        self._write()
        return True

    def release(self) -> None:
        """Clear the ledger of the run's processes after a clean end, and unlock."""
        self._facts = {**self._facts, "run": None, "calls": []}
        try:
            self._write()
        finally:
            self._second.close(keep=False)
            os.close(self._descriptor)

    def unlock(self) -> None:
        """Unlock, leaving the ledger for the next run."""
        self._second.close(keep=bool(self._facts.get("run")))
        os.close(self._descriptor)


class _Second:
    """A loop's second lock, in the user's state folder; does nothing if it can't be created there."""

    def __init__(self, path: str, descriptor: int, problem: str = "") -> None:
        self.path, self._descriptor, self.problem = path, descriptor, problem

    def write(self, facts: dict[str, Any], path: str) -> None:
        if self._descriptor >= 0:
            told = {**facts, "calls": [], "lock": os.path.realpath(path)}
            with suppress(OSError):
                files.overwrite(self._descriptor, json.dumps(told).encode() + b"\n")

    def close(self, keep: bool) -> None:
        """Unlock; without `keep` the file is deleted."""
        if self._descriptor >= 0:
            if not keep:
                with suppress(OSError):
                    files.remove(self.path)
            os.close(self._descriptor)
            self._descriptor = -1


@contextmanager
def asking(held: Lock | None) -> Iterator[None]:
    """Record in the lock that, during this block, its owner waits for the user's answer and starts no run."""
    _note_asking(held, True)
    try:
        yield
    finally:
        _note_asking(held, False)


def _note_asking(held: Lock | None, asks: bool) -> None:
    with suppress(OSError):  # without the note, `rooda stop` waits a few seconds for the run to start
        if held:
            held.note_asking(asks)


def acquire(path: str) -> Lock | None:
    """Return the lock, or None if a live process holds it. Raises OSError if the file can't be created.

    The second lock is taken first: a start that is refused must never hold the first lock, because the running loop may
    be about to create it again.
    """
    second = _acquire_second(path)
    if second is None:
        return None
    try:
        descriptor = _locked(path)
    except BaseException:
        second.close(keep=False)
        raise
    if descriptor < 0:
        second.close(keep=False)
        return None
    return Lock(path, descriptor, second)


def _acquire_second(path: str) -> _Second | None:
    """Take the second lock; None if a live process holds it."""
    where = _second_path(path)
    if not where:
        return _Second("", -1, "HOME is not set")
    try:
        files.make_folder(os.path.dirname(where))
        descriptor = _opened_and_locked(where)
    except OSError as problem:
        return _Second(where, -1, f"{where}: {problem.strerror or problem}")
    return _Second(where, descriptor) if descriptor >= 0 else None


def acquire_briefly(path: str) -> int:
    """Take this lock without the second one in the user's state folder; return its descriptor, or -1 if it is held."""
    return _locked(path)


def hold(path: str, seconds: float) -> int:
    """Lock a file outside of a workspace; return its descriptor. Closing the descriptor releases the lock.

    Raises OSError if it can't be opened, or if another process holds it for all of `seconds`.
    """
    deadline = clock.monotonic() + seconds
    while True:
        descriptor = files.open_regular(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _has_name(descriptor, path):
                return descriptor
        except BlockingIOError:
            if clock.monotonic() >= deadline:
                os.close(descriptor)
                raise OSError(errno.EAGAIN, "another rooda process holds it", path) from None
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)
        clock.sleep(0.002)


def _locked(path: str) -> int:
    """Create and lock a lock file in `.rooda`; return its descriptor, or -1 if a live process holds it."""
    home, folder = os.path.split(os.path.dirname(path))
    dirs.make_home(home, folder)
    return _opened_and_locked(path)


def _opened_and_locked(path: str) -> int:
    descriptor = files.open_regular(path, os.O_RDWR | os.O_CREAT, 0o600)
    for attempt in range(TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if attempt + 1 < TRIES:
                clock.sleep(0.02)
            continue
        except OSError:
            os.close(descriptor)
            raise
        if _has_name(descriptor, path):
            return descriptor
        os.close(descriptor)  # deleted before we locked it
        return _opened_and_locked(path)
    os.close(descriptor)
    return -1


def _second_path(path: str) -> str:
    """Return the path of the second lock in the user's state folder; "" without a home folder."""
    home, folder = os.path.split(os.path.dirname(path))
    top = os.path.dirname(home)
    return dirs.state("locks", f"{_mark(top)}{folder}-{os.path.basename(path)}")


def _mark(top: str) -> str:
    """Return a file name prefix from a workspace's path and inode, since two containers may have the same path."""
    real = os.path.realpath(top)
    try:
        facts = os.stat(real)
    except OSError:
        return f"{binascii.crc32(files.to_bytes(real)):08x}-"
    return f"{binascii.crc32(files.to_bytes(real)):08x}-{facts.st_dev:x}-{facts.st_ino:x}-"


def recorded(workspace: str) -> list[str]:
    """Return the lock files of running and killed loops, such as `state/build.lock`, even if an agent deleted them."""
    home, mark = dirs.state("locks"), _mark(workspace)
    found = [name for name in files.list_folder(home) if name.startswith(mark)] if home else []
    return sorted(name.removeprefix(mark).replace("-", os.sep, 1) for name in found)


def _has_name(descriptor: int, path: str) -> bool:
    """True if the open file is still the one at this path."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError:
        return False


def is_held(path: str) -> bool:
    """True if a live process holds the lock or the second lock."""
    return _is_locked(path) or _is_locked(_second_path(path))


def _is_locked(path: str) -> bool:
    try:
        descriptor = files.open_regular(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def await_free(path: str, seconds: float = 15.0, unless: Callable[[], bool] = lambda: False) -> bool:
    """Wait for the lock to become free; False after `seconds`, or as soon as `unless()` is true."""
    deadline = clock.monotonic() + seconds
    while is_held(path):
        if clock.monotonic() >= deadline or unless():
            return False
        clock.sleep(0.02)
    return True


def owner(path: str) -> dict[str, Any]:
    """Read the identity of the lock's owner: pid, start, boot; {} if unreadable.

    The second lock takes precedence while it is held: an agent can write to the first one.
    """
    second = _second_path(path)
    return (_read(second) if _is_locked(second) else {}) or _read(path)


def _read(path: str) -> dict[str, Any]:
    try:
        value = loads(files.read_ours(path))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _own_identity() -> dict[str, Any]:
    return {**table.identity_of(guardian.visible_pid()), "started_at": clock.rfc3339(clock.now())}
