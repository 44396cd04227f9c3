"""Reads files of a workspace safely, since a clone, an agent or another user may have written them.

Only regular files are opened, and no link may lead out of the repository. Opening never blocks, and reading takes no
more memory than the limit.
"""

import errno
import os
import stat
from functools import cache

from rooda.base import files

TEXT = 1_048_576  # bytes of a settings file, a rules file or a project file of another tool
PROMPT = 67_108_864  # bytes of a file that becomes part of a prompt


def read(workspace: str, path: str, limit: int = TEXT) -> bytes:
    """Read a file of the workspace. The path itself may lead out of the repository; a link may not."""
    return files.read_open(open_file(workspace, path), limit, os.path.join(workspace, path))


def text(workspace: str, path: str, limit: int = TEXT) -> str:
    """Like `read`, but decode the file; bytes that are not UTF-8 become surrogates."""
    return files.to_text(read(workspace, path, limit))


def read_typed(workspace: str, path: str) -> bytes:
    """Read a file given on the command line. It may be an open pipe: /dev/stdin, or the shell's <(command)."""
    if os.path.abspath(path).startswith(("/dev/fd/", "/dev/stdin", "/proc/self/fd/")):
        return files.read_open(os.open(path, os.O_RDONLY | os.O_CLOEXEC), PROMPT, path)
    return read(workspace, path, PROMPT)


def upward(workspace: str) -> list[str]:
    """Return the folders from the workspace up to the repository's root; outside a repository only the workspace."""
    folder = os.path.abspath(workspace)
    folders = [folder]
    while not os.path.lexists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder or _is_public(parent, folder):
            return folders[:1]
        folder = parent
        folders.append(folder)
    return folders


def _is_public(parent: str, folder: str) -> bool:
    """True for a folder such as /tmp, where another user could create a `.git` and a rooda.toml above `folder`."""
    try:
        facts = os.stat(parent)
        if not facts.st_mode & stat.S_IWOTH:
            return False
        return bool(facts.st_mode & stat.S_ISVTX) or facts.st_uid != os.stat(folder).st_uid
    except OSError:
        return False


def open_file(workspace: str, path: str) -> int:
    """Open a file of the workspace for a caller that reads it in pieces; return its descriptor."""
    path = os.path.join(workspace, path) if path else path
    descriptor = files.open_existing(path)
    named, real = _roots(os.path.abspath(workspace))
    if _is_below(os.path.abspath(path), named) and not _is_below(found := _real(descriptor, path), real):
        os.close(descriptor)
        what = f"it is a link out of the repository, to {found}; replace it with the file itself"
        raise OSError(errno.EXDEV, what, path)
    return descriptor


@cache
def _roots(workspace: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the workspace and its repository root, first as given, then with links resolved."""
    named = (workspace, upward(workspace)[-1])
    return named, tuple(map(os.path.realpath, named))


def _is_below(path: str, folders: tuple[str, ...]) -> bool:
    return any(path.startswith(folder.rstrip("/") + "/") for folder in folders)


def _real(descriptor: int, path: str) -> str:
    """Return the path of an open file with links resolved."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:  # no /proc
        return os.path.realpath(path)
