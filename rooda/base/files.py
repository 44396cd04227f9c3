"""Reads and writes files. Every write by rooda goes through this module."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from io import BufferedReader, RawIOBase
from typing import TYPE_CHECKING

from rooda.errors import UsageProblem

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

LARGEST = 67_108_864  # bytes of a file that is read whole
LARGEST_OF_GIT = 2_147_483_648  # bytes of an index or a log of git
CHUNK = 65_536
_NO_FOLDER = (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENAMETOOLONG)
MOST_HELD = 8  # replaced files that are kept open
unsynced: set[str] = set()  # replaced files whose old content a power cut may still bring back
_replaced: list[int] = []  # descriptors of replaced files, still open
_heirs: dict[str, tuple[int, int]] = {}  # folders whose new files get this user and group when rooda runs as root


def read(path: str, limit: int = LARGEST) -> bytes:
    """Read a regular file, following links. For files of a workspace, use `base/workspace_files.py`."""
    return read_open(open_existing(path), limit, path)


def open_existing(path: str) -> int:
    """Open a regular file for reading, without blocking. Checks its type first: opening a device can have effects."""
    _require_regular(os.stat(path), path)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    return _regular(descriptor, path)


def open_regular(path: str, flags: int, mode: int = 0o666) -> int:
    """Open one of rooda's files without following a link or blocking on a pipe that an agent put in its place."""
    descriptor = _regular(os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode), path)
    if flags & os.O_CREAT:
        _hand_over(descriptor, path)
    return descriptor


def _regular(descriptor: int, path: str) -> int:
    try:
        _require_regular(os.fstat(descriptor), path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _require_regular(facts: os.stat_result, path: str) -> None:
    if stat.S_ISDIR(facts.st_mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(facts.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file", path)


def open_folder(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def create_output(path: str) -> int:
    """Create an output file for a process; rooda reads it through the returned descriptor, even if it is renamed.

    Anything that exists at the path, such as a link or a pipe, is removed.
    """
    return _create_new(path, os.O_RDWR | os.O_APPEND, 0o600)


def open_output(path: str) -> int:
    """Open an existing output file to read it and append to it."""
    descriptor = open_regular(path, os.O_RDWR | os.O_APPEND)
    os.set_blocking(descriptor, True)
    return descriptor


def has_space(place: int | str) -> bool:
    """True if the file system of this path or open file has free space."""
    return os.statvfs(place).f_bavail > 0


def free_space(place: str) -> int:
    """Return the free bytes of the file system of a path, or of its nearest folder that exists."""
    while not os.path.isdir(place) and place != os.path.dirname(place):
        place = os.path.dirname(place)
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize


def size(path: str) -> int:
    """Return the size of a file; 0 if there is none."""
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def require_space(descriptor: int) -> int:
    """Return the descriptor if its disk has free space, else raise OSError: a full disk still accepts empty files."""
    if has_space(descriptor):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def now_at(path: str, descriptor: int) -> str:
    """Describe what is now at the path of an open file: "missing", "a link", …; "" if it is still that file."""
    try:
        facts = os.lstat(path)
    except OSError:
        return "missing"
    if os.path.samestat(facts, os.fstat(descriptor)):
        return ""
    kinds = {stat.S_IFREG: "another file", stat.S_IFLNK: "a link", stat.S_IFIFO: "a pipe", stat.S_IFDIR: "a folder"}
    return kinds.get(stat.S_IFMT(facts.st_mode), "a device or socket")


def _create_new(path: str, how: int, mode: int) -> int:
    flags = (os.O_WRONLY if not how & os.O_RDWR else 0) | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | how
    try:
        descriptor = os.open(path, flags, mode)
    except FileExistsError:
        remove(path)
        descriptor = os.open(path, flags, mode)
    _hand_over(descriptor, path)
    return descriptor


def read_ours(path: str, limit: int = LARGEST) -> bytes:
    """Read one of rooda's files. Raises OSError if the path is now a link, a pipe or a device."""
    return read_open(open_regular(path, os.O_RDONLY), limit, path)


def read_ours_if_exists(path: str) -> bytes | None:
    """Like `read_ours`, but return None if there is no regular file. Raises OSError if the file can't be read."""
    try:
        return read_ours(path)
    except OSError:
        if os.path.isfile(path) and not os.path.islink(path):
            raise
        return None


def read_open(descriptor: int, limit: int = LARGEST, path: str = "") -> bytes:
    """Read an open file to its end and close it. Reads unbuffered, which takes half the time."""
    try:
        size = os.fstat(descriptor).st_size
        _require_size(size, limit, path)
        data = os.read(descriptor, size + 1)
        pieces, total = [data], len(data)
        while len(data) != size and pieces[-1]:
            pieces.append(os.read(descriptor, CHUNK))
            total += len(pieces[-1])
            _require_size(total, limit, path)
        return data if len(pieces) == 1 else b"".join(pieces)
    finally:
        os.close(descriptor)


def _require_size(size: int, limit: int, path: str) -> None:
    if size > limit:
        raise OSError(errno.EFBIG, f"it is larger than {limit // 1_048_576} MB", path or None)


def read_proc(path: str) -> bytes:
    """Read a short file of /proc, whose size is reported as 0, in one read."""
    with open(path, "rb", 0) as file:
        return file.read(4096)


def open_proc(path: str) -> int:
    """Open a file of /proc, such as a namespace, that the caller does not read."""
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def read_long_proc(path: str) -> bytes:
    """Read a file of /proc to its end."""
    return read_open(os.open(path, os.O_RDONLY | os.O_CLOEXEC))


def text(path: str, limit: int = LARGEST) -> str:
    """Like `read`, but decode the file; bytes that are not UTF-8 become surrogates."""
    return to_text(read(path, limit))


def to_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def make_folder(path: str) -> None:
    os.makedirs(path, exist_ok=True)


def make_fifo(path: str) -> None:
    """Create a FIFO that only the user can open, replacing anything else at this path."""
    try:
        if stat.S_ISFIFO(os.lstat(path).st_mode):
            return
        os.unlink(path)
    except FileNotFoundError:
        pass
    os.mkfifo(path, 0o600)


def open_fifo(path: str, flags: int) -> int:
    """Open a FIFO without waiting for its other end. Raises OSError if it is opened to write and has no reader."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)


def make_real_folder(top: str, path: str, private: bool = False) -> None:
    """Create a folder below `top`. Raises UsageProblem if this folder, or one between it and `top`, is a link.

    With `private`, only their owner can access the folders in `path`, even existing ones. If rooda runs as root, it
    gives these folders to the owner of `top`.
    """
    make_folder(top)
    names = path.split(os.sep)
    if private and not os.geteuid() and (owner := os.stat(top)).st_uid:
        _heirs[os.path.join(top, names[0], "")] = (owner.st_uid, owner.st_gid)
    for name in names:
        top = os.path.join(top, name)
        try:
            os.mkdir(top, 0o700 if private else 0o777)
        except FileExistsError:
            refuse_links("", top)
            if not is_folder(top):
                raise
        descriptor = _open_real_folder(top)
        try:
            if private:
                _close_to_others(descriptor)
                _hand_over(descriptor, os.path.join(top, ""))
        finally:
            os.close(descriptor)


def refuse_links(top: str, *paths: str) -> None:
    """Raise UsageProblem if one of these paths below `top` is a link."""
    for path in paths:
        place = os.path.join(top, path)
        if os.path.islink(place):
            import shlex

            raise UsageProblem(
                f"{place} is a link; rooda keeps its files only in folders of the workspace itself.",
                f"See where it leads: ls -l {shlex.quote(place)}\nOnce it is removed, rooda creates a folder.",
            )


def _open_real_folder(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        refuse_links("", path)
        raise


def _close_to_others(folder: int) -> None:
    mode = stat.S_IMODE(os.fstat(folder).st_mode)
    if mode & 0o077:
        with suppress(OSError):  # it belongs to another user, or its file system has no modes
            os.fchmod(folder, mode & ~0o077)


def _hand_over(descriptor: int, path: str) -> None:
    """If run as root, give a file or folder to the workspace's owner, who could not delete it otherwise."""
    for home, (user, group) in _heirs.items():
        if path.startswith(home):
            with suppress(OSError):
                os.fchown(descriptor, user, group)
            return


def write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def append(descriptor: int, data: bytes) -> None:
    """Append all of the data or nothing, so that a full disk leaves no partial line."""
    done = 0
    try:
        while done < len(data):
            done += os.write(descriptor, data[done:])
    except OSError:
        if done:
            os.ftruncate(descriptor, os.fstat(descriptor).st_size - done)
        raise


def replace(path: str, data: bytes, mode: int = 0o666, synced: bool = True) -> None:
    """Replace a file atomically: readers see the old bytes or the new ones, even after a power cut.

    With `synced=False` a power cut before `sync_replaced` may bring back the old file.
    """
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        descriptor = _create_new(temporary, 0, mode)
        try:
            write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        hold_replaced(path)
        os.rename(temporary, path)
    except OSError as problem:
        remove(temporary)
        raise _with_path(path, problem) from None
    sync_parent(path) if synced else unsynced.add(path)


def sync_replaced() -> None:
    """Make all replaced files durable. An OSError names the file that failed."""
    for path in (*unsynced,):
        with suppress(FileNotFoundError, NotADirectoryError):  # the folder was deleted too
            sync_parent(path)


def sync_parent(path: str) -> None:
    """Make the creation, replacement or deletion of this file durable by syncing its folder."""
    unsynced.discard(path)
    descriptor = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as problem:
        raise _with_path(path, problem) from None


def _with_path(path: str, problem: OSError) -> OSError:
    """Return the error with this path instead of the path of the temporary file."""
    return OSError(problem.errno, problem.strerror, path)


def create(path: str, data: bytes, mode: int = 0o666) -> None:
    """Write a new file completely or not at all. Raises FileExistsError if it exists."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    _hand_over(descriptor, path)
    try:
        try:
            write_all(descriptor, data)
        finally:
            os.close(descriptor)
    except OSError as problem:
        remove(path)
        raise _with_path(path, problem) from None


def create_whole(path: str, data: bytes, mode: int, synced: bool = True) -> None:
    """Create a file that no reader sees half-written; sync it if `synced`. Raises FileExistsError if it exists."""
    temporary = f"{path}.{os.getpid()}-{os.urandom(4).hex()}.tmp"
    try:
        create(temporary, data, mode)
        if synced:
            sync_file(temporary)
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            create(path, data, mode)
    except OSError as problem:
        raise _with_path(path, problem) from None
    finally:
        remove(temporary)
    if synced:
        sync_parent(path)


def sync_file(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_private(descriptor: int) -> bool:
    """Remove all permissions of group and others on an open file; False if that fails."""
    try:
        os.fchmod(descriptor, 0o600)
    except OSError:
        return False
    return True


def write(path: str, data: bytes, mode: int = 0o666) -> None:
    """Replace a file without syncing, for files that need not survive a crash."""
    remove(path)
    create(path, data, mode)


def copy(source: str, path: str) -> None:
    """Copy a regular file with its mode, without syncing."""
    with reading(source) as file:
        descriptor = _create_new(path, os.O_WRONLY, os.fstat(file.fileno()).st_mode & 0o777)
        try:
            while data := file.read(CHUNK):
                write_all(descriptor, data)
        finally:
            os.close(descriptor)


def link(path: str, target: str) -> None:
    """Create a symbolic link, replacing any file at the path."""
    remove(path)
    os.symlink(target, path)


def replace_unsynced(path: str, data: bytes, mode: int = 0o666) -> None:
    """Replace a file atomically but without syncing: safe against a kill, not against a power cut."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        write(temporary, data, mode)
        os.rename(temporary, path)
    except OSError as problem:
        remove(temporary)
        raise _with_path(path, problem) from None


def open_append(path: str, mode: int = 0o666) -> int:
    """Open a file for whole-line appends, and terminate a last line that a crash has cut off."""
    descriptor = open_regular(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, mode)
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        os.write(descriptor, b"\n")
    return descriptor


def sync(descriptor: int) -> None:
    """Flush the file's data to the disk; its timestamps may follow later."""
    (os.fdatasync if hasattr(os, "fdatasync") else os.fsync)(descriptor)


def overwrite(descriptor: int, data: bytes) -> None:
    """Overwrite an open file in one write, padding with blanks. The file keeps its disk blocks, so a sync is cheap."""
    os.pwrite(descriptor, data.ljust(os.fstat(descriptor).st_size), 0)


def clear(descriptor: int) -> None:
    """Truncate an open file; a process that appends to it continues at offset 0."""
    with suppress(OSError):
        os.ftruncate(descriptor, 0)


def remove(path: str) -> None:
    """Delete a file if it exists."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError:
        if os.path.lexists(path):
            raise


def rename(old: str, new: str, synced: bool = True) -> None:
    """Rename a file. Pass `synced=False` if the rename need not survive a power cut."""
    os.rename(old, new)
    if synced:
        sync_parent(new)


def copy_times(path: str, like: os.stat_result) -> None:
    """Set a file's access and modification times to those in `like`."""
    os.utime(path, ns=(like.st_atime_ns, like.st_mtime_ns))


def set_mode(path: str, mode: int) -> None:
    """Set the permissions of a file or folder if they differ. Do nothing for a link."""
    facts = os.lstat(path)
    if not stat.S_ISLNK(facts.st_mode) and stat.S_IMODE(facts.st_mode) != mode:
        os.chmod(path, mode)


def is_folder(path: str) -> bool:
    """True for a folder, False for a link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def usual_mode() -> int:
    """Return the mode of a new file under the umask of this process."""
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask


def list_folder(path: str) -> list[str]:
    """Return the names in a folder; empty if there is none, or access is denied. Raises OSError if the disk fails."""
    try:
        return os.listdir(path)
    except OSError as problem:
        if problem.errno not in _NO_FOLDER:
            raise
        return []


def list_if_readable(path: str) -> list[str]:
    """Return the names in a folder; empty if it can't be read. Use it only where no decision depends on the names."""
    try:
        return os.listdir(path)
    except OSError:
        return []


def fingerprint(path: str) -> tuple[int, ...]:
    """Return file attributes that change whenever the content may have changed, ctime last; () if there is no file."""
    try:
        facts = os.stat(path)
    except (OSError, ValueError):
        return ()
    return (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)


class _Shared(RawIOBase):
    """Reads an open file at its own offset, because the process that writes the file moves the descriptor's offset."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._offset = descriptor, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        base = {os.SEEK_CUR: self._offset, os.SEEK_END: os.fstat(self._descriptor).st_size}
        self._offset = base.get(whence, 0) + offset
        return self._offset

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        view = memoryview(buffer)
        data = os.pread(self._descriptor, len(view), self._offset)
        view[: len(data)] = data
        self._offset += len(data)
        return len(data)


def reading(source: str | int, limit: int = 0) -> BufferedReader:
    """Open one of rooda's files for reading, by path or by a descriptor, which stays open.

    Raises OSError if a file opened by path is larger than `limit` bytes; 0 = any size.
    """
    if isinstance(source, int):
        return BufferedReader(_Shared(source), CHUNK)
    file = os.fdopen(open_regular(source, os.O_RDONLY), "rb")
    try:
        _require_size(os.fstat(file.fileno()).st_size if limit else 0, limit, source)
    except OSError:
        file.close()
        raise
    return file


def tail(source: str | int, limit: int) -> bytes:
    """Return the last `limit` bytes of one of rooda's files."""
    with reading(source) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - limit))
        return file.read(limit)


def head(source: str | int, limit: int) -> bytes:
    """Return the first `limit` bytes of one of rooda's files."""
    with reading(source) as file:
        return file.read(limit)


def lines(source: str | int, limit: int, longest: int = CHUNK) -> Iterator[bytes]:
    """Yield the complete lines in the last `limit` bytes of a file, without newlines, each cut at `longest` bytes."""
    with reading(source) as file:
        size = file.seek(0, os.SEEK_END)
        if size > limit:  # skip the line that the limit cuts: the rest could look like a whole line
            file.seek(size - limit - 1)
            _skip_line(file, longest)
        else:
            file.seek(0)
        while line := file.readline(longest):
            yield line.rstrip(b"\r\n")
            if not line.endswith(b"\n"):
                _skip_line(file, longest)


def _skip_line(file: BufferedReader, longest: int) -> None:
    while (line := file.readline(longest)) and not line.endswith(b"\n"):
        pass


def sha256(data: bytes) -> str:
    from rooda.base.hashes import hashlib

    return hashlib.sha256(data).hexdigest()


def remove_tree(path: str) -> None:
    """Delete a file or a folder with everything in it, if it exists. Links are deleted, not followed."""
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
    """Delete a folder and its parents up to, but not including, `top`, as long as they are empty."""
    while path != top and path.startswith(top):
        try:
            os.rmdir(path)
        except OSError:
            return
        path = os.path.dirname(path)


def move_folder_aside(path: str) -> None:
    """Make way for a file at this path: delete a folder there if it is empty, else rename it."""
    if not os.path.isdir(path) or os.path.islink(path):
        return
    try:
        os.rmdir(path)
    except OSError:
        set_aside(path, "folder")


def set_aside(path: str, ending: str) -> str:
    """Rename whatever is at this path to PATH.ENDING, or PATH.ENDING-2, … if that exists; return the new path."""
    aside, number = f"{path}.{ending}", 1
    while os.path.lexists(aside):
        number += 1
        aside = f"{path}.{ending}-{number}"
    os.rename(path, aside)
    return aside


def remove_empty_parents(path: str) -> None:
    """Delete an empty folder, and each parent that becomes empty."""
    os.removedirs(path)


def hold_replaced(path: str) -> None:
    """Keep a file open that is about to be replaced, so that the kernel frees its blocks only at `release_replaced`.

    Freeing costs more than the replacement itself, and would lengthen the gap between two agent calls.
    """
    if how := getattr(os, "O_PATH", 0):
        if len(_replaced) >= MOST_HELD:
            release_replaced()
        try:
            _replaced.append(os.open(path, how | os.O_NOFOLLOW | os.O_CLOEXEC))
        except OSError:
            pass  # the file is missing or can't be opened: the replacement frees its space


def release_replaced() -> None:
    """Free the space of replaced files. Called while an agent runs."""
    while _replaced:
        try:
            os.close(_replaced.pop())
        except OSError:
            pass  # the old file is deleted already, so no data is lost
