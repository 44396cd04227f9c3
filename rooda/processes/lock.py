"""A file lock per loop, held until the process ends. Its content describes the owner and the processes it started."""

import fcntl
import json
import os
from collections.abc import Callable
from typing import Any

from rooda.base import clock, files
from rooda.base.json import loads
from rooda.processes import guardian, table

TRIES = 5  # a status query holds the lock for a moment


class Lock:
    """A held lock, released by `release` or when the process dies."""

    def __init__(self, path: str, descriptor: int, before: dict[str, Any]) -> None:
        self._path = path
        self._descriptor = descriptor
        self._facts: dict[str, Any] = {}
        self.before = before  # content written by the previous owner

    def write_owner(self) -> None:
        """Write who holds the lock, keeping the ledger found: the user may be asked before the run starts."""
        us = _own_identity()
        calls = self.before.get("calls", []) if self.before.get("boot") == us["boot"] else []
        self._facts = {**us, "run": self.before.get("run"), "calls": calls}
        self._write()

    def note(self, run: str, calls: list[dict[str, Any]]) -> None:
        """Write the ledger: processes that this run has started and not ended. It stays readable however we die."""
        self._facts = {**(self._facts or _own_identity()), "run": run, "calls": calls}
        self._write()

    def sync(self) -> None:
        files.sync(self._descriptor)

    def _write(self) -> None:
        files.overwrite(self._descriptor, json.dumps(self._facts).encode() + b"\n")

    def renew(self) -> bool:
        """Lock the file that has the name now, after an agent deleted ours. False: another process holds it."""
        if _has_name(self._descriptor, self._path):
            return True
        fresh = acquire(self._path)
        if fresh is None:
            return False
        os.close(self._descriptor)
        self._descriptor = fresh._descriptor
        self._write()
        return True

    def release(self) -> None:
        """Empty the ledger after a clean end, and unlock."""
        self._facts = {**self._facts, "run": None, "calls": []}
        try:
            self._write()
        finally:
            self.unlock()

    def unlock(self) -> None:
        """Unlock, leaving the ledger as it is for the next run."""
        os.close(self._descriptor)


def acquire(path: str) -> Lock | None:
    """Return the lock, or None while a live process holds it. OSError if the file can't be created."""
    files.make_folder(os.path.dirname(path))
    descriptor = files.open_regular(path, os.O_RDWR | os.O_CREAT)
    for attempt in range(TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if attempt + 1 < TRIES:
                clock.sleep(0.02)
            continue
        if _has_name(descriptor, path):
            return Lock(path, descriptor, owner(path))
        os.close(descriptor)  # deleted before we locked it
        return acquire(path)
    os.close(descriptor)
    return None


def _has_name(descriptor: int, path: str) -> bool:
    """True if the open file still has this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError:
        return False


def is_held(path: str) -> bool:
    """True while a live process holds the lock."""
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
    """True once the lock is free; False after `seconds`, or as soon as `unless()`."""
    deadline = clock.monotonic() + seconds
    while is_held(path):
        if clock.monotonic() >= deadline or unless():
            return False
        clock.sleep(0.02)
    return True


def owner(path: str) -> dict[str, Any]:
    """Read what the owner wrote about itself: pid, start, boot; {} if unreadable."""
    try:
        value = loads(files.read_ours(path))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _own_identity() -> dict[str, Any]:
    return {**table.identity_of(guardian.visible_pid()), "started_at": clock.rfc3339(clock.now())}
