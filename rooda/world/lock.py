"""One flock per loop, held for life, decides who is the live owner. What is written in it is for people."""

import fcntl
import json
import os

from rooda.world import clock, files

TRIES = 5  # a status query holds the lock for a moment


class Lock:
    """A held lock. It is let go by `release`, or by the death of the process, whatever kills it."""

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def renew(self) -> None:
        """An agent may have deleted the folder: hold the file that carries the name now."""
        try:
            mine, named = os.fstat(self._descriptor), os.stat(self._path)
        except OSError:
            named = None
        if named is not None and (named.st_ino, named.st_dev) == (mine.st_ino, mine.st_dev):
            return
        fresh = take(self._path)
        if fresh is not None:
            os.close(self._descriptor)
            self._descriptor = fresh._descriptor

    def release(self) -> None:
        os.close(self._descriptor)


def take(path: str) -> Lock | None:
    """The lock, or None while somebody lives who holds it. OSError when the file can't be made."""
    files.folder(os.path.dirname(path))
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    for attempt in range(TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if attempt + 1 < TRIES:
                clock.sleep(0.02)
            continue
        files.overwrite(descriptor, _about_us())
        return Lock(path, descriptor)
    os.close(descriptor)
    return None


def is_held(path: str) -> bool:
    """True while a live process holds the lock."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
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


def await_free(path: str, seconds: float = 15.0) -> bool:
    """True once nobody holds the lock; False if somebody still does after `seconds`."""
    deadline = clock.monotonic() + seconds
    while is_held(path):
        if clock.monotonic() >= deadline:
            return False
        clock.sleep(0.02)
    return True


def owner(path: str) -> dict[str, object]:
    """What the holder wrote about itself: pid, started, boot, ticks; {} when unreadable."""
    try:
        value = json.loads(files.read(path))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _about_us() -> bytes:
    from rooda.world import identity

    facts = {**identity.of(os.getpid()), "started_at": clock.rfc3339(clock.now())}
    return json.dumps(facts).encode() + b"\n"
