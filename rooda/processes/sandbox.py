"""Builds bubblewrap's command line for a sandbox: what a process in it may see, change and reach."""

import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from rooda.base import dirs, files

PROGRAM = "bwrap"
INSTALL = 'Install bubblewrap (apt install bubblewrap, dnf install bubblewrap), or set sandbox = "off".'
HIDDEN = ("/home", "/root", "/tmp", "/var/tmp", "/run")  # empty folders in the sandbox
ROOTS_ONLY = ("/etc/shadow", "/etc/gshadow", "/etc/ssh", "/etc/ssl/private", "/etc/sudoers")  # hidden if readable
# Files of /proc that root can write even without capabilities; bubblewrap leaves them writable.
_WRITABLE_PROC = ("sys", "sysrq-trigger", "irq", "bus", "acpi")
_NAMESPACES = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--die-with-parent", "--new-session")
_CAPABILITIES = ("--cap-drop", "ALL")  # without this, root in the sandbox could undo a read-only mount

_ACCEPTING = "00010000"  # flags in /proc/net/unix
MOST_SOCKETS = 40  # sockets that are hidden one by one

# Kinds of mounts: what the process finds at the path
READ, WRITE, EMPTY, SEALED, NOTHING = "read", "write", "empty folder", "empty read-only folder", "empty file"


class Mount(NamedTuple):
    """One path in the sandbox. `source`: the path outside of the sandbox, if it is different."""

    how: str
    path: str
    source: str = ""


def words_of(mounts: Iterable[Mount], folder: str, network: bool) -> list[str]:
    """Return bubblewrap's options. Mounts are ordered by depth, so that each comes after the mounts above it."""
    words = [*_NAMESPACES, *_CAPABILITIES, *(() if network else ("--unshare-net",))]
    words += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", *_proc()]
    ordered = sorted(mounts, key=lambda mount: mount.path.rstrip("/").count("/"))
    for mount in ordered:
        words += _words(mount)
    for mount in ordered:
        words += ("--remount-ro", mount.path) if mount.how == SEALED else ()
    return [*words, "--chdir", folder]


def _words(mount: Mount) -> tuple[str, ...]:
    if mount.how in (EMPTY, SEALED):
        return "--tmpfs", mount.path
    source = empty_file() if mount.how == NOTHING else mount.source or mount.path
    return "--bind" if mount.how == WRITE else "--ro-bind", source, mount.path


@cache
def empty_file() -> str:
    """Return the path of an empty file to mount over other files. A mounted /dev/null could not be opened."""
    path = os.path.join(dirs.make_state(), "empty")
    if not os.path.lexists(path):
        files.replace(path, b"", 0o400, synced=False)
    return path


def _proc() -> list[str]:
    """Return options that make the kernel's settings in /proc read-only for root; other users can't write them."""
    if os.geteuid():
        return []
    found = [path for name in _WRITABLE_PROC if os.path.exists(path := f"/proc/{name}")]
    return [word for path in found for word in ("--ro-bind", path, path)]


def hidden(spared: Sequence[str]) -> list[Mount]:
    """Return mounts that hide the folders of users, sockets of services, and files that only root may read.

    `spared`: folders whose sockets are not hidden.
    """
    found = [Mount(EMPTY, path) for path in HIDDEN if os.path.isdir(path) and not os.path.islink(path)]
    for path in sockets()[:MOST_SOCKETS]:
        if not is_below(path, (*HIDDEN, *spared)) and os.access(path, os.W_OK):
            found.append(Mount(NOTHING, path))
    for path in ROOTS_ONLY:
        if os.access(path, os.R_OK):
            found.append(Mount(EMPTY if os.path.isdir(path) else NOTHING, path))
    return found


def sockets() -> list[str]:
    """Return the real paths of the Unix sockets on which a process listens. No namespace hides these sockets."""
    try:
        rows = files.to_text(files.read_long_proc("/proc/net/unix")).splitlines()[1:]
    except OSError:
        return []
    words = (row.split(maxsplit=7) for row in rows)
    named = {each[7] for each in words if len(each) == 8 and each[3] == _ACCEPTING and each[7].startswith("/")}
    return sorted({os.path.realpath(path) for path in named if os.path.exists(path)})


def is_below(path: str, folders: Iterable[str]) -> bool:
    """True if the path is one of the folders or in one of them."""
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


@cache
def program() -> str:
    """Return the path of bubblewrap; "" if it isn't installed. Only a file owned by root counts, whatever PATH says."""
    places = [*os.environ.get("PATH", os.defpath).split(os.pathsep), "/usr/bin", "/usr/local/bin", "/bin"]
    found = (os.path.join(place, PROGRAM) for place in places if os.path.isabs(place))
    return next((path for path in found if os.access(path, os.X_OK) and os.stat(path).st_uid == 0), "")


@cache
def problem() -> str:
    """Return why this machine can't run a sandbox; "" if it can. Starts a process in a sandbox to find out."""
    if not sys.platform.startswith("linux"):
        return f"there is no sandbox for {sys.platform}"
    if not program():
        return "bubblewrap is not installed"
    from rooda.processes import capture

    words = words_of((), "/", network=False)
    done = capture.capture([program(), *words, "--", "/bin/sh", "-c", "exit 0"], timeout=10.0)
    if done.code == 0:
        return ""
    said = files.to_text(done.err).strip().splitlines() or [f"exit {done.code}"]
    return f"bubblewrap can't create a sandbox here ({said[-1].removeprefix('bwrap: ')})"


def arguments(words: Sequence[str]) -> int:
    """Return a file descriptor with the options for bubblewrap, so that its command line in `ps` stays short."""
    descriptor = os.memfd_create("rooda-sandbox")
    files.write_all(descriptor, b"".join(os.fsencode(word) + b"\0" for word in words))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


class Gate:
    """Delays the start of a process in the sandbox until the proxy listens in its network."""

    def __init__(self, open_network: Callable[[int, Any], str], rules: object) -> None:
        self._open, self._rules = open_network, rules
        self._told, telling = os.pipe()
        waiting, self._release = os.pipe()
        self.passed = (telling, waiting)
        self.words = ("--info-fd", str(telling), "--block-fd", str(waiting))

    def admit(self) -> None:
        """Let the proxy listen in the network of the process, then let the process begin, even if the proxy can't."""
        try:
            said = b""
            while b"}" not in said and (more := os.read(self._told, 4096)):
                said += more
            found = re.search(rb'"child-pid": (\d+)', said)
            if found:
                self._open(int(found[1]), self._rules)
            os.write(self._release, b"1")
        except BrokenPipeError:
            pass
        finally:
            os.close(self._told)
            os.close(self._release)
