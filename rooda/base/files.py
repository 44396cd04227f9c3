"""The only writer of files: replaced whole, appended in one write, or created if absent."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from io import BufferedReader


def read(path: str) -> bytes:
    return read_open(os.open(path, os.O_RDONLY | os.O_CLOEXEC))


def open_regular(path: str, flags: int) -> int:
    """Open a file of ours that an agent can reach: never through a link, and never waiting for a pipe's other end."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not an ordinary file", path)
    return descriptor


def create_output(path: str) -> int:
    """A new file for a process to write to; what had the name, a link or a pipe maybe, is removed."""
    return _create_new(path, os.O_APPEND, 0o666)


def has_space(place: int | str) -> bool:
    """Has the disk of this open file, or of this path, room left?"""
    return os.statvfs(place).f_bavail > 0


def require_space(descriptor: int) -> int:
    """The open file, if its disk has room left: a full one takes an empty file, and then not a byte more."""
    if has_space(descriptor):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _create_new(path: str, how: int, mode: int) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | how
    try:
        return os.open(path, flags, mode)
    except FileExistsError:
        remove(path)
        return os.open(path, flags, mode)


def read_ours(path: str) -> bytes:
    """A file of ours: OSError if somebody put a link, a pipe or a device in its place."""
    return read_open(open_regular(path, os.O_RDONLY))


def read_ours_if_exists(path: str) -> bytes | None:
    """The same; None where no ordinary file is. OSError if there is one that can't be read: that is not the same."""
    try:
        return read_ours(path)
    except OSError:
        if os.path.isfile(path) and not os.path.islink(path):
            raise
        return None


def read_open(descriptor: int) -> bytes:
    """All of an open file, which is closed. Plain calls: a buffered reader costs twice as much, in every iteration."""
    try:
        size = os.fstat(descriptor).st_size
        data = os.read(descriptor, size + 1)
        pieces = [data]
        while len(data) != size and pieces[-1]:
            pieces.append(os.read(descriptor, 65_536))
        return data if len(pieces) == 1 else b"".join(pieces)
    finally:
        os.close(descriptor)


def read_proc(path: str) -> bytes:
    """A short file of /proc: it tells no size, and one read gets all of it."""
    with open(path, "rb", 0) as file:
        return file.read(4096)


def text(path: str) -> str:
    """The file as text; bytes that are not UTF-8 survive the way back out."""
    return to_text(read(path))


def to_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def make_folder(path: str) -> None:
    os.makedirs(path, exist_ok=True)


def write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def append(descriptor: int, data: bytes) -> None:
    """All of it or nothing: a disk that is full gets no torn line."""
    done = 0
    try:
        while done < len(data):
            done += os.write(descriptor, data[done:])
    except OSError:
        if done:
            os.ftruncate(descriptor, os.fstat(descriptor).st_size - done)
        raise


def replace(path: str, data: bytes, mode: int = 0o666, settled: bool = True) -> None:
    """A reader sees the old bytes or the new ones, also after a power cut: then maybe the old ones until `settle`."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        descriptor = _create_new(temporary, 0, mode)
        try:
            write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        hold(path)
        os.rename(temporary, path)
    except OSError as problem:
        remove(temporary)
        raise _with_path(path, problem) from None
    sync_parent(path) if settled else unsettled.add(path)


def sync_replaced() -> None:
    """No power cut undoes a replacing from now on. OSError about a file of which that can't be had."""
    for path in (*unsettled,):
        with suppress(FileNotFoundError, NotADirectoryError):  # the folder is gone, and what was in it: no news of ours
            sync_parent(path)


def sync_parent(path: str) -> None:
    """Whichever file has this name now, and that none has it, is on the disk afterwards."""
    unsettled.discard(path)
    descriptor = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as problem:
        raise _with_path(path, problem) from None
    finally:
        os.close(descriptor)


def _with_path(path: str, problem: OSError) -> OSError:
    """The same, told of the file that is meant, not of a temporary one or of none."""
    return OSError(problem.errno, problem.strerror, path)


def create(path: str, data: bytes, mode: int = 0o666) -> None:
    """Write a new file, whole or not at all; FileExistsError if there is one."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        write_all(descriptor, data)
    except OSError as problem:
        remove(path)
        raise _with_path(path, problem) from None
    finally:
        os.close(descriptor)


def write(path: str, data: bytes, mode: int = 0o666) -> None:
    """Plain write, for files that nothing relies on after a crash. What has the name now is removed."""
    remove(path)
    create(path, data, mode)


def link(path: str, target: str) -> None:
    """A symbolic link. What has the name now is removed."""
    remove(path)
    os.symlink(target, path)


def replace_unsynced(path: str, data: bytes) -> None:
    """Whole or not at all when we are killed, but not synced: for files that nothing relies on after a power cut."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        write(temporary, data)
        os.rename(temporary, path)
    except OSError as problem:
        remove(temporary)
        raise _with_path(path, problem) from None


def open_append(path: str) -> int:
    """A descriptor for whole-line appends; a torn last line of an earlier crash is ended first."""
    descriptor = open_regular(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        os.write(descriptor, b"\n")
    return descriptor


def sync(descriptor: int) -> None:
    """Data on the disk; the file's own times may follow later."""
    (os.fdatasync if hasattr(os, "fdatasync") else os.fsync)(descriptor)


def overwrite(descriptor: int, data: bytes) -> None:
    """Replace what an open file holds in one write; blanks fill up what is shorter. Same place, so cheap to sync."""
    os.pwrite(descriptor, data.ljust(os.fstat(descriptor).st_size), 0)


def clear(path: str) -> None:
    """Nothing in it any more; whoever appends goes on at its beginning."""
    with suppress(OSError):
        os.truncate(path, 0)


def remove(path: str) -> None:
    """Gone afterwards, whether or not it was there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError:
        if os.path.lexists(path):
            raise


def rename(old: str, new: str, settled: bool = True) -> None:
    """Not settled: for files that nothing relies on after a power cut."""
    os.rename(old, new)
    if settled:
        sync_parent(new)


def copy_times(path: str, like: os.stat_result) -> None:
    """It gets that file's times."""
    os.utime(path, ns=(like.st_atime_ns, like.st_mtime_ns))


def list_folder(path: str) -> list[str]:
    """What is in a folder: nothing, if it can't be looked into."""
    try:
        return os.listdir(path)
    except OSError:
        return []


def fingerprint(path: str) -> tuple[int, ...]:
    """Changes whenever the file's content could have; () if it is not there. The last number is when it did."""
    try:
        facts = os.stat(path)
    except (OSError, ValueError):
        return ()
    return (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)


def tail(path: str, limit: int) -> bytes:
    """The last `limit` bytes."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - limit))
        return file.read(limit)


def head(path: str, limit: int) -> bytes:
    """The first `limit` bytes."""
    with open(path, "rb") as file:
        return file.read(limit)


def lines(path: str, limit: int, longest: int = 65_536) -> Iterator[bytes]:
    """Whole lines of the last `limit` bytes, without their ends; of a longer one only the first `longest` bytes."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        if size > limit:  # the line that the cut goes through is none: its end may look like another
            file.seek(size - limit - 1)
            _skip_line(file, longest)
        else:
            file.seek(0)
        while line := file.readline(longest):
            yield line.rstrip(b"\r\n")
            if not line.endswith(b"\n"):
                _skip_line(file, longest)


def _skip_line(file: BufferedReader, longest: int) -> None:
    """The rest of the line."""
    while (line := file.readline(longest)) and not line.endswith(b"\n"):
        pass


# What tells one text from all others.


def content_key(text: str) -> str:
    """Tells this text from all others: itself, or of a long one its hash."""
    return text if len(text) < 1_048_576 else sha256(text.encode("utf-8", "surrogatepass"))


def sha256(data: bytes) -> str:
    """Return the hash in hex."""
    import hashlib

    return hashlib.sha256(data).hexdigest()


# Folders that go: with all that is in them, once they are empty, or out of the way of a file.


def remove_tree(path: str) -> None:
    """Gone with all that is in it, whether or not it was there. Links are removed, not followed."""
    if not os.path.isdir(path) or os.path.islink(path):
        remove(path)
        return
    for folder, inner, names in os.walk(path, topdown=False):
        for name in (*names, *inner):
            place = os.path.join(folder, name)
            if name in names or os.path.islink(place):
                remove(place)
            else:
                os.rmdir(place)
    os.rmdir(path)


def remove_empty(path: str, top: str) -> None:
    """This folder and those above it, as long as nothing is in them, up to `top`, which stays."""
    while path != top and path.startswith(top):
        try:
            os.rmdir(path)
        except OSError:
            return
        path = os.path.dirname(path)


def move_folder_aside(path: str) -> None:
    """No folder has this name afterwards: an empty one is removed, one that holds something is renamed, never lost."""
    if not os.path.isdir(path) or os.path.islink(path):
        return
    try:
        os.rmdir(path)
    except OSError:
        aside, number = f"{path}.folder", 1
        while os.path.lexists(aside):
            number += 1
            aside = f"{path}.folder-{number}"
        os.rename(path, aside)


def remove_empty_parents(path: str) -> None:
    """An empty folder is gone, and those above it that are empty then."""
    os.removedirs(path)


# Files that were replaced are held open for a while: their space is freed when nobody waits for it.
MOST_HELD = 8
unsettled: set[str] = set()  # files whose new name a power cut may still undo
_outdated: list[int] = []  # files without a name, not yet freed


def hold(path: str) -> None:
    """Keep what is about to be replaced until `let_go`, where that can be had without opening it for reading."""
    if how := getattr(os, "O_PATH", 0):
        if len(_outdated) >= MOST_HELD:
            let_go()
        try:
            _outdated.append(os.open(path, how | os.O_NOFOLLOW | os.O_CLOEXEC))
        except OSError:
            pass  # there is none, or it can't be held: then its space is freed with its name


def let_go() -> None:
    """Free the space of what was replaced. That can take longer than the replacing: done while an agent works."""
    while _outdated:
        try:
            os.close(_outdated.pop())
        except OSError:
            pass  # what it stood for has been replaced: there is nothing to lose
