"""Runs a process in a sandbox: builds bubblewrap's command line for what it may see, change and reach."""

import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from rooda.base import files

PROGRAM = "bwrap"
INSTALL = 'Install bubblewrap (apt install bubblewrap, dnf install bubblewrap), or set sandbox = "off".'
HIDDEN = ("/home", "/root", "/tmp", "/var/tmp", "/run")  # empty in the sandbox
ROOTS_ONLY = ("/etc/shadow", "/etc/gshadow", "/etc/ssh", "/etc/ssl/private", "/etc/sudoers")  # hidden if readable
# Files of /proc that root may write without any capability: bubblewrap leaves them writable.
_WRITABLE_PROC = ("sys", "sysrq-trigger", "irq", "bus", "acpi")
_NAMESPACES = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--die-with-parent", "--new-session")
_CAPABILITIES = ("--cap-drop", "ALL")  # without this, root in the sandbox could undo a read-only mount

# What a mount does with its path
READ, WRITE, EMPTY, SEALED, NOTHING = "read", "write", "empty folder", "empty read-only folder", "empty file"


class Mount(NamedTuple):
    """One path in the sandbox; `source` is a path outside of it, if it differs."""

    how: str
    path: str
    source: str = ""


def words_of(mounts: Iterable[Mount], folder: str, network: bool) -> list[str]:
    """Return bubblewrap's options; a mount below another one comes after it."""
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
    source = os.devnull if mount.how == NOTHING else mount.source or mount.path
    return "--bind" if mount.how == WRITE else "--ro-bind", source, mount.path


def _proc() -> list[str]:
    """Return options that make settings of the kernel read-only; other users than root can't write them anyway."""
    if os.geteuid():
        return []
    found = [path for name in _WRITABLE_PROC if os.path.exists(path := f"/proc/{name}")]
    return [word for path in found for word in ("--ro-bind", path, path)]


def hidden() -> list[Mount]:
    """Return mounts that hide the folders of users and services, and what only root may read."""
    found = [Mount(EMPTY, path) for path in HIDDEN if os.path.isdir(path) and not os.path.islink(path)]
    for path in ROOTS_ONLY:
        if os.access(path, os.R_OK):
            found.append(Mount(EMPTY if os.path.isdir(path) else NOTHING, path))
    return found


def is_below(path: str, folders: Iterable[str]) -> bool:
    """True if the path is one of the folders or in one of them."""
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


@cache
def program() -> str:
    """Return the path of bubblewrap; "" if it isn't installed. The workspace can't provide it by way of PATH."""
    places = [*os.environ.get("PATH", os.defpath).split(os.pathsep), "/usr/bin", "/usr/local/bin", "/bin"]
    found = (os.path.join(place, PROGRAM) for place in places if os.path.isabs(place))
    return next((path for path in found if os.access(path, os.X_OK) and os.stat(path).st_uid == 0), "")


@cache
def problem() -> str:
    """Return why no sandbox can be had on this machine; "" if it can. Starts a process in a sandbox to find out."""
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
    return f"bubblewrap can't make one here ({said[-1].removeprefix('bwrap: ')})"


def arguments(words: Sequence[str]) -> int:
    """Return a descriptor from which bubblewrap reads its options, so that they don't fill the process table."""
    descriptor = os.memfd_create("rooda-sandbox")
    files.write_all(descriptor, b"".join(os.fsencode(word) + b"\0" for word in words))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


class Gate:
    """Holds a process in the sandbox until its network is open."""

    def __init__(self, open_network: Callable[[int, Any], str], rules: object) -> None:
        self._open, self._rules = open_network, rules
        self._told, telling = os.pipe()
        waiting, self._release = os.pipe()
        self.passed = (telling, waiting)
        self.words = ("--info-fd", str(telling), "--block-fd", str(waiting))

    def admit(self) -> None:
        """Open the network of the process that was started, and let it begin. Without a network it begins, too."""
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
