"""One flock per loop, held for life, decides who is the live owner. What is written in it is for people."""

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
    """A held lock. It is let go by `release`, or by the death of the process, whatever kills it."""

    def __init__(self, path: str, descriptor: int, before: dict[str, Any]) -> None:
        self._path = path
        self._descriptor = descriptor
        self._facts: dict[str, Any] = {}
        self.before = before  # what the holder before us wrote

    def write_owner(self) -> None:
        """Who holds it, before anything is begun: a person may be asked first. The ledger stays as it was found."""
        us = _own_identity()
        calls = self.before.get("calls", []) if self.before.get("boot") == us["boot"] else []
        self._facts = {**us, "run": self.before.get("run"), "calls": calls}
        self._write()

    def note(self, run: str, calls: list[dict[str, Any]]) -> None:
        """The ledger: whom this run has started and not yet ended. Any death of ours leaves it readable."""
        self._facts = {**(self._facts or _own_identity()), "run": run, "calls": calls}
        self._write()

    def sync(self) -> None:
        files.sync(self._descriptor)

    def _write(self) -> None:
        files.overwrite(self._descriptor, json.dumps(self._facts).encode() + b"\n")

    def renew(self) -> bool:
        """An agent may have deleted the folder: hold the file that carries the name now. False: somebody else does."""
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
        """A clean end: nobody is left, and the ledger says so."""
        self._facts = {**self._facts, "run": None, "calls": []}
        try:
            self._write()
        finally:
            self.unlock()

    def unlock(self) -> None:
        """Free for the next run, which finds the ledger as it is."""
        os.close(self._descriptor)


def acquire(path: str) -> Lock | None:
    """The lock, or None while somebody lives who holds it. OSError when the file can't be made."""
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
        os.close(descriptor)  # somebody took it away before we held it
        return acquire(path)
    os.close(descriptor)
    return None


def _has_name(descriptor: int, path: str) -> bool:
    """Is it the open file that has this name?"""
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
    """True once nobody holds the lock; False if somebody still does after `seconds`, or as soon as `unless` holds."""
    deadline = clock.monotonic() + seconds
    while is_held(path):
        if clock.monotonic() >= deadline or unless():
            return False
        clock.sleep(0.02)
    return True


def owner(path: str) -> dict[str, Any]:
    """What the holder wrote about itself: pid, started, boot, ticks; {} when unreadable."""
    try:
        value = loads(files.read_ours(path))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _own_identity() -> dict[str, Any]:
    return {**table.identity_of(guardian.visible_pid()), "started_at": clock.rfc3339(clock.now())}
